"""Ids that SQLite never reuses; the provider account behind a connection, and who obtained its grant."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Consent links, caches and audit records outlive the rows of these tables and name them by id.
TABLES = ("organizations", "users", "api_keys", "administrators")


def upgrade() -> None:
    _copy_tables(sqlite_autoincrement=True)
    op.add_column("oauth_connections", sa.Column("account_id", sa.String(length=256), nullable=True))
    op.add_column("oauth_connections", sa.Column("main_calendar_id", sa.String(length=2048), nullable=True))
    op.add_column("oauth_connections", sa.Column("mailbox", sa.String(length=320), nullable=True))
    # How older grants were obtained is not recorded, so they are never revoked.
    op.add_column(
        "oauth_connections", sa.Column("obtained", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index("ix_oauth_connections_account_id", "oauth_connections", ["account_id"])


def downgrade() -> None:
    op.drop_index("ix_oauth_connections_account_id", "oauth_connections")
    for column in ("obtained", "mailbox", "main_calendar_id", "account_id"):
        op.drop_column("oauth_connections", column)
    _copy_tables(sqlite_autoincrement=False)


def _copy_tables(*, sqlite_autoincrement: bool) -> None:
    """Make the tables again with or without AUTOINCREMENT, which no ALTER TABLE changes."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for table in TABLES:
        with op.batch_alter_table(
            table, recreate="always", table_kwargs={"sqlite_autoincrement": sqlite_autoincrement}
        ):
            pass
