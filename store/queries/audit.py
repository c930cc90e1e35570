"""The audit log: what has to be answerable later."""

from __future__ import annotations

from sqlalchemy.orm import Session

from store.models import AuditRecord


def record(session: Session, *, actor: str, action: str, subject: str) -> None:
    """Write down who did what to whom, in the transaction of the deed."""
    session.add(AuditRecord(actor=actor, action=action, subject=subject))
