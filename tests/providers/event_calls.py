"""The event calls of an adapter, each with its own deadline, and the drafts and times of their tests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from providers.base import Account, CalendarProvider, Failed
from providers.events import (
    Changes,
    CreateResult,
    Draft,
    Event,
    Guest,
    Moment,
    Reminders,
    ShowAs,
    Visibility,
)
from providers.timestamps import DAY, instant
from tests.providers.sandbox.callers import Caller

START = instant("2026-12-03T00:00:00Z")
END = instant("2026-12-04T00:00:00Z")
HOUR = DAY // 24
NINE, TEN = START + 9 * HOUR, START + 10 * HOUR
MEETING = {"subject": "Review", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
ALL_DAY = {"subject": "Holiday", "start": "2026-12-03", "end": "2026-12-04", "allDay": True}
TIMED = Changes(subject="Review", start=Moment(NINE), end=Moment(TEN))


# A change of every field that is written; the first guest is known already.
EVERYTHING: dict[str, Any] = {
    "subject": "New",
    "description": "New",
    "location": "New",
    "start": Moment(TEN, "Asia/Tokyo"),
    "end": Moment(TEN + HOUR, "Asia/Tokyo"),
    "attendees": (Guest("bob@example.com", name="Bob"), "grace@example.com"),
    "meta_id": "m-1",
    "show_as": ShowAs.FREE,
    "visibility": Visibility.PRIVATE,
    "reminders": Reminders((60,)),
}


class Calls:
    """An adapter with one account; ``raw`` calls the provider directly, as another application would."""

    def __init__(self, provider: CalendarProvider, account: Account, raw: Caller, left: float = 20.0) -> None:
        self.provider = provider
        self.account = account
        self.raw = raw
        self.left = left

    @property
    def deadline(self) -> float:
        return time.monotonic() + self.left

    def events(self, *ids: str, start: int = START, end: int = END) -> dict[str, Any]:
        calendars = ids or ("primary",)
        return self.provider.events(self.account, calendars, start, end, deadline=self.deadline)

    def listed(self, start: int = START, end: int = END, calendar: str = "primary") -> list[Event]:
        """The events of a calendar, which must be readable."""
        found = self.events(calendar, start=start, end=end)[calendar]
        assert not isinstance(found, Failed), found
        return list(found)

    def event(self, event_id: str, calendar: str = "primary") -> Event:
        return self.provider.event(self.account, calendar, event_id, deadline=self.deadline)

    def find(self, meta_id: str, calendar: str = "primary") -> Event:
        return self.provider.find_event(self.account, calendar, meta_id, deadline=self.deadline)

    def create(
        self, content: Changes, calendar: str = "primary", *, key: str = "", **more: Any
    ) -> CreateResult:
        made = draft(content, key, **more)
        return self.provider.create_event(self.account, calendar, made, deadline=self.deadline)

    def update(
        self, event_id: str, calendar: str = "primary", etag: str | None = None, **changes: Any
    ) -> Event:
        return self.provider.update_event(
            self.account, calendar, event_id, Changes(**changes), etag=etag, deadline=self.deadline
        )

    def delete(
        self,
        event_id: str,
        calendar: str = "primary",
        notify: bool | None = None,
        etag: str | None = None,
    ) -> None:
        self.provider.delete_event(
            self.account, calendar, event_id, notify=notify, etag=etag, deadline=self.deadline
        )


def bare(event: Event) -> Event:
    """The event without the provider's record, which differs between a list and a single event."""
    return replace(event, original={})


def draft(content: Changes, key: str = "", fingerprint: str = "a", **more: Any) -> Draft:
    """A draft; its key is derived from ``key``, or random when that is empty."""
    digest = sha256((key or f"{time.monotonic_ns()}").encode()).hexdigest()
    return Draft(content, digest, sha256(fingerprint.encode()).hexdigest(), **more)


# The operations of ``every_call``, as errors name them.
OPERATIONS = ["list", "list", "get", "insert", "update", "delete"]


def every_call(calls: Calls, event_id: str) -> list[Callable[[], Any]]:
    """Each of the calls, those about one event with an id."""
    return [
        lambda: calls.events(),
        lambda: calls.find("m"),
        lambda: calls.event(event_id),
        lambda: calls.create(TIMED),
        lambda: calls.update(event_id, subject="x"),
        lambda: calls.delete(event_id),
    ]
