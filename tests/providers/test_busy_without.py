"""The busy periods of a calendar without one event, at both providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from providers.base import Account, CalendarProvider
from providers.errors import NotFound, ProviderError
from providers.events import Moment
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.sandbox.client import Sandbox
from tests.app.at_provider import AtProvider
from tests.providers.event_calls import END, HOUR, NINE, START, TIMED, Calls
from tests.providers.sandbox.callers import google, graph

VIEW = {"google": "google.events.list", "microsoft": "microsoft.calendarView.list"}
FREE = {"google": {"transparency": "transparent"}, "microsoft": {"showAs": "free"}}
BUSY = {"google": {}, "microsoft": {"showAs": "tentative"}}


class World:
    """An account; its events are created as another application does."""

    def __init__(self, sandbox: Sandbox, provider: CalendarProvider, connect: Callable[..., Account]) -> None:
        self.name = str(provider.name)
        calendars = (
            [{"id": "AAMkmain=", "primary": True}] if self.name == "microsoft" else [{"primary": True}]
        )
        self.account = sandbox.account(self.name, "ada@example.com", calendars=calendars, time_zone="UTC")
        raw = {"google": google, "microsoft": graph}[self.name](sandbox, self.account)
        self.calls = Calls(provider, connect(self.account), raw)
        self.there = AtProvider(sandbox, self.account)

    def when(self, start: int, end: int) -> dict[str, Any]:
        zone = {} if self.name == "google" else {"timeZone": "UTC"}
        suffix = "Z" if self.name == "google" else ""
        hours = {"start": start, "end": end}
        return {n: {"dateTime": f"2026-12-03T{h:02d}:00:00{suffix}", **zone} for n, h in hours.items()}

    def meet(self, start: int, end: int, **fields: Any) -> str:
        return str(self.there.post(**self.when(start, end), **fields)["id"])

    def busy(self, without: str, start: int = START, end: int = END) -> list[tuple[int, int]]:
        """The hours of the busy periods."""
        read = self.calls.provider.busy_without(
            self.calls.account, "primary", without, start, end, deadline=self.calls.deadline
        )
        return [((first - START) // HOUR, (last - START) // HOUR) for first, last in read.busy.pairs()]


@pytest.fixture(params=["google", "microsoft"])
def world(
    request: pytest.FixtureRequest, sandbox: Sandbox, google: Google, microsoft: Microsoft, connect: Any
) -> Iterator[World]:
    return World(sandbox, {"google": google, "microsoft": microsoft}[request.param], connect)


def test_own_time_is_free_and_that_of_another_event_is_not(world):
    own = world.meet(9, 11)
    assert world.busy(own) == []
    world.meet(10, 12)
    world.meet(13, 14)
    assert world.busy(own) == [(10, 12), (13, 14)]
    assert world.busy("other") == [(9, 12), (13, 14)]


def test_events_that_do_not_make_busy_do_not_count(sandbox, world):
    own = world.meet(9, 10)
    world.meet(9, 10, **FREE[world.name])
    cancelled = world.meet(10, 11)
    world.there.delete(cancelled)
    assert world.busy(own) == []
    world.meet(11, 12, **BUSY[world.name])
    assert world.busy(own) == [(11, 12)]


def test_only_the_owner_of_the_calendar_can_decline(world, sandbox):
    declined = {
        "google": lambda who: {"attendees": [{"email": who, "responseStatus": "declined"}]},
        "microsoft": lambda who: {
            "attendees": [{"emailAddress": {"address": who}, "status": {"response": "declined"}}]
        },
    }[world.name]
    world.meet(9, 10, **declined("bob@example.com"))
    assert world.busy("other") == [(9, 10)]
    if world.name == "google":
        world.meet(11, 12, **declined("ada@example.com"))
        assert world.busy("other") == [(9, 10)]


def test_an_all_day_event_covers_its_day(world, sandbox):
    own = world.meet(9, 10)
    edges = {"start": "2026-12-03", "end": "2026-12-04"}
    zone = {"timeZone": "UTC"}
    if world.name == "google":
        world.there.post(**{name: {"date": day} for name, day in edges.items()})
    else:
        day = {name: {"dateTime": f"{day}T00:00:00", **zone} for name, day in edges.items()}
        world.there.post(isAllDay=True, **day)
    assert world.busy(own) == [(0, 24)]
    assert world.busy(own, NINE, NINE + HOUR) == [(9, 10)]


def test_only_one_occurrence_of_a_series_is_left_out(sandbox, google, microsoft, connect):
    event = {
        "start": "2026-12-03T09:00:00Z",
        "end": "2026-12-03T10:00:00Z",
        "recurrence": "RRULE:FREQ=HOURLY;INTERVAL=2;COUNT=3",
    }
    for provider in (google, microsoft):
        account = sandbox.account(str(provider.name), "ada@example.com", time_zone="UTC", events=[event])
        calls = Calls(provider, connect(account), None)
        _, second, _ = calls.listed()
        read = provider.busy_without(calls.account, "primary", second.id, START, END, deadline=calls.deadline)
        assert [(first - START) // HOUR for first, _ in read.busy.pairs()] == [9, 13]
        # An id of the series is none of an occurrence.
        series = second.recurring_event_id
        assert calls.event(series).is_series
        assert not calls.event(second.id).is_series
        read = provider.busy_without(calls.account, "primary", series, START, END, deadline=calls.deadline)
        assert [(first - START) // HOUR for first, _ in read.busy.pairs()] == [9, 11, 13]


def test_every_page_is_read(world, monkeypatch):
    monkeypatch.setattr("providers.google.calendars.EVENTS_PER_PAGE", 2)
    monkeypatch.setattr("providers.microsoft.busy.EVENTS_PER_PAGE", 2)
    ids = [world.meet(hour, hour + 1) for hour in range(0, 20, 2)]
    assert [first for first, _ in world.busy(ids[-1])] == list(range(0, 18, 2))


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 403}, {"body": "truncated"}], ids=str)
def test_what_cannot_be_read_is_never_free(sandbox, world, fault):
    own = world.meet(9, 10)
    sandbox.fault(operation=VIEW[world.name], **fault)
    with pytest.raises(ProviderError):
        world.busy(own)


def test_an_unknown_calendar_is_not_free(world):
    unknown = "c_none@group.calendar.google.com" if world.name == "google" else "AAMknone="
    with pytest.raises(NotFound):
        world.calls.provider.busy_without(
            world.calls.account, unknown, "e", START, END, deadline=world.calls.deadline
        )


def test_an_event_of_almanac_is_found_by_its_id(world):
    made = world.calls.create(TIMED).event
    assert world.busy(made.id) == []
    moved = world.calls.update(made.id, start=Moment(NINE + HOUR), end=Moment(NINE + 2 * HOUR))
    assert world.busy(moved.id) == []
    assert world.busy("other") == [(10, 11)]
