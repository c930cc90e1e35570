"""Organizations can have quotas of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("organizations", sa.Column("quotas", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("organizations", "quotas")
