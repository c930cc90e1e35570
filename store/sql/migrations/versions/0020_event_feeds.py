"""Webhooks about single events of calendars."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "event_feeds",
        sa.Column("connection_id", sa.String(length=32), nullable=False),
        sa.Column("calendar", sa.String(length=64), nullable=False),
        sa.Column("sealed_state", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("synced_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reported_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["connection_id"],
            ["oauth_connections.id"],
            name="fk_event_feeds_connection_id_oauth_connections",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("connection_id", "calendar", name="pk_event_feeds"),
    )
    op.add_column(
        "webhook_endpoints", sa.Column("content", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("webhook_deliveries", sa.Column("subject", sa.String(length=64), nullable=True))
    op.create_index(
        "ix_webhook_deliveries_endpoint_id_subject", "webhook_deliveries", ["endpoint_id", "subject"]
    )


def downgrade() -> None:
    op.drop_index("ix_webhook_deliveries_endpoint_id_subject", "webhook_deliveries")
    op.drop_column("webhook_deliveries", "subject")
    op.drop_column("webhook_endpoints", "content")
    op.drop_table("event_feeds")
