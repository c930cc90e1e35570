"""What holds for events at both providers: lists, creates, changes and deletes over a socket."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.base import Account, CalendarProvider
from providers.contents import has_changes
from providers.errors import (
    AccessDenied,
    EventExists,
    EventNotFound,
    EventRefused,
    GrantGone,
    NotFound,
    Unavailable,
)
from providers.events import Changes, Day, Draft, Moment
from providers.google.client import Google
from providers.microsoft.client import Microsoft
from providers.sandbox.client import Sandbox
from providers.timestamps import DAY, instant
from tests.providers.changes import MAILBOX, SECOND, assert_is, days, merged, texts, times
from tests.providers.event_calls import (
    ALL_DAY,
    END,
    HOUR,
    MEETING,
    NINE,
    START,
    TEN,
    TIMED,
    Calls,
    bare,
    every_call,
)
from tests.providers.google import google_calls
from tests.providers.google.google_calls import GoogleCalls
from tests.providers.microsoft import graph_calls
from tests.providers.microsoft.graph_calls import GraphCalls
from tests.providers.sandbox import callers

ZONES = ["Pacific/Auckland", "America/New_York", "UTC", "Asia/Kolkata"]
NEW_YORK = "America/New_York"
WEEK = {"start": START, "end": START + 7 * DAY}
DAILY = MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=5"}
# The fields of the suite of every provider; the recurrence is in that of series.
SHOWN = ("show_as", "visibility", "reminders")
ZOOM, OTHER = "https://zoom.example/1", "https://zoom.example/2"


@dataclass(frozen=True)
class Names:
    """The provider's names; ``unit`` is the shortest time that it keeps."""

    calls: type[Calls]
    raw: Callable[..., callers.Caller]
    calendars: list[dict[str, Any]]
    team: str
    boss: str
    insert: str
    update: str
    delete: str
    series: str
    meeting: str
    unit: str


NAMES = {
    "google": Names(
        GoogleCalls,
        callers.google,
        google_calls.CALENDARS,
        google_calls.TEAM,
        google_calls.BOSS,
        google_calls.INSERT,
        google_calls.PATCH,
        google_calls.DELETE,
        "recurringEventId",
        "https://meet.google.com/",
        "1",
    ),
    "microsoft": Names(
        GraphCalls,
        callers.graph,
        graph_calls.CALENDARS,
        graph_calls.TEAM,
        graph_calls.BOSS,
        graph_calls.INSERT,
        graph_calls.UPDATE,
        graph_calls.DELETE,
        "seriesMasterId",
        "https://teams.microsoft.com/",
        "0.001",
    ),
}


@pytest.fixture(params=NAMES)
def provider(request: pytest.FixtureRequest, google: Google, microsoft: Microsoft) -> CalendarProvider:
    return google if request.param == "google" else microsoft


@pytest.fixture
def names(provider: CalendarProvider) -> Names:
    return NAMES[provider.name]


@pytest.fixture
def new(
    sandbox: Sandbox, provider: CalendarProvider, names: Names, connect: Callable[..., Account]
) -> Callable[..., Calls]:
    """Make an account and the adapter that reads it."""

    def make(*events: dict[str, Any], left: float = 5.0, **more: Any) -> Calls:
        more = {"calendars": names.calendars} | more
        account = sandbox.account(provider.name, "alice@example.com", events=events, **more)
        return names.calls(provider, connect(account), names.raw(sandbox, account), left)

    return make


@pytest.fixture
def calls(new: Callable[..., Calls]) -> Calls:
    return new()


def midnights(zone: str, *days: int) -> list[int]:
    """The starts of days of December 2026."""
    return [int(datetime(2026, 12, day, tzinfo=ZoneInfo(zone)).timestamp() * 1000) for day in days]


# Whatever is written is read


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), content=texts(), changed=st.lists(texts(), max_size=2))
def test_what_is_written_is_read(sandbox, provider, names, connect, data, content, changed):
    # Google keeps whole seconds.
    when = times(SECOND if provider.name == "google" else 1) | days()
    account = connect(sandbox.account(provider.name, "alice@example.com", time_zone=MAILBOX))
    deadline = time.monotonic() + 20
    written = content | data.draw(when)
    draft = Draft(Changes(**written), "0" * 64, "f" * 64)
    event = provider.create_event(account, "primary", draft, deadline=deadline).event
    assert_is(event, written, names.meeting)
    for sent in changed:
        sent = sent | data.draw(st.just({}) | when)
        written = merged(written, sent)
        found = provider.update_event(
            account, "primary", event.id, Changes(**sent), etag=None, deadline=deadline
        )
        assert_is(found, written, names.meeting)
        assert has_changes(found, Changes(**sent))
    found = provider.event(account, "primary", event.id, deadline=deadline)
    assert_is(found, written, names.meeting)
    if meta_id := written.get("meta_id"):
        by_meta_id = provider.find_event(account, "primary", meta_id, deadline=deadline)
        assert bare(by_meta_id) == bare(found)


def test_every_field_of_a_change_is_tried():
    tried = {"subject", "description", "location", "attendees", "meta_id", "start", "end"}
    assert tried | {"meeting", "meeting_url", "notify", *SHOWN, "recurrence"} == {
        field.name for field in fields(Changes)
    }


# Lists


@pytest.mark.parametrize("zone", ZONES[:3])
def test_what_overlaps_the_half_open_range_is_listed_in_order(new, names, zone):
    after, before = {"1": ("00:00:01", "23:59:59")}.get(names.unit, ("00:00:00.001", "23:59:59.999"))
    spans = {
        "ends at the start": ("2026-12-02T23:00:00Z", "2026-12-03T00:00:00Z"),
        "begins at the end": ("2026-12-04T00:00:00Z", "2026-12-04T01:00:00Z"),
        "no length at the end": ("2026-12-04T00:00:00Z", "2026-12-04T00:00:00Z"),
        "d": ("2026-12-03T12:00:00Z", "2026-12-03T12:00:00Z"),
        "c": ("2026-12-03T11:00:00Z", "2026-12-03T12:00:00Z"),
        "b": ("2026-12-03T00:00:00Z", "2026-12-03T00:00:00Z"),
        "a": ("2026-12-02T23:00:00Z", f"2026-12-03T{after}Z"),
        "e": (f"2026-12-03T{before}Z", "2026-12-05T00:00:00Z"),
    }
    events = ({"subject": name, "start": start, "end": end} for name, (start, end) in spans.items())
    assert [event.subject for event in new(*events, time_zone=zone).listed()] == ["a", "b", "c", "d", "e"]


def test_series_is_expanded_with_moved_without_cancelled(new):
    calls = new(DAILY, MEETING | {"isCancelled": True})
    first, second, third, _, _ = calls.listed(**WEEK)
    calls.update(second.id, start=Moment(START + 39 * HOUR), end=Moment(START + 40 * HOUR))
    calls.delete(third.id)
    starts = [(event.start - START) / HOUR for event in calls.listed(**WEEK)]
    assert starts == [9, 24 + 15, 3 * 24 + 9, 4 * 24 + 9]
    assert bare(calls.event(first.id)) == bare(first)
    assert calls.event(second.id).start == START + 39 * HOUR
    with pytest.raises(EventNotFound):
        calls.event(third.id)


@pytest.mark.parametrize("zone", ZONES)
def test_an_all_day_event_spans_the_midnights_of_the_main_calendar(new, zone):
    calls = new(ALL_DAY, time_zone=zone)
    (event,) = calls.listed(START - DAY, END + DAY)
    assert [event.start, event.end] == midnights(zone, 3, 4)
    assert event.all_day
    assert bare(calls.event(event.id)) == bare(event)
    assert calls.listed(event.start, event.start + 1) == [event]
    assert calls.listed(event.start - 1, event.start) == []
    assert calls.listed(event.end - 1, event.end) == [event]
    assert calls.listed(event.end, event.end + 1) == []


def test_empty_list_of_calendars_makes_no_call(sandbox, calls):
    assert calls.provider.events(calls.account, [], START, END, deadline=calls.deadline) == {}
    assert sandbox.requests().total == 0


def test_a_revoked_grant_is_gone_for_every_call(sandbox, calls):
    sandbox.revoke("alice@example.com")
    for call in every_call(calls, "nosuchevent0"):
        with pytest.raises(GrantGone):
            call()


def test_event_is_found_by_exact_meta_id_in_its_calendar(calls, names):
    written = ["m-42", "M-42", "o'clock 100% & more + ü", "{}', eq", "a=b", "x" * 255]
    made = {
        each: calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meta_id=each)) for each in written
    }
    for meta_id, created in made.items():
        assert created.made
        assert bare(calls.find(meta_id)) == bare(created.event)
        assert created.event.meta_id == meta_id
    for meta_id, calendar in (("m-4", "primary"), ("m-42", names.team)):
        with pytest.raises(EventNotFound) as raised:
            calls.find(meta_id, calendar)
        assert raised.value.operation == "calendar.events.list"


def test_an_all_day_event_is_found_with_its_midnights(new):
    calls = new(time_zone="Pacific/Auckland")
    made = calls.create(Changes(start=Day("2026-12-03"), end=Day("2026-12-04"), meta_id="m")).event
    assert bare(calls.find("m")) == bare(made)
    assert [made.start, made.end] == midnights("Pacific/Auckland", 3, 4)


# Creates


def test_an_hour_that_occurs_twice_is_the_one_that_was_meant(calls):
    for text in ("2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"):
        at = instant(text)
        edges = Changes(start=Moment(at, NEW_YORK), end=Moment(at + 2 * HOUR, NEW_YORK))
        event = calls.create(edges).event
        assert (event.start, event.end) == (at, at + 2 * HOUR)


@pytest.mark.parametrize("own", [None, "chosen0"])
@pytest.mark.parametrize("meta_id", [None, "m-1"])
def test_a_key_makes_one_event_and_only_for_the_same_request(calls, is_fit_for_people, own, meta_id):
    content = Changes(subject="Once", start=Moment(NINE), end=Moment(TEN), meta_id=meta_id)
    first = calls.create(content, key="k", id=own)
    again = calls.create(content, key="k", id=own)
    assert (first.made, again.made) == (True, False)
    assert bare(again.event) == bare(first.event)
    with pytest.raises(EventExists) as raised:
        calls.create(content, key="k", fingerprint="another", id=own)
    is_fit_for_people(raised.value)
    assert [bare(event) for event in calls.listed()] == [bare(first.event)]


@pytest.mark.parametrize("body", ["reset", "truncated"])
def test_create_with_lost_answer_makes_one_event(sandbox, calls, names, body):
    sandbox.fault(operation=names.insert, body=body, times=1)
    created = calls.create(TIMED)
    assert created.made
    assert sandbox.requests().by_operation[names.insert] == 2
    assert [bare(event) for event in calls.listed()] == [bare(created.event)]


def test_event_ending_before_its_start_is_refused(calls):
    with pytest.raises(EventRefused):
        calls.create(Changes(start=Moment(TEN), end=Moment(NINE)))
    made = calls.create(TIMED).event
    with pytest.raises(EventRefused):
        calls.update(made.id, end=Moment(NINE - HOUR))


def test_a_calendar_that_may_only_be_read_denies_access(calls, names):
    with pytest.raises(AccessDenied):
        calls.create(TIMED, names.boss)


@pytest.mark.parametrize(("location", "read"), [(None, ZOOM), ("Room", "Room"), ("", "")])
def test_external_meeting_url_is_the_location_if_none_is_set(calls, location, read):
    content = Changes(start=Moment(NINE), end=Moment(TEN), meeting_url=ZOOM, location=location)
    event = calls.create(content).event
    assert (event.meeting_url, event.location) == (ZOOM, read)
    assert [bare(each) for each in calls.listed()] == [bare(event)]


# Changes


def test_an_update_of_nothing_writes_nothing(sandbox, calls, names):
    made = calls.create(TIMED).event
    sandbox.forget_requests()
    assert calls.update(made.id) == made
    assert calls.update(made.id, notify=True) == made
    assert names.update not in sandbox.requests().by_operation


def test_an_event_that_never_holds_still_is_given_up(sandbox, calls, names, is_fit_for_people):
    made = calls.create(TIMED).event
    sandbox.fault(operation=names.update, status=412)
    with pytest.raises(Unavailable, match="others are changing") as raised:
        calls.update(made.id, attendees=())
    is_fit_for_people(raised.value)
    assert sandbox.requests().by_operation[names.update] == 4


def test_update_with_lost_answer_is_sent_again(sandbox, calls, names):
    made = calls.create(TIMED).event
    sandbox.fault(operation=names.update, body="reset", times=1)
    event = calls.update(made.id, subject="Again", attendees=("bob@example.com",))
    assert (event.subject, [each.email for each in event.attendees]) == ("Again", ["bob@example.com"])
    # Executed without an answer, rejected for the etag that it changed, executed again.
    assert sandbox.requests().by_operation[names.update] == 3


def test_an_event_becomes_an_online_meeting_once(sandbox, calls, names):
    made = calls.create(Changes(description="Agenda", start=Moment(NINE), end=Moment(TEN))).event
    event = calls.update(made.id, meeting=True, subject="Online")
    assert (event.meeting_url or "").startswith(names.meeting)
    assert (event.subject, event.description) == ("Online", "Agenda")
    sandbox.forget_requests()
    assert calls.update(made.id, meeting=True) == event
    assert names.update not in sandbox.requests().by_operation


def test_of_two_meetings_the_last_one_written_counts(calls, names):
    made = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting_url=ZOOM)).event
    online = calls.update(made.id, meeting=True)
    assert (online.meeting_url or "").startswith(names.meeting)
    assert online.location == ""
    back = calls.update(made.id, meeting_url=OTHER)
    assert (back.meeting_url, back.location) == (OTHER, OTHER)
    assert calls.update(made.id, meeting=True).meeting_url == online.meeting_url


def test_a_time_becomes_days_and_days_become_a_time(new):
    calls = new(time_zone=NEW_YORK)
    made = calls.create(TIMED).event
    days = calls.update(made.id, start=Day("2026-12-03"), end=Day("2026-12-05"))
    assert (days.all_day, days.start, days.end) == (True, START + 5 * HOUR, START + 2 * DAY + 5 * HOUR)
    longer = calls.update(made.id, end=Day("2026-12-06"))
    assert (longer.start, longer.end) == (days.start, days.end + DAY)
    later = calls.update(made.id, start=Day("2026-12-04"))
    assert (later.start, later.end) == (days.start + DAY, longer.end)
    timed = calls.update(made.id, start=Moment(NINE), end=Moment(TEN))
    assert (timed.all_day, timed.start, timed.end) == (False, NINE, TEN)
    with pytest.raises(EventRefused):
        calls.update(made.id, end=Day("2026-12-04"))


def test_one_edge_of_a_timed_event_moves_alone(calls):
    made = calls.create(TIMED).event
    event = calls.update(made.id, end=Moment(TEN + HOUR))
    assert (event.start, event.end, event.all_day) == (NINE, TEN + HOUR, False)


def test_a_series_that_is_moved_follows_the_clock_of_its_zone(new, names):
    """Clocks change between the first and the second occurrence."""
    nine = {"start": "2026-10-28T09:00:00", "end": "2026-10-28T10:00:00"}
    calls = new(MEETING | nine | {"recurrence": "RRULE:FREQ=WEEKLY;COUNT=3"}, time_zone=NEW_YORK)
    moved = instant("2026-10-28T11:00:00-04:00")
    weeks = {"start": moved - DAY, "end": moved + 21 * DAY}
    series = calls.listed(**weeks)[0].original[names.series]
    assert calls.update(series, start=Moment(moved), end=Moment(moved + HOUR)).start == moved
    found = [event.start for event in calls.listed(**weeks)]
    assert found == [moved, moved + 7 * DAY + HOUR, moved + 14 * DAY + HOUR]


# Deletes


def test_a_deleted_event_is_gone_and_cannot_be_deleted_twice(calls, names):
    for calendar in ("primary", names.team):
        made = calls.create(TIMED, calendar).event
        calls.delete(made.id, calendar)
        with pytest.raises(EventNotFound):
            calls.event(made.id, calendar)
        with pytest.raises(EventNotFound):
            calls.delete(made.id, calendar)


@pytest.mark.parametrize("fault", [{"body": "reset"}, {"status": 503}, {"status": 429}], ids=str)
def test_delete_with_lost_answer_succeeds(sandbox, calls, names, fault):
    made = calls.create(TIMED).event
    sandbox.fault(operation=names.delete, times=1, **fault)
    calls.delete(made.id)
    assert sandbox.requests().by_operation[names.delete] == 2
    assert calls.listed() == []


def test_an_occurrence_is_deleted_alone_and_a_series_whole(new, names):
    calls = new(DAILY)
    first, second, third, *rest = calls.listed(**WEEK)
    calls.delete(second.id)
    calls.update(third.id, subject="By itself")
    assert [event.id for event in calls.listed(**WEEK)] == [each.id for each in (first, third, *rest)]
    calls.delete(first.original[names.series])
    assert calls.listed(**WEEK) == []


def test_a_missing_calendar_differs_from_a_missing_event(calls):
    with pytest.raises(NotFound) as raised:
        calls.find("m-42", {"google": "nosuch@example.com"}.get(calls.provider.name, "AAMkAGnosuchcalendar="))
    assert type(raised.value) is NotFound
