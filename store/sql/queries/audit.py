"""The audit log: security-relevant actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from store.sql.models import AuditRecord

# The actor of commands that are run in a shell on the machine.
COMMAND_LINE = "command line"


def record(session: Session, *, actor: str, action: str, subject: str) -> None:
    """Record an action in the transaction that performs it."""
    # Truncated: two long names together may exceed the column, and the action must not fail for that.
    session.add(AuditRecord(actor=actor[:128], action=action, subject=subject[:256]))


def page(
    session: Session, text: str = "", *, before: int | None = None, limit: int | None = None
) -> Sequence[AuditRecord]:
    """Records, the newest first, beginning before ``before``.

    ``text`` is a part of the actor, action or subject. Case is ignored, at least for ASCII letters. An action
    is found with or without spaces between its words.
    """
    query = select(AuditRecord).where(*_found(text))
    if before is not None:
        query = query.where(AuditRecord.id < before)
    return session.scalars(query.order_by(AuditRecord.id.desc()).limit(limit)).all()


def _found(text: str) -> Iterator[ColumnElement[bool]]:
    if text:
        # Wildcards of LIKE are escaped.
        columns = (AuditRecord.actor, AuditRecord.action, AuditRecord.subject)
        parts = [column.icontains(text, autoescape=True) for column in columns]
        yield or_(*parts, AuditRecord.action.icontains(text.replace(" ", ""), autoescape=True))
