"""Holds take mailboxes and calendars, belong to an organization, and may overlap where that is asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

ORGANIZATION_OF_HOLD = "fk_holds_organization_id_organizations"


def upgrade() -> None:
    op.create_table(
        "held_names",
        sa.Column("hold_id", sa.String(length=40), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=400), nullable=False),
        sa.ForeignKeyConstraint(
            ["hold_id"], ["holds.id"], name="fk_held_names_hold_id_holds", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_held_names_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("hold_id", "user_id", "name", name="pk_held_names"),
    )
    op.create_index("ix_held_names_user_id", "held_names", ["user_id"])
    op.create_index("ix_held_names_name", "held_names", ["name"])
    with op.batch_alter_table("holds") as holds:
        holds.add_column(sa.Column("organization_id", sa.Integer(), nullable=True))
        holds.create_foreign_key(
            ORGANIZATION_OF_HOLD, "organizations", ["organization_id"], ["id"], ondelete="CASCADE"
        )
        holds.create_index("ix_holds_organization_id", ["organization_id"])
    op.add_column("webhook_deliveries", sa.Column("user_ids", sa.JSON(), nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        # It is absent where the extension btree_gist was missing.
        op.execute("ALTER TABLE held_times DROP CONSTRAINT IF EXISTS ex_held_times_user_id")


def downgrade() -> None:
    # The constraint stays away: rows may overlap by now. The release before has its locks besides.
    op.drop_column("webhook_deliveries", "user_ids")
    with op.batch_alter_table("holds") as holds:
        holds.drop_index("ix_holds_organization_id")
        holds.drop_constraint(ORGANIZATION_OF_HOLD, type_="foreignkey")
        holds.drop_column("organization_id")
    op.drop_table("held_names")
