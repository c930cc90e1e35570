"""Earlier ids of an account's main calendar.

Microsoft gives a default calendar another id when a mailbox moves, and clients keep the earlier one. The
adapter then reads and writes the main calendar.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from functools import cached_property

from store.stores import Stores

# Seconds for which an earlier id is known.
KEPT_SECONDS = 400 * 86_400


class FormerCalendars(Set[str]):
    """The earlier ids of one connection's main calendar, loaded when they are first needed."""

    def __init__(self, stores: Stores, connection_id: str) -> None:
        self._stores = stores
        self._connection_id = connection_id

    @cached_property
    def _ids(self) -> frozenset[str]:
        known = self._stores.redis.smembers(_key(self._connection_id))
        return frozenset(each.decode() if isinstance(each, bytes) else each for each in known)

    def __contains__(self, calendar: object) -> bool:
        return calendar in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def note(stores: Stores, connection_id: str, calendar: str) -> None:
    """Store an earlier id of the main calendar."""
    with stores.redis.pipeline(transaction=False) as pipe:
        pipe.sadd(_key(connection_id), calendar)
        pipe.expire(_key(connection_id), KEPT_SECONDS)
        pipe.execute()


def _key(connection_id: str) -> str:
    return f"former-main-calendars:{connection_id}"
