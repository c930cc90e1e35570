"""Links name the person who made them; a security stamp changes when that person loses a right."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

# An open invitation stays with the person who made it. ``created_by`` has the role and the name of that
# moment. Names are unique and do not change, so the person of that name made it if they are older than the
# invitation. If the audit log has a change of their rights since, the invitation names no person and ends.
_NAME_ISSUERS = """
UPDATE user_invitations SET security_stamp = '', administrator_id = (
    SELECT a.id FROM administrators AS a
    WHERE user_invitations.created_by IN ('operator ' || a.name, 'administrator ' || a.name)
      AND a.role IN ('operator', 'administrator')
      AND a.created_at <= user_invitations.created_at
      AND NOT EXISTS (
        SELECT 1 FROM audit_records AS r
        WHERE r.subject = a.name
          AND r.action IN ('changePassword', 'changeRole', 'resetSecondFactor', 'disableSecondFactor')
          AND r.created_at >= user_invitations.created_at
      )
)
"""


def upgrade() -> None:
    stamp = sa.Column("security_stamp", sa.String(length=32), nullable=False, server_default="")
    op.add_column("administrators", stamp)
    for table, ondelete in (("invitations", "CASCADE"), ("user_invitations", "SET NULL")):
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column("administrator_id", sa.Integer(), nullable=True))
            batch.add_column(sa.Column("security_stamp", sa.String(length=32), nullable=True))
            batch.create_foreign_key(
                f"fk_{table}_administrator_id_administrators",
                "administrators",
                ["administrator_id"],
                ["id"],
                ondelete=ondelete,
            )
        op.create_index(f"ix_{table}_administrator_id", table, ["administrator_id"])
    op.execute(_NAME_ISSUERS)


def downgrade() -> None:
    for table in ("user_invitations", "invitations"):
        op.drop_index(f"ix_{table}_administrator_id", table)
        with op.batch_alter_table(table) as batch:
            batch.drop_constraint(f"fk_{table}_administrator_id_administrators", type_="foreignkey")
            batch.drop_column("security_stamp")
            batch.drop_column("administrator_id")
    op.drop_column("administrators", "security_stamp")
