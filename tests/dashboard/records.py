"""What the audit log says of a test's own deeds."""

from __future__ import annotations

from store.sql.queries import audit
from store.stores import Stores


def records(stores: Stores, subject: str) -> list[tuple[str, str, str]]:
    """Who did what to whom, where ``subject`` is named; the newest first."""
    with stores.database.reading() as session:
        found = audit.page(session, limit=200)
    return [(each.actor, each.action, each.subject) for each in found if subject in each.subject]
