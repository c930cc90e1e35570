"""Invitations of users by a link, and an index that finds webhooks whose last attempt failed."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

LAST_ATTEMPTS = "ix_webhook_deliveries_endpoint_id_last_attempt_at"


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "user_invitations",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("created_by", sa.String(length=160), nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("expires_at", moment, nullable=False),
        sa.Column("opened_at", moment, nullable=True),
        sa.Column("connected_at", moment, nullable=True),
        sa.Column("revoked_at", moment, nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_user_invitations_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_user_invitations"),
        sa.UniqueConstraint("digest", name="uq_user_invitations_digest"),
    )
    op.create_index("ix_user_invitations_user_id", "user_invitations", ["user_id"])
    op.create_index("ix_user_invitations_created_at", "user_invitations", ["created_at"])
    op.create_index(LAST_ATTEMPTS, "webhook_deliveries", ["endpoint_id", "last_attempt_at"])


def downgrade() -> None:
    op.drop_index(LAST_ATTEMPTS, "webhook_deliveries")
    op.drop_table("user_invitations")
