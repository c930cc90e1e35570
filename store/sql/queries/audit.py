"""The audit log: security-relevant actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, delete, or_, select
from sqlalchemy.orm import Session

from store.sql.models import AuditRecord

# The actor of commands that are run in a shell on the machine.
COMMAND_LINE = "command line"
# The actor of a failed sign-in.
STRANGER = "not signed in"
# Values of changes are cut to this length: the log is kept for long.
MAX_VALUE = 256

# The least days that a record is kept; the triggers of the table know it too.
MIN_DAYS = 30

# What one actor does at once, such as inviting fifty users, is one entry.
AT_ONCE = timedelta(seconds=2)

# The old and the new value of each field that changed.
Changes = Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Records of the audit log; empty fields exclude nothing.

    ``text`` is a part of actor, action or subject; the next three are parts of one of these. ``since`` and
    ``before`` bound the time, the latter exclusively. Case is ignored, at least for ASCII letters. An action
    is found with or without spaces between its words.
    """

    text: str = ""
    actor: str = ""
    action: str = ""
    subject: str = ""
    since: datetime | None = None
    before: datetime | None = None

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """The conditions of a query."""
        if self.text:
            columns = (AuditRecord.actor, AuditRecord.subject)
            yield or_(*(_contains(each, self.text) for each in columns), _is_action(self.text))
        if self.actor:
            yield _contains(AuditRecord.actor, self.actor)
        if self.action:
            yield _is_action(self.action)
        if self.subject:
            yield _contains(AuditRecord.subject, self.subject)
        if self.since is not None:
            yield AuditRecord.created_at >= self.since
        if self.before is not None:
            yield AuditRecord.created_at < self.before


EVERYTHING = AuditFilter()


def record(
    session: Session, *, actor: str, action: str, subject: str, changes: Changes | None = None
) -> None:
    """Record an action in the transaction that performs it.

    ``changes`` are of fields that are no secrets; fields whose value stays the same are left out.
    """
    # Truncated: two long names together may exceed the column, and the action must not fail for that.
    row = AuditRecord(actor=actor[:128], action=action, subject=subject[:256], changes=_changed(changes))
    session.add(row)


def purge(session: Session, *, before: datetime, limit: int) -> int:
    """Delete up to ``limit`` records that were made before a moment; returns how many.

    The database refuses to delete one that is younger than ``MIN_DAYS``.
    """
    some = select(AuditRecord.id).where(AuditRecord.created_at < before).limit(limit)
    gone = delete(AuditRecord).where(AuditRecord.id.in_(some)).returning(AuditRecord.id)
    return len(session.execute(gone).all())


def host_of(url: str) -> str:
    """A URL as it may stand in a record: paths and queries of webhooks often hold a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/…"


def page(
    session: Session,
    filtered: AuditFilter | str = EVERYTHING,
    *,
    before: int | None = None,
    limit: int | None = None,
) -> Sequence[AuditRecord]:
    """Records, the newest first, whose id is below ``before``. A string is a search in all columns."""
    wanted = AuditFilter(text=filtered) if isinstance(filtered, str) else filtered
    query = select(AuditRecord).where(*wanted.conditions())
    if before is not None:
        query = query.where(AuditRecord.id < before)
    return session.scalars(query.order_by(AuditRecord.id.desc()).limit(limit)).all()


def _contains(column: Any, text: str) -> ColumnElement[bool]:
    # Wildcards of LIKE are escaped.
    found: ColumnElement[bool] = column.icontains(text, autoescape=True)
    return found


def _is_action(text: str) -> ColumnElement[bool]:
    return or_(_contains(AuditRecord.action, text), _contains(AuditRecord.action, text.replace(" ", "")))


def _changed(changes: Changes | None) -> dict[str, list[str | None]] | None:
    different = {name: pair for name, pair in (changes or {}).items() if pair[0] != pair[1]}
    return {name: [_text(old), _text(new)] for name, (old, new) in different.items()} or None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, datetime):
        text = f"{value:%Y-%m-%dT%H:%M:%SZ}"
    elif isinstance(value, Iterable):
        text = ", ".join(map(str, value))
    else:
        text = str(value)
    return text if text is None or len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"


def grouped(rows: Sequence[AuditRecord]) -> list[list[AuditRecord]]:
    """Records in entries: neighbours of one actor and one action, each at most ``AT_ONCE`` apart."""
    entries: list[list[AuditRecord]] = []
    for row in rows:
        above = entries[-1][-1] if entries else None
        alike = above is not None and (above.actor, above.action) == (row.actor, row.action)
        if alike and above is not None and abs(above.created_at - row.created_at) <= AT_ONCE:
            entries[-1].append(row)
        else:
            entries.append([row])
    return entries
