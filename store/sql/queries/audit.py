"""The audit log: what has to be answerable later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.orm import Session

from store.sql.models import AuditRecord

# The actor of what is done by whoever has a shell on the machine.
COMMAND_LINE = "command line"


def record(session: Session, *, actor: str, action: str, subject: str) -> None:
    """Write down who did what to whom, in the transaction of the deed."""
    # Two long names together may be longer than the column: a deed must not fail for its record.
    session.add(AuditRecord(actor=actor[:128], action=action, subject=subject[:256]))


def page(
    session: Session, text: str = "", *, before: int | None = None, limit: int | None = None
) -> Sequence[AuditRecord]:
    """Records, the newest first, those before ``before``.

    ``text`` is a part of who acted, of the deed or of its subject; letters, at least those of ASCII, in any
    case. A deed is found with spaces between its words or without.
    """
    query = select(AuditRecord).where(*_found(text))
    if before is not None:
        query = query.where(AuditRecord.id < before)
    return session.scalars(query.order_by(AuditRecord.id.desc()).limit(limit)).all()


def _found(text: str) -> Iterator[ColumnElement[bool]]:
    if text:
        # What stands for any character elsewhere stands for itself here.
        columns = (AuditRecord.actor, AuditRecord.action, AuditRecord.subject)
        parts = [column.icontains(text, autoescape=True) for column in columns]
        yield or_(*parts, AuditRecord.action.icontains(text.replace(" ", ""), autoescape=True))
