"""The audit log, page by page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text as sql
from sqlalchemy.exc import DatabaseError

from store.sql.models import AuditRecord
from store.sql.queries import audit
from store.sql.queries.audit import AuditFilter


def test_records_come_the_newest_first_and_page_by_page(fresh_database):
    with fresh_database.writing() as session:
        for n in range(5):
            audit.record(session, actor="ops", action="deleteUser", subject=f"user-{n}")
            session.flush()

    with fresh_database.reading() as session:
        first = audit.page(session, limit=2)
        second = audit.page(session, before=first[-1].id, limit=2)
        last = audit.page(session, before=second[-1].id)

    subjects = [[row.subject for row in each] for each in (first, second, last)]
    assert subjects == [["user-4", "user-3"], ["user-2", "user-1"], ["user-0"]]
    assert (first[0].actor, first[0].action) == ("ops", "deleteUser")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("OPS", {"one"}),
        ("deletewebhook", {"one", "two"}),
        ("Delete webhook", {"one", "two"}),
        ("tw", {"two"}),
        ("%", {"100%"}),
        ("_", set()),
        ("", {"one", "two", "100%"}),
    ],
)
def test_a_search_reads_actor_deed_and_subject(fresh_database, text, found):
    with fresh_database.writing() as session:
        audit.record(session, actor="ops", action="deleteWebhook", subject="one")
        audit.record(session, actor="eve", action="deleteWebhook", subject="two")
        audit.record(session, actor="eve", action="createKey", subject="100%")

    with fresh_database.reading() as session:
        assert {row.subject for row in audit.page(session, text)} == found


REPLACE = {
    "sqlite": "INSERT OR REPLACE INTO audit_records (id, created_at, actor, action, subject) "
    "SELECT id, created_at, 'nobody', action, subject FROM audit_records",
    "postgresql": "INSERT INTO audit_records (id, created_at, actor, action, subject) "
    "SELECT id, created_at, 'nobody', action, subject FROM audit_records "
    "ON CONFLICT (id) DO UPDATE SET actor = excluded.actor",
}


@pytest.mark.parametrize(
    "deed",
    [
        "UPDATE audit_records SET actor = 'nobody'",
        "DELETE FROM audit_records",
        "DELETE FROM audit_records WHERE subject = 'user-0'",
        "TRUNCATE audit_records",
        # What replaces a record, in the words of each database.
        "REPLACE",
    ],
)
def test_the_database_refuses_to_change_what_is_written(fresh_database, deed):
    if deed.startswith("TRUNCATE") and fresh_database.url.get_backend_name() == "sqlite":
        deed = "DELETE FROM audit_records WHERE 1"
    if deed == "REPLACE":
        deed = REPLACE[fresh_database.url.get_backend_name()]
    with fresh_database.writing() as session:
        audit.record(session, actor="ops", action="deleteUser", subject="user-0")

    with (
        pytest.raises(DatabaseError, match="neither changed nor deleted"),
        fresh_database.writing() as session,
    ):
        session.execute(sql(deed))

    with fresh_database.reading() as session:
        assert [(row.actor, row.subject) for row in audit.page(session)] == [("ops", "user-0")]


def test_records_are_deleted_that_are_older_than_the_retention_and_never_younger_ones(fresh_database):
    now = datetime.now(UTC)
    ages = {"old": 401, "month": 31, "young": 29, "new": 0}
    with fresh_database.writing() as session:
        for subject, days in ages.items():
            at = now - timedelta(days=days)
            session.add(AuditRecord(actor="ops", action="x", subject=subject, created_at=at))

    def left() -> set[str]:
        with fresh_database.reading() as session:
            return {row.subject for row in audit.page(session)}

    with fresh_database.writing() as session:
        assert audit.purge(session, before=now - timedelta(days=400), limit=10) == 1
    assert left() == {"month", "young", "new"}
    with fresh_database.writing() as session:
        assert audit.purge(session, before=now - timedelta(days=audit.MIN_DAYS), limit=10) == 1
    assert left() == {"young", "new"}
    with (
        pytest.raises(DatabaseError, match="neither changed nor deleted"),
        fresh_database.writing() as session,
    ):
        audit.purge(session, before=now - timedelta(days=28), limit=10)
    assert left() == {"young", "new"}


def test_a_url_stands_in_a_record_without_its_secrets():
    url = "https://ada:password@hooks.example:8443/secret-path?token=secret"
    assert audit.host_of(url) == "https://hooks.example:8443/…"


def test_a_span_of_time_includes_its_start_and_not_its_end(fresh_database):
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    with fresh_database.writing() as session:
        for hours in range(3):
            at, subject = noon + timedelta(hours=hours), f"{12 + hours}:00"
            session.add(AuditRecord(actor="ops", action="deleteUser", subject=subject, created_at=at))
            session.flush()

    with fresh_database.reading() as session:
        found = audit.page(session, AuditFilter(since=noon, before=noon + timedelta(hours=2)))
        assert [row.subject for row in found] == ["13:00", "12:00"]
        assert [row.subject for row in audit.page(session, AuditFilter(since=noon + timedelta(hours=2)))] == [
            "14:00"
        ]
