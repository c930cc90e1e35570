"""The audit log, with triggers that prevent changes and deletions."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

REFUSAL = "audit records are neither changed nor deleted"
AGAIN = "WHEN EXISTS (SELECT 1 FROM audit_records WHERE id = NEW.id)"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for deed in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_records_no_{deed.lower()} BEFORE {deed} ON audit_records "
                f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
            )
        # INSERT OR REPLACE deletes without firing the trigger above.
        op.execute(
            f"CREATE TRIGGER audit_records_no_replace BEFORE INSERT ON audit_records {AGAIN} "
            f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        )
        return
    op.execute(
        "CREATE FUNCTION audit_records_stay() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_records "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_records_stay()"
    )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for deed in ("update", "delete", "replace"):
            op.execute(f"DROP TRIGGER audit_records_no_{deed}")
        return
    op.execute("DROP TRIGGER audit_records_stay ON audit_records")
    op.execute("DROP FUNCTION audit_records_stay()")
