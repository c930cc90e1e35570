"""Keys that manage keys, rate limits of single keys, and keys that are replaced with an overlap."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "api_keys", sa.Column("manages_keys", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("api_keys", sa.Column("rate_limit", sa.Integer(), nullable=True))
    op.add_column("api_keys", sa.Column("previous_digest", sa.String(length=64), nullable=True))
    op.add_column("api_keys", sa.Column("previous_until", sa.DateTime(timezone=True), nullable=True))
    # An index and no constraint, which SQLite adds by copying the table only.
    op.create_index("ix_api_keys_previous_digest", "api_keys", ["previous_digest"], unique=True)


def downgrade() -> None:
    op.drop_index("ix_api_keys_previous_digest", "api_keys")
    for column in ("previous_until", "previous_digest", "rate_limit", "manages_keys"):
        op.drop_column("api_keys", column)
