"""What counts for a person on every route of scheduling."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "availability_profiles",
        sa.Column("user_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("time_zone", sa.String(length=64), nullable=True),
        sa.Column("schedules", sa.JSON(), nullable=True),
        sa.Column("overrides", sa.JSON(), nullable=True),
        sa.Column("calendars", sa.JSON(), nullable=True),
        sa.Column("padding_before", sa.Integer(), nullable=True),
        sa.Column("padding_after", sa.Integer(), nullable=True),
        sa.Column("minimum_notice", sa.Integer(), nullable=True),
        sa.Column("holiday_country", sa.String(length=2), nullable=True),
        sa.Column("holiday_subdivision", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_availability_profiles_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name="pk_availability_profiles"),
    )


def downgrade() -> None:
    op.drop_table("availability_profiles")
