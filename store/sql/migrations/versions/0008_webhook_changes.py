"""Webhook endpoints can be paused and get new secrets; a delivery need not be about a user."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    moment = sa.DateTime(timezone=True)
    op.add_column("webhook_endpoints", sa.Column("paused_at", moment, nullable=True))
    op.add_column("webhook_endpoints", sa.Column("sealed_previous_secret", sa.LargeBinary(), nullable=True))
    op.add_column("webhook_endpoints", sa.Column("overlap_until", moment, nullable=True))
    _let_deliveries_have_no_user(nullable=True)


def downgrade() -> None:
    # Test events are about no user; the release before cannot hold them.
    op.execute("DELETE FROM webhook_deliveries WHERE user_id IS NULL")
    _let_deliveries_have_no_user(nullable=False)
    for column in ("overlap_until", "sealed_previous_secret", "paused_at"):
        op.drop_column("webhook_endpoints", column)


def _let_deliveries_have_no_user(*, nullable: bool) -> None:
    with op.batch_alter_table("webhook_deliveries") as deliveries:
        deliveries.alter_column("user_id", existing_type=sa.Integer(), nullable=nullable)
