"""The log of deliveries keeps each attempt with its time, its duration and what was answered."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhook_deliveries", sa.Column("attempt_log", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("webhook_deliveries", "attempt_log")
