"""People who sign in by OpenID Connect."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "identities",
        sa.Column("administrator_id", sa.Integer(), nullable=False),
        sa.Column("issuer", sa.String(length=512), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("sealed_refresh_token", sa.LargeBinary(), nullable=True),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["administrator_id"],
            ["administrators.id"],
            name="fk_identities_administrator_id_administrators",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("administrator_id", name="pk_identities"),
        sa.UniqueConstraint("issuer", "subject", name="uq_identities_issuer_subject"),
    )
    op.create_index("ix_identities_checked_at", "identities", ["checked_at"])


def downgrade() -> None:
    op.drop_table("identities")
