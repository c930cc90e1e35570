"""Records of the audit log can be deleted when they are 30 days old: retention."""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

REFUSAL = "audit records are neither changed nor deleted"
# The rest of the trigger on SQLite, whose timestamps are texts in UTC.
YOUNG = "WHEN OLD.created_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-30 days')"
REFUSE = f"BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER audit_records_no_delete")
        op.execute(f"CREATE TRIGGER audit_records_no_delete BEFORE DELETE ON audit_records {YOUNG} {REFUSE}")
        return
    op.execute("DROP TRIGGER audit_records_stay ON audit_records")
    op.execute(
        "CREATE TRIGGER audit_records_stay BEFORE UPDATE OR TRUNCATE ON audit_records "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_records_stay()"
    )
    op.execute(
        "CREATE TRIGGER audit_records_young_stay BEFORE DELETE ON audit_records FOR EACH ROW "
        "WHEN (OLD.created_at > now() - interval '30 days') EXECUTE FUNCTION audit_records_stay()"
    )


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        op.execute("DROP TRIGGER audit_records_no_delete")
        op.execute(f"CREATE TRIGGER audit_records_no_delete BEFORE DELETE ON audit_records {REFUSE}")
        return
    op.execute("DROP TRIGGER audit_records_young_stay ON audit_records")
    op.execute("DROP TRIGGER audit_records_stay ON audit_records")
    op.execute(
        "CREATE TRIGGER audit_records_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_records "
        "FOR EACH STATEMENT EXECUTE FUNCTION audit_records_stay()"
    )
