"""The known events of a calendar, and their changes since: the comparison behind ``event.*``.

A single event is compared by itself. A change of several occurrences of a series is one change of the
series: a person who moves a weekly meeting makes one change. If one occurrence differs, it is a change of
this occurrence.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Container, Iterable

import msgspec

from providers.changes import ChangePage
from providers.event_views import event_view
from providers.events import Event
from store.sql.queries.webhook_events import EventChange, WebhookEvent

DIGEST_BYTES = 8


class Known(msgspec.Struct, frozen=True, array_like=True):
    """An event as it was last seen: a digest of what may change, and its end in UTC milliseconds."""

    digest: bytes
    end: int


# Events by their ids, in groups: a single event, or the occurrences of a series, by its id.
Groups = dict[str, dict[str, Known]]


class State(msgspec.Struct, frozen=True, array_like=True):
    """The events of ``[start, end)``, in UTC milliseconds, and the provider's token for what follows."""

    start: int
    end: int
    sync_token: str
    groups: Groups


def packed(state: State) -> str:
    """The state as text."""
    return base64.b64encode(zlib.compress(msgspec.msgpack.encode(state))).decode()


def unpacked(text: str) -> State | None:
    """The state in a text; None if another version of Almanac has packed it."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(base64.b64decode(text)), type=State)
    except (ValueError, zlib.error, msgspec.DecodeError):
        return None


class Following:
    """Takes the pages of a calendar one by one, and compares the outcome with the state before.

    ``before`` is None at the first comparison, which finds no changes. ``begins``: the pages begin with all
    events of ``[start, end)``; otherwise they have the changes since ``before`` only.
    """

    def __init__(self, before: State | None, start: int, end: int, *, begins: bool) -> None:
        self._before = before
        self._start, self._end = start, end
        known = {} if begins or before is None else before.groups
        self._groups: Groups = {name: dict(events) for name, events in known.items()}
        self._events: dict[str, Event] = {}
        self._sync_token = ""

    def take(self, page: ChangePage) -> None:
        """Apply a page."""
        for name in page.deleted:
            if self._groups.pop(name, None) is None:
                self._remove_occurrence(name)
        for event in page.updated:
            group = self._groups.setdefault(event.recurring_event_id or event.id, {})
            group[event.id] = Known(_digest(event), event.end)
            self._events[event.id] = event
        self._sync_token = page.sync_token

    def state(self) -> State:
        """The state after the pages."""
        return State(self._start, self._end, self._sync_token, self._groups)

    def changes(self) -> list[EventChange]:
        """The changes, in the order in which the ids were first seen."""
        if self._before is None:
            return []
        names = dict.fromkeys([*self._before.groups, *self._groups])
        found = (self._change(name, self._before) for name in names)
        return [each for each in found if each is not None]

    def _remove_occurrence(self, event: str) -> None:
        for name, group in self._groups.items():
            if event in group:
                del group[event]
                if not group:
                    del self._groups[name]
                return

    def _change(self, name: str, before: State) -> EventChange | None:
        old, new = before.groups.get(name, {}), self._groups.get(name, {})
        changed = [each for each in (old | new) if _differ(old.get(each), new.get(each))]
        # An event that time has taken out of the range, or brought into it, has not changed.
        changed = [each for each in changed if not self._left(old.get(each)) and not self._entered(each, old)]
        if not changed:
            return None
        one = changed[0]
        if len(changed) == 1 and one != name:
            return EventChange(_kind(one in old, one in new), one, name, self._content([one], new))
        # A single event may have become a series, and the reverse.
        series = None if set(new or old) == {name} else name
        return EventChange(_kind(bool(old), bool(new)), name, series, self._content(changed, new))

    def _left(self, known: Known | None) -> bool:
        return known is not None and known.end <= self._start

    def _entered(self, event: str, old: dict[str, Known]) -> bool:
        found = self._events.get(event)
        before = self._before
        return event not in old and found is not None and before is not None and found.start >= before.end

    def _content(self, events: Iterable[str], new: Container[str]) -> dict[str, object] | None:
        seen = (self._events[each] for each in events if each in new and each in self._events)
        first = min(seen, key=lambda each: (each.start, each.id), default=None)
        return None if first is None else event_view(first, first.calendar_id)


def _kind(existed: bool, exists: bool) -> WebhookEvent:
    if existed and exists:
        return WebhookEvent.EVENT_UPDATED
    return WebhookEvent.EVENT_CREATED if exists else WebhookEvent.EVENT_DELETED


def _differ(old: Known | None, new: Known | None) -> bool:
    return (old and old.digest) != (new and new.digest)


def _digest(event: Event) -> bytes:
    """A digest that changes with an event. Without an ETag, the provider's whole record counts."""
    version = event.etag or msgspec.json.encode(event.original, order="sorted").decode()
    text = f"{event.start} {event.end} {event.subject} {version}"
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()
