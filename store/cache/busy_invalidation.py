"""Invalidates every connection's cache of a calendar that has changed."""

from __future__ import annotations

from store.cache.busy_buckets import CalendarKey
from store.cache.cache_tags import GOOGLE, PRIMARY, Identified, change_tags, write_tags
from store.stores import Stores


def after_unclear_write(stores: Stores, of: Identified, key: CalendarKey) -> None:
    """Invalidate after a write whose outcome is unknown, using the stored data of the connection."""
    stores.busy.invalidate_tags(write_tags(of, key.calendar, _owner(stores, of, key)), [key.connection])


def after_notification(stores: Stores, of: Identified, key: CalendarKey) -> None:
    """Invalidate after a provider's notification. Of many for one change, only the first finds entries."""
    stores.busy.invalidate_calendar(key)
    stores.busy.invalidate_tags(change_tags(of, key.calendar, _owner(stores, of, key)))


def _owner(stores: Stores, of: Identified, key: CalendarKey) -> str:
    if of.provider == GOOGLE or key.calendar in (PRIMARY, of.main_calendar_id):
        return ""
    return stores.calendar_lists.owners(key.connection, [key.calendar]).get(key.calendar, "")
