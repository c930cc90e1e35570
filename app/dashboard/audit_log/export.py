"""The audit log as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from app.dashboard.csv_cells import harmless
from store.sql.models import AuditRecord
from store.sql.queries import audit
from store.sql.queries.audit import AuditFilter
from store.stores import Stores

# Rows of one statement, and of one export.
BATCH = 1000
MOST = 100_000
COLUMNS = ("time", "actor", "action", "target", "changes")


def lines(filtered: AuditFilter, stores: Stores) -> Iterator[str]:
    """The header, then the newest ``MOST`` records that match, a batch at a time."""
    database = stores.database
    yield _csv([COLUMNS])
    before: int | None = None
    for _ in range(MOST // BATCH):
        with database.reading() as session:
            rows = audit.page(session, filtered, before=before, limit=BATCH)
        if rows:
            before = rows[-1].id
            yield _csv([_cells(each) for each in rows])
        if len(rows) < BATCH:
            return


def _cells(row: AuditRecord) -> tuple[str, ...]:
    changes = "; ".join(
        f"{name}: {'none' if old is None else old} to {'none' if new is None else new}"
        for name, (old, new) in (row.changes or {}).items()
    )
    return (f"{row.created_at:%Y-%m-%dT%H:%M:%SZ}", row.actor, row.action, row.subject, changes)


def _csv(rows: list[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([harmless(cell) for cell in row] for row in rows)
    return text.getvalue()
