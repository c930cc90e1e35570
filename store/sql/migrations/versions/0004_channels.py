"""Notification channels of providers."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("connection_id", sa.String(length=32), nullable=False),
        sa.Column("calendar", sa.String(length=2048), nullable=False),
        sa.Column("secret_digest", sa.String(length=64), nullable=False),
        sa.Column("provider_id", sa.String(length=256), nullable=True),
        sa.Column("resource", sa.String(length=1024), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("renew_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("watch_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["connection_id"],
            ["oauth_connections.id"],
            name=op.f("fk_channels_connection_id_oauth_connections"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channels")),
    )
    op.create_index("ix_channels_connection_id", "channels", ["connection_id"])
    op.create_index("ix_channels_renew_at", "channels", ["renew_at"])


def downgrade() -> None:
    op.drop_table("channels")
