"""Accounts at a server of each provider, and faults, for the generic suite (``test_every_provider.py``).

A new provider adds one line to ``WORLDS`` and a class that fits ``World``. Its server is an emulation, or a
real one that the test starts; either way the adapter reaches it over a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, auto
from typing import Any, Protocol

import pytest

from providers.base import Account, CalendarProvider
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.sandbox.client import Sandbox
from tests.providers.addresses import google_at, microsoft_at


@dataclass(frozen=True)
class Entry:
    """An event that another application has made in the main calendar.

    The edges are aware datetimes, or dates of an all-day event, whose ``end`` is the day after its last one.
    ``free``: its owner is not busy during it. ``invited``: another person has invited ada@example.com.
    """

    start: datetime | date
    end: datetime | date
    free: bool = False
    invited: bool = False
    # A rule of RFC 5545 without its name, such as FREQ=DAILY;COUNT=3.
    rule: str = ""


class Fault(Enum):
    """A way in which the server treats a call."""

    # A server error.
    DOWN = auto()
    # Success, with a body that is not of the protocol.
    UNREADABLE = auto()
    # The connection closes without an answer, after the call was executed.
    NO_ANSWER = auto()
    # 429 and ``Retry-After: 60``, longer than any deadline of the suite.
    THROTTLED = auto()
    # 401, also with renewed credentials.
    REJECTED = auto()


class World(Protocol):
    """One provider with a server of its own, without accounts and faults at the beginning of a test."""

    name: str
    adapter: CalendarProvider
    # A number of calendars that the provider returns on more than one page; 1 if its lists have one page.
    many_calendars: int
    # A number of events of one day that the provider returns on more than one page, at most 1440.
    many_events: int

    def account(self, events: Sequence[Entry] = (), *, calendars: int = 1, time_zone: str = "UTC") -> Account:
        """An account with these events in its main calendar, and further empty calendars up to ``calendars``.

        ``time_zone`` (IANA) is the zone of the account and of its calendars. The account has every right that
        the provider grants; a provider whose calendars cannot be changed has scopes without writing.
        """
        ...

    def fault(self, fault: Fault, *, times: int | None = None) -> None:
        """From now on the server treats calls so: the next ``times`` ones, or all."""
        ...

    def mend(self) -> None:
        """End all faults."""
        ...

    def calls(self) -> int:
        """The number of calls that the server has received so far."""
        ...


FAULTS: dict[Fault, dict[str, Any]] = {
    Fault.DOWN: {"status": 503},
    Fault.UNREADABLE: {"body": "html"},
    Fault.NO_ANSWER: {"body": "reset"},
    Fault.THROTTLED: {"status": 429, "retry_after": 60},
    Fault.REJECTED: {"status": 401},
}
# The calls of reads: the token endpoint, which other faults concern too, rejects no renewal.
READS = {
    "google": ("freebusy.query", "calendarList.list", "events.list"),
    "microsoft": ("batch", "calendars.list", "calendarView.list"),
}


class SandboxWorld:
    """Google and Microsoft 365 at the sandbox."""

    def __init__(
        self, name: str, sandbox: Sandbox, adapter: CalendarProvider, connect: Callable[..., Account]
    ) -> None:
        self.name = name
        self.adapter = adapter
        self.many_calendars = 260
        self.many_events = 1200
        self.sandbox = sandbox
        self._connect = connect

    def account(self, events: Sequence[Entry] = (), *, calendars: int = 1, time_zone: str = "UTC") -> Account:
        others = [{"id": self._id(number), "subject": f"Calendar {number}"} for number in range(1, calendars)]
        made = self.sandbox.account(
            self.name,
            "ada@example.com",
            time_zone=time_zone,
            calendars=[{"subject": "Main", "primary": True}, *others],
            events=[_seed(each) for each in events],
        )
        return self._connect(made)

    def fault(self, fault: Fault, *, times: int | None = None) -> None:
        operations: list[str | None] = [None]
        if fault is Fault.REJECTED:
            operations = [f"{self.name}.{each}" for each in READS[self.name]]
        for operation in operations:
            self.sandbox.fault(provider=self.name, operation=operation, times=times, **FAULTS[fault])

    def mend(self) -> None:
        self.sandbox.clear_faults()

    def calls(self) -> int:
        return self.sandbox.requests().total

    def _id(self, number: int) -> str:
        return f"c{number}@group.calendar.google.com" if self.name == "google" else f"AAMk{number}="


def _seed(entry: Entry) -> dict[str, Any]:
    shown = {"showAs": "free"} if entry.free else {}
    if entry.invited:
        shown["responseStatus"] = "needsAction"
    if entry.rule:
        shown["recurrence"] = f"RRULE:{entry.rule}"
    if isinstance(entry.start, datetime) and isinstance(entry.end, datetime):
        edges = {"start": entry.start.astimezone(UTC), "end": entry.end.astimezone(UTC)}
        return {name: f"{edge:%Y-%m-%dT%H:%M:%SZ}" for name, edge in edges.items()} | shown
    return {"start": str(entry.start), "end": str(entry.end), "allDay": True} | shown


def _google(request: pytest.FixtureRequest) -> World:
    sandbox: Sandbox = request.getfixturevalue("sandbox")
    adapter = Google(google_at(f"{sandbox.url}/google"))
    return SandboxWorld("google", sandbox, adapter, request.getfixturevalue("connect"))


def _microsoft(request: pytest.FixtureRequest) -> World:
    sandbox: Sandbox = request.getfixturevalue("sandbox")
    adapter = Microsoft(microsoft_at(f"{sandbox.url}/microsoft"))
    return SandboxWorld("microsoft", sandbox, adapter, request.getfixturevalue("connect"))


# Makes the world of each provider; it may ask for fixtures, which end it with the test.
WORLDS: dict[str, Callable[[pytest.FixtureRequest], World]] = {
    "google": _google,
    "microsoft": _microsoft,
    "caldav": lambda request: request.getfixturevalue("radicale_world"),
    "xandikos": lambda request: request.getfixturevalue("xandikos_world"),
    "ics": lambda request: request.getfixturevalue("feed_world"),
}


def each_world(*, but: str = "") -> list[Any]:
    """The parameters of a fixture for each world; a second CalDAV server belongs to the slow tests."""
    names = [each for each in WORLDS if each != but]
    return [pytest.param(each, marks=pytest.mark.slow) if each == "xandikos" else each for each in names]
