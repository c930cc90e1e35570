"""Roles and second factors of those who sign in to the dashboard; what changed, in the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # All existing people have every right, and an older version that still runs creates only administrators.
    for table in ("administrators", "invitations"):
        role = sa.Column("role", sa.String(length=16), nullable=False, server_default="administrator")
        op.add_column(table, role)
    op.add_column("administrators", sa.Column("sealed_totp_secret", sa.LargeBinary(), nullable=True))
    op.add_column("administrators", sa.Column("last_totp_step", sa.BigInteger(), nullable=True))
    op.create_table(
        "recovery_codes",
        sa.Column("administrator_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["administrator_id"],
            ["administrators.id"],
            name=op.f("fk_recovery_codes_administrator_id_administrators"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("administrator_id", "digest", name=op.f("pk_recovery_codes")),
    )
    op.add_column("audit_records", sa.Column("changes", sa.JSON(), nullable=True))
    op.create_index("ix_audit_records_created_at", "audit_records", ["created_at"])


def downgrade() -> None:
    op.drop_index("ix_audit_records_created_at", "audit_records")
    op.drop_column("audit_records", "changes")
    op.drop_table("recovery_codes")
    op.drop_column("administrators", "last_totp_step")
    op.drop_column("administrators", "sealed_totp_secret")
    for table in ("invitations", "administrators"):
        op.drop_column(table, "role")
