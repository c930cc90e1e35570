"""Holds: time of users that is kept free for a while, so that only one client can book it."""

import logging

import sqlalchemy as sa
from alembic import op
from sqlalchemy.exc import DBAPIError

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

log = logging.getLogger(__name__)


def upgrade() -> None:
    op.create_table(
        "holds",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("starts", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("promised", sa.Boolean(), nullable=False),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("claim", sa.String(length=64), nullable=True),
        sa.Column("note", sa.String(length=256), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_holds"),
    )
    op.create_index("ix_holds_expires_at", "holds", ["expires_at"])
    op.create_index("ix_holds_request", "holds", ["request"])
    op.create_table(
        "held_times",
        sa.Column("hold_id", sa.String(length=40), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("starts", sa.BigInteger(), nullable=False),
        sa.Column("ends", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["hold_id"], ["holds.id"], name="fk_held_times_hold_id_holds", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_held_times_user_id_users", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("hold_id", "user_id", name="pk_held_times"),
    )
    op.create_index("ix_held_times_user_id", "held_times", ["user_id"])
    if op.get_bind().dialect.name == "postgresql":
        _exclude_overlaps()


def _exclude_overlaps() -> None:
    """Have PostgreSQL itself refuse two rows of one user that overlap.

    It needs an extension that every installation of PostgreSQL has, but that some hosts do not permit. The
    locks on the users' rows suffice without it.
    """
    connection = op.get_bind()
    try:
        with connection.begin_nested():
            connection.execute(sa.text("CREATE EXTENSION IF NOT EXISTS btree_gist"))
    except DBAPIError as error:
        log.warning("holds have no exclusion constraint, btree_gist is missing: %s", type(error).__name__)
        return
    op.execute(
        "ALTER TABLE held_times ADD CONSTRAINT ex_held_times_user_id "
        "EXCLUDE USING gist (user_id WITH =, int8range(starts, ends) WITH &&)"
    )


def downgrade() -> None:
    op.drop_table("held_times")
    op.drop_table("holds")
