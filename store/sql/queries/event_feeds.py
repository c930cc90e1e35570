"""The known events of watched calendars: states that only workers read, encrypted."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.orm import Session

from store.cache.busy_cache import CalendarKey
from store.security.crypto import Keyring
from store.sql.database import changed_rows, insert_or_update
from store.sql.models import EventFeed, now


def digest(calendar_id: str) -> str:
    """The name of a calendar in a row."""
    return hashlib.sha256(calendar_id.encode()).hexdigest()


def associated_data(connection_id: str, calendar: str) -> str:
    """The text to which the state of a row is bound; ``calendar`` is a digest."""
    return f"events:{connection_id}:{calendar}"


def find(session: Session, key: CalendarKey) -> EventFeed | None:
    """The row of a calendar; None before its first comparison."""
    return session.get(EventFeed, (key.connection, digest(key.calendar)))


def opened(row: EventFeed, keyring: Keyring) -> str:
    """The state in a row.

    :raise Undecipherable: when no key decrypts it
    """
    return keyring.decrypt(row.sealed_state, associated_data(row.connection_id, row.calendar))


def report(session: Session, key: CalendarKey) -> bool:
    """Note that the provider has reported a change; returns whether the calendar is followed."""
    followed = update(EventFeed).where(*_row(key)).values(reported_at=now())
    return bool(changed_rows(session, followed))


def store(
    session: Session,
    key: CalendarKey,
    state: str,
    keyring: Keyring,
    *,
    after: int | None,
    began: datetime,
) -> bool:
    """Store the state that follows the version ``after``; False if another one follows it already.

    ``began`` is when the comparison began: it may not know changes that were reported later.
    """
    calendar = digest(key.calendar)
    sealed = keyring.encrypt(state, associated_data(key.connection, calendar))
    if after is None:
        row = {
            "connection_id": key.connection,
            "calendar": calendar,
            "sealed_state": sealed,
            "synced_at": began,
        }
        insert = insert_or_update(session, EventFeed).values(row).on_conflict_do_nothing()
        return bool(changed_rows(session, insert))
    same = update(EventFeed).where(*_row(key), EventFeed.version == after)
    values = {"sealed_state": sealed, "version": after + 1, "synced_at": began}
    return bool(changed_rows(session, same.values(values)))


def compared_at(session: Session, connection_ids: Collection[str]) -> dict[CalendarKey, datetime]:
    """When the calendars of some connections were last compared; the calendars by their digests.

    Those of which a change was reported since are left out.
    """
    query = select(EventFeed.connection_id, EventFeed.calendar, EventFeed.synced_at).where(
        EventFeed.connection_id.in_(connection_ids),
        or_(EventFeed.reported_at.is_(None), EventFeed.reported_at < EventFeed.synced_at),
    )
    return {
        CalendarKey(connection, calendar): moment for connection, calendar, moment in session.execute(query)
    }


def forget(session: Session, *, before: datetime | None = None) -> int:
    """Delete the states that were stored before a time, or all; returns how many."""
    old = delete(EventFeed)
    return changed_rows(session, old if before is None else old.where(EventFeed.synced_at < before))


def _row(key: CalendarKey) -> tuple[ColumnElement[bool], ...]:
    return EventFeed.connection_id == key.connection, EventFeed.calendar == digest(key.calendar)
