"""Reads the audit log."""

from __future__ import annotations

from sqlalchemy import select

from store.sql.models import AuditRecord
from store.sql.queries import audit
from store.stores import Stores


def actions(stores: Stores, *, actor: str) -> list[tuple[str, str]]:
    """The action and subject of each record of an actor, the oldest first."""
    with stores.database.reading() as session:
        query = select(AuditRecord).where(AuditRecord.actor == actor).order_by(AuditRecord.id)
        return [(each.action, each.subject) for each in session.scalars(query)]


def records(stores: Stores, subject: str) -> list[tuple[str, str, str]]:
    """The actor, action and subject of each record whose subject contains ``subject``, the newest first."""
    with stores.database.reading() as session:
        found = audit.page(session, limit=200)
    return [(each.actor, each.action, each.subject) for each in found if subject in each.subject]
