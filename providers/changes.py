"""The part ``changes`` of a provider: the changes in a calendar since it was last read.

Two ways to find it are common to several providers: ids that have changed, whose events are looked up in the
list of all events; and a list that is compared with the earlier one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec

from providers.base import Account
from providers.errors import SyncTokenExpired
from providers.events import Event

State = TypeVar("State")

# A change is missed with a probability of 2 ** -64.
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class ChangePage:
    """A page of changes in a calendar, over a range of time.

    An entry replaces what a copy of the calendar has by its id: the event, and all occurrences of a series.
    ``deleted`` are ids without an event in the range, ids of series among them, and come before ``updated``.
    A changed series has its id in ``deleted``, and all of its occurrences in the range in ``updated`` of the
    same page. ``sync_token`` is for the next page, and ``more`` says whether that is there already.
    """

    updated: tuple[Event, ...]
    deleted: tuple[str, ...]
    sync_token: str
    more: bool = False


class ChangeFeed(Protocol):
    """Reads the changes in calendars of one provider. Errors and deadlines as in ``CalendarProvider``."""

    def changes(
        self,
        account: Account,
        calendar_id: str,
        start: int,
        end: int,
        sync_token: str | None,
        *,
        deadline: float,
    ) -> ChangePage:
        """The next page of changes of events that overlap ``[start, end)`` in UTC milliseconds, or did.

        The events are those of ``CalendarProvider.events``. ``sync_token`` is that of the page before, for
        the same calendar and range; without it the pages begin with all events of the range.

        :raise SyncTokenExpired: when the provider no longer knows what has changed since
        """
        ...


def token_expired(provider: str, operation: str) -> SyncTokenExpired:
    """The error for a sync token that the provider no longer knows."""
    return SyncTokenExpired(f"{provider} no longer knows what has changed since", operation=operation)


def decoded(sync_token: str, kind: type[State], provider: str, operation: str) -> State:
    """The state in a sync token.

    :raise SyncTokenExpired: when another version of Almanac has encoded it
    """
    try:
        return msgspec.json.decode(sync_token, type=kind)
    except msgspec.DecodeError:
        raise token_expired(provider, operation) from None


def encoded(state: object) -> str:
    """The sync token of a state."""
    return msgspec.json.encode(state, order="deterministic").decode()


def changed_ids(ids: Iterable[str], listed: Iterable[Event]) -> tuple[tuple[Event, ...], tuple[str, ...]]:
    """The fields ``updated`` and ``deleted`` for changed ids of events and of series.

    ``listed`` are all events of the range, or of a part of it that has all events of these ids.
    """
    wanted = dict.fromkeys(ids)
    updated = tuple(each for each in listed if each.id in wanted or each.recurring_event_id in wanted)
    found = {each.id for each in updated}
    return updated, tuple(each for each in wanted if each not in found)


# Digests of events and of whole series, by their ids.
Digests = dict[str, str]


def compared(
    listed: Sequence[Event], version: Callable[[Event], str], known: Digests | None
) -> tuple[tuple[Event, ...], tuple[str, ...], Digests]:
    """The changes between two lists of all events of the range, and digests of the new one.

    ``version`` returns a text that changes with an event. ``known`` are the digests of the earlier list, None
    for the first one, which has no deleted ids.
    """
    series: dict[str, list[str]] = {}
    for each in listed:
        series.setdefault(each.recurring_event_id or each.id, []).append(f"{each.id}\n{version(each)}")
    digests = {name: _digest(versions) for name, versions in series.items()}
    before = known or {}
    changed = [name for name in before | digests if before.get(name) != digests.get(name)]
    updated, deleted = changed_ids(changed, listed)
    return updated, () if known is None else deleted, digests


def _digest(versions: Sequence[str]) -> str:
    content = "\n".join(sorted(versions)).encode()
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
