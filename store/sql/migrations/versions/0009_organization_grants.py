"""One grant for a whole organization, and connections that are read by it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

GRANT_OF_CONNECTION = "fk_oauth_connections_grant_id_organization_grants"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "organization_grants",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("organization_id", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.String(length=320), nullable=True),
        sa.Column("client_email", sa.String(length=320), nullable=True),
        sa.Column("tenant", sa.String(length=256), nullable=True),
        sa.Column("client_id", sa.String(length=512), nullable=True),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=True),
        sa.Column("scope", sa.JSON(), nullable=False),
        sa.Column("alive", sa.Boolean(), nullable=False),
        sa.Column("ended_at", moment, nullable=True),
        sa.Column("ended_because", sa.String(length=300), nullable=True),
        sa.Column("created_at", moment, nullable=False),
        sa.ForeignKeyConstraint(
            ["organization_id"],
            ["organizations.id"],
            name="fk_organization_grants_organization_id_organizations",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_organization_grants"),
        sa.UniqueConstraint(
            "organization_id", "provider", name="uq_organization_grants_organization_id_provider"
        ),
    )
    with op.batch_alter_table("oauth_connections") as connections:
        connections.add_column(sa.Column("grant_id", sa.String(length=32), nullable=True))
        connections.alter_column("sealed_access_token", existing_type=sa.LargeBinary(), nullable=True)
        connections.create_foreign_key(
            GRANT_OF_CONNECTION, "organization_grants", ["grant_id"], ["id"], ondelete="CASCADE"
        )
        connections.create_index("ix_oauth_connections_grant_id", ["grant_id"])


def downgrade() -> None:
    # The release before cannot hold connections without tokens.
    # SQLite's foreign keys are off during a migration, so nothing cascades.
    op.execute(
        "DELETE FROM channels WHERE connection_id IN "
        "(SELECT id FROM oauth_connections WHERE sealed_access_token IS NULL)"
    )
    op.execute("DELETE FROM oauth_connections WHERE sealed_access_token IS NULL")
    with op.batch_alter_table("oauth_connections") as connections:
        connections.drop_index("ix_oauth_connections_grant_id")
        connections.drop_constraint(GRANT_OF_CONNECTION, type_="foreignkey")
        connections.alter_column("sealed_access_token", existing_type=sa.LargeBinary(), nullable=False)
        connections.drop_column("grant_id")
    op.drop_table("organization_grants")
