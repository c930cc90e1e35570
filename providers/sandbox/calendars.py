"""Calendars and their events, in provider-neutral form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from providers.sandbox.times import local_midnight


@dataclass(slots=True)
class Event:
    """One event, or the master of a series.

    ``start`` and ``end`` are instants in milliseconds; those of an all-day event are floating midnights.
    ``fields`` holds the writable fields in the provider's spelling. ``version`` grows with each write.
    """

    id: str
    start: int
    end: int
    start_zone: str
    end_zone: str
    all_day: bool
    fields: dict[str, Any]
    created: int
    version: int
    updated: int
    deleted: bool = False
    sequence: int = 0
    rule: tuple[str, ...] = ()
    series: str | None = None
    original_start: int | None = None


@dataclass(eq=False)
class Contents:
    """The events of a calendar, shared by every list entry for that calendar."""

    events: dict[str, Event] = field(default_factory=dict)
    # Graph's record of each transactionId: the event it made, and a digest of the request.
    transactions: dict[str, tuple[str, str]] = field(default_factory=dict)
    # The version of the calendar at the removal of each event that left no trace.
    dropped: dict[str, int] = field(default_factory=dict)
    # Called after each write with the event's id and "created", "updated" or "deleted".
    watchers: dict[str, Callable[[str, str], None]] = field(default_factory=dict)
    # Values that each list entry has computed from the events. Cleared when one of them changes.
    derived: dict[Calendar, dict[Any, Any]] = field(default_factory=dict)


@dataclass(eq=False)
class Calendar:
    """One calendar on an account's list.

    ``error_reason`` is an error that Google's freeBusy answers for it. ``owner`` is the address of another
    account that shares the calendar with this one.
    """

    id: str
    subject: str
    time_zone: str
    primary: bool = False
    access_role: str = "owner"
    error_reason: str | None = None
    owner: str | None = None
    # Creates the events on first access, because ten thousand accounts may be created at once.
    plan: Callable[[], list[Event]] | None = None
    contents: Contents = field(default_factory=Contents)

    @property
    def events(self) -> dict[str, Event]:
        """The events by id; change them only through ``put``."""
        if self.plan is not None:
            plan, self.plan = self.plan, None
            self.contents.events.update((event.id, event) for event in plan())
        return self.contents.events

    @property
    def transactions(self) -> dict[str, tuple[str, str]]:
        """The transactionIds of the events, as in ``Contents``."""
        return self.contents.transactions

    @property
    def watchers(self) -> dict[str, Callable[[str, str], None]]:
        """The callbacks after a write, as in ``Contents``."""
        return self.contents.watchers

    @property
    def derived(self) -> dict[Any, Any]:
        """Values computed from the events for this list entry. Empty after a write through any entry."""
        return self.contents.derived.setdefault(self, {})

    def put(self, event: Event) -> None:
        """Add an event or replace it."""
        kind = "deleted" if event.deleted else "updated" if event.id in self.events else "created"
        self.events[event.id] = event
        self._written(event.id, kind)

    def drop(self, event_id: str, version: int) -> None:
        """Remove an event without a trace, except that its id is known to be dropped at ``version``."""
        del self.events[event_id]
        self.contents.dropped[event_id] = version
        self._written(event_id, "deleted")

    def _written(self, event_id: str, kind: str) -> None:
        self.contents.derived.clear()
        for watcher in self.watchers.values():
            watcher(event_id, kind)

    @property
    def version(self) -> int:
        """That of the last change."""
        versions = (event.version for event in self.events.values())
        return max([*versions, *self.contents.dropped.values()], default=0)

    def edges(self, event: Event) -> tuple[int, int]:
        """The instants an event spans; an all-day event goes from midnight to midnight of this zone."""
        if not event.all_day:
            return event.start, event.end
        return local_midnight(event.start, self.time_zone), local_midnight(event.end, self.time_zone)
