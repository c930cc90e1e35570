"""The log of deliveries keeps the start of what a receiver answered."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("webhook_deliveries", sa.Column("last_body", sa.String(length=500), nullable=True))


def downgrade() -> None:
    op.drop_column("webhook_deliveries", "last_body")
