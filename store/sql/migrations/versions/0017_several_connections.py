"""A user may have several connections with a provider, each with a label; one of them is the default."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

UNIQUE = "uq_oauth_connections_user_id_provider"
DEFAULT = "uq_oauth_connections_default"


def upgrade() -> None:
    with op.batch_alter_table("oauth_connections") as connections:
        connections.add_column(sa.Column("first_id", sa.String(length=32), nullable=True))
        connections.add_column(sa.Column("label", sa.String(length=128), nullable=True))
        # Each connection was the only one of its user and provider. Rows of the release before get the value
        # too: that release removes the others first.
        connections.add_column(
            sa.Column("is_default", sa.Boolean(), nullable=False, server_default=sa.true())
        )
        connections.drop_constraint(UNIQUE, type_="unique")
    op.create_index("ix_oauth_connections_first_id", "oauth_connections", ["first_id"])
    op.create_index("ix_oauth_connections_user_id_provider", "oauth_connections", ["user_id", "provider"])
    op.create_index(
        DEFAULT,
        "oauth_connections",
        ["user_id", "provider"],
        unique=True,
        sqlite_where=sa.text("is_default"),
        postgresql_where=sa.text("is_default"),
    )


def downgrade() -> None:
    # The release before cannot hold a second connection.
    # SQLite's foreign keys are off during a migration, so nothing cascades.
    op.execute(
        "DELETE FROM channels WHERE connection_id IN (SELECT id FROM oauth_connections WHERE NOT is_default)"
    )
    op.execute("DELETE FROM oauth_connections WHERE NOT is_default")
    op.drop_index(DEFAULT, "oauth_connections")
    op.drop_index("ix_oauth_connections_user_id_provider", "oauth_connections")
    op.drop_index("ix_oauth_connections_first_id", "oauth_connections")
    with op.batch_alter_table("oauth_connections") as connections:
        connections.drop_column("is_default")
        connections.drop_column("label")
        connections.drop_column("first_id")
        connections.create_unique_constraint(UNIQUE, ["user_id", "provider"])
