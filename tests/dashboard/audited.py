"""What the audit log says."""

from __future__ import annotations

from sqlalchemy import select

from store.sql.models import AuditRecord
from store.stores import Stores


def deeds(stores: Stores, *, actor: str) -> list[tuple[str, str]]:
    """What somebody did to whom, in the order of the deeds."""
    with stores.database.reading() as session:
        query = select(AuditRecord).where(AuditRecord.actor == actor).order_by(AuditRecord.id)
        return [(each.action, each.subject) for each in session.scalars(query)]
