"""The dashboard: administrators, provider clients, last use of API keys, and why a grant ended."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "administrators",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("password_hash", sa.String(length=256), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_administrators")),
        sa.UniqueConstraint("name", name=op.f("uq_administrators_name")),
    )
    op.create_table(
        "dashboard_sessions",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("administrator_id", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.Column("agent", sa.String(length=256), nullable=False),
        sa.ForeignKeyConstraint(
            ["administrator_id"],
            ["administrators.id"],
            name=op.f("fk_dashboard_sessions_administrator_id_administrators"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dashboard_sessions")),
        sa.UniqueConstraint("digest", name=op.f("uq_dashboard_sessions_digest")),
    )
    op.create_index("ix_dashboard_sessions_administrator_id", "dashboard_sessions", ["administrator_id"])
    op.create_index("ix_dashboard_sessions_expires_at", "dashboard_sessions", ["expires_at"])
    op.create_table(
        "invitations",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_invitations")),
    )
    op.create_table(
        "provider_clients",
        sa.Column("provider", sa.String(length=16), nullable=False),
        sa.Column("client_id", sa.String(length=512), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=False),
        sa.Column("tenant", sa.String(length=256), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("provider", name=op.f("pk_provider_clients")),
    )
    op.add_column("api_keys", sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("oauth_connections", sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("oauth_connections", sa.Column("ended_because", sa.String(length=300), nullable=True))


def downgrade() -> None:
    for column in ("ended_because", "ended_at"):
        op.drop_column("oauth_connections", column)
    op.drop_column("api_keys", "last_used_at")
    for table in ("provider_clients", "invitations", "dashboard_sessions", "administrators"):
        op.drop_table(table)
