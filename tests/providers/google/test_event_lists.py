"""The events of Google calendars in a range: sorted, expanded, complete, or failed per calendar."""

from __future__ import annotations

import pytest

from providers.base import Failed
from providers.errors import EventNotFound, InvalidCalendarId, Reason, Unavailable
from providers.events import Changes, Day, ResponseStatus
from providers.timestamps import DAY
from tests.providers.event_calls import ALL_DAY, END, HOUR, MEETING, NINE, START, TEN, TIMED, bare
from tests.providers.google.google_calls import (
    BOSS,
    GOOD,
    HOLIDAYS,
    LIST,
    NO_EVENT,
    TEAM,
    midnights,
    scripted,
)


def test_list_is_one_call_with_the_fields_of_google(sandbox, calls):
    made = calls.post(
        description="First line\nsecond  line",
        location="Room 1",
        attendees=[
            {"email": "bob@example.com", "responseStatus": "accepted"},
            {"email": "Alice@Example.com", "responseStatus": "tentative"},
        ],
    )
    sandbox.forget_requests()
    (event,) = calls.listed()
    assert (event.id, event.calendar_id, event.provider) == (made["id"], "primary", "google")
    assert (event.subject, event.location, event.all_day) == ("Lunch", "Room 1", False)
    assert event.description == "First line\nsecond  line"
    assert (event.start, event.end) == (NINE, TEN)
    assert (event.meta_id, event.meeting_url) == (None, None)
    assert [(each.email, each.is_self, each.response_status) for each in event.attendees] == [
        ("bob@example.com", False, ResponseStatus.ACCEPTED),
        ("Alice@Example.com", True, ResponseStatus.TENTATIVE),
    ]
    assert event.original["htmlLink"] == made["htmlLink"]
    assert sandbox.requests().by_operation == {LIST: 1}


@pytest.mark.parametrize("zone", ["UTC", "Pacific/Auckland", "America/New_York"])
def test_what_overlaps_the_half_open_range_is_listed_in_order(new, zone):
    spans = {
        "ends at the start": ("2026-12-02T23:00:00Z", "2026-12-03T00:00:00Z"),
        "begins at the end": ("2026-12-04T00:00:00Z", "2026-12-04T01:00:00Z"),
        "no length at the end": ("2026-12-04T00:00:00Z", "2026-12-04T00:00:00Z"),
        "d": ("2026-12-03T12:00:00Z", "2026-12-03T12:00:00Z"),
        "c": ("2026-12-03T11:00:00Z", "2026-12-03T12:00:00Z"),
        "b": ("2026-12-03T00:00:00Z", "2026-12-03T00:00:00Z"),
        "a": ("2026-12-02T23:00:00Z", "2026-12-03T00:00:01Z"),
        "e": ("2026-12-03T23:59:59Z", "2026-12-05T00:00:00Z"),
    }
    events = ({"subject": name, "start": start, "end": end} for name, (start, end) in spans.items())
    calls = new(*events, time_zone=zone)
    assert [event.subject for event in calls.listed()] == ["a", "b", "c", "d", "e"]


def test_series_is_expanded_with_moved_without_cancelled(new):
    calls = new(MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=5"}, MEETING | {"isCancelled": True})
    week = {"start": START, "end": START + 7 * DAY}
    first, second, third, _, _ = calls.listed(**week)
    calls.patch(
        second.id, start={"dateTime": "2026-12-04T15:00:00Z"}, end={"dateTime": "2026-12-04T16:00:00Z"}
    )
    calls.delete(third.id)
    starts = [(event.start - START) / HOUR for event in calls.listed(**week)]
    assert starts == [9, 24 + 15, 3 * 24 + 9, 4 * 24 + 9]
    assert bare(calls.event(first.id)) == bare(first)
    assert calls.event(second.id).start == START + 39 * HOUR
    with pytest.raises(EventNotFound):
        calls.event(third.id)


def test_all_pages_are_read_over_short_and_empty_ones(sandbox, new, monkeypatch):
    monkeypatch.setattr("providers.google.calendars.EVENTS_PER_PAGE", 3)
    minutes = [f"2026-12-03T09:{n:02}:00Z" for n in range(10)]
    calls = new(*({"subject": f"{n}", "start": at, "end": at} for n, at in enumerate(minutes)))
    assert [event.subject for event in calls.listed()] == [str(n) for n in range(10)]
    # Pages of two, none, three, three and two events.
    assert sandbox.requests().by_operation == {LIST: 5}


def test_pages_that_never_end_fail_the_calendar(script, scripted_account):
    script.say(body={"timeZone": "UTC", "items": [], "nextPageToken": "again"})
    outcome = scripted(script, scripted_account).events()["primary"]
    assert isinstance(outcome, Failed)
    assert "do not end" in outcome.message


def test_a_later_page_that_fails_fails_the_calendar(script, scripted_account):
    script.say(body={"timeZone": "UTC", "items": [GOOD], "nextPageToken": "next"})
    script.say(404, {"error": {"errors": [{"reason": "notFound"}], "code": 404}})
    assert scripted(script, scripted_account).events()["primary"].reason is Reason.NOT_FOUND


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "UTC", "Asia/Kolkata"])
def test_an_all_day_event_spans_the_midnights_of_its_calendar(new, zone):
    calls = new(ALL_DAY, time_zone=zone)
    (event,) = calls.listed(START - DAY, END + DAY)
    assert [event.start, event.end] == midnights(zone, 3, 4)
    assert event.all_day
    assert calls.event(event.id) == event
    assert calls.listed(event.start, event.start + 1) == [event]
    assert calls.listed(event.start - 1, event.start) == []
    assert calls.listed(event.end - 1, event.end) == [event]
    assert calls.listed(event.end, event.end + 1) == []


def test_each_calendar_has_midnights_of_its_own(new):
    calendars = [{"primary": True}, {"id": TEAM, "timeZone": "Pacific/Auckland"}]
    calls = new(ALL_DAY, ALL_DAY | {"calendarId": TEAM}, calendars=calendars, time_zone="America/New_York")
    outcomes = calls.events("primary", TEAM, start=START - DAY, end=END + DAY)
    assert [outcomes[each][0].start for each in ("primary", TEAM)] == [
        *midnights("America/New_York", 3),
        *midnights("Pacific/Auckland", 3),
    ]


def test_zone_is_requested_only_for_all_day_events(sandbox, new):
    calls = new(left=10)
    timed = calls.create(TIMED).event
    day = calls.create(Changes(start=Day("2026-12-03"), end=Day("2026-12-04"))).event
    sandbox.fault(operation=LIST, status=503)
    assert calls.event(timed.id) == timed
    with pytest.raises(Unavailable) as raised:
        calls.event(day.id)
    assert raised.value.operation == "calendar.events.get"


def test_free_busy_access_shows_only_times(new):
    calls = new(
        MEETING | {"calendarId": BOSS, "responseStatus": "accepted"},
        ALL_DAY | {"calendarId": BOSS},
        time_zone="America/New_York",
    )
    day, event = sorted(calls.listed(calendar=BOSS, end=END + DAY), key=lambda each: not each.all_day)
    assert (event.subject, event.description, event.location, event.attendees) == ("", "", "", ())
    assert (event.start, event.end, event.calendar_id) == (NINE, TEN, BOSS)
    assert [day.start, day.end] == midnights("America/New_York", 3, 4)
    assert calls.event(event.id, BOSS) == event


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"status": 404, "reason": "notFound"}, Reason.NOT_FOUND),
        ({"status": 403, "reason": "forbidden"}, Reason.ACCESS_DENIED),
        ({"status": 403, "reason": "notACalendarUser"}, Reason.MAILBOX_UNAVAILABLE),
        ({"status": 403, "reason": "insufficientPermissions"}, Reason.INSUFFICIENT_SCOPES),
        ({"status": 403, "reason": "rateLimitExceeded"}, Reason.RATE_LIMITED),
        ({"status": 429, "retry_after": 60}, Reason.RATE_LIMITED),
        ({"status": 410, "reason": "updatedMinTooLongAgo"}, Reason.NOT_FOUND),
        ({"status": 503}, Reason.PROVIDER_ERROR),
        ({"body": "html"}, Reason.PROVIDER_ERROR),
        ({"body": "truncated"}, Reason.PROVIDER_ERROR),
        ({"body": "reset"}, Reason.PROVIDER_ERROR),
    ],
    ids=str,
)
def test_a_calendar_that_fails_is_named_and_the_others_are_read(sandbox, new, fault, reason):
    calls = new(MEETING, MEETING | {"calendarId": TEAM}, left=10)
    sandbox.fault(calendar_id=TEAM, operation=LIST, **fault)
    outcomes = calls.events("primary", TEAM, "primary")
    assert list(outcomes) == ["primary", TEAM]
    assert len(outcomes["primary"]) == 1
    assert outcomes[TEAM].reason is reason
    assert outcomes[TEAM].operation == "calendar.events.list"


def test_a_calendar_that_is_not_there_is_named(calls):
    assert calls.events("nosuch@example.com")["nosuch@example.com"].reason is Reason.NOT_FOUND


@pytest.mark.parametrize(
    "bad",
    [
        None,
        "odd",
        {},
        GOOD | {"id": None},
        GOOD | {"start": None},
        GOOD | {"start": 7},
        GOOD | {"start": {}},
        GOOD | {"summary": 7},
        GOOD | {"attendees": [None]},
        GOOD | {"attendees": "bob"},
        GOOD | {"attendees": [{"email": 7}]},
        GOOD | {"extendedProperties": {"private": {"metaId": 7}}},
        GOOD | {"extendedProperties": "odd"},
        GOOD | {"hangoutLink": 7},
        GOOD | {"conferenceData": "odd"},
        GOOD | {"start": {"dateTime": "soon"}},
        GOOD | {"start": {"dateTime": "2026-12-03T09:00:00"}},
        GOOD | {"start": {"date": "2026-13-03"}, "end": {"date": "2026-13-04"}},
    ],
    ids=str,
)
def test_malformed_event_is_left_out_of_the_list(script, scripted_account, bad):
    script.say(body={"timeZone": "UTC", "items": [GOOD]})
    script.say(body={"timeZone": "UTC", "items": [GOOD, bad]})
    outcomes = scripted(script, scripted_account).events("good", "bad")
    assert [event.id for event in outcomes["good"]] == ["abcde1"]
    assert [event.id for event in outcomes["bad"]] == ["abcde1"]


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"timeZone": "UTC"},
        {"timeZone": "UTC", "items": [], "nextPageToken": ""},
        {"timeZone": "UTC", "items": [], "nextPageToken": {}},
        {"timeZone": "UTC", "items": None},
        {"timeZone": "UTC", "items": {}},
    ],
    ids=str,
)
def test_an_answer_that_is_no_list_of_events_is_not_an_empty_one(script, scripted_account, page):
    script.say(body=page)
    assert scripted(script, scripted_account).events()["primary"].reason is Reason.PROVIDER_ERROR


@pytest.mark.parametrize("zone", [{}, {"timeZone": 7}, {"timeZone": "America"}, {"timeZone": "Nowhere/City"}])
def test_days_of_a_calendar_without_a_known_zone_are_in_utc(script, scripted_account, zone):
    day = GOOD | {"start": {"date": "2026-12-03"}, "end": {"date": "2026-12-04"}}
    script.say(body=zone | {"items": [day]})
    (event,) = scripted(script, scripted_account).events()["primary"]
    assert (event.start, event.end) == (START, START + DAY)


def test_ids_are_encoded_whole(script, scripted_account):
    calls = scripted(script, scripted_account)
    script.say(body=GOOD | {"timeZone": "UTC"})
    calendar, event_id = "a/b#c%2F?d+ü@x.org", "e/1#%+" + "é" * 1018
    calls.event(event_id, calendar)
    calls.update(event_id, calendar, subject="x")
    calls.delete(event_id, calendar)
    calls.events(calendar)
    base = "/calendar/v3/calendars/a%2Fb%23c%252F%3Fd%2B%C3%BC%40x.org/events"
    one = f"{base}/e%2F1%23%25%2B{'%C3%A9' * 1018}"
    assert [each["path"].partition("?")[0] for each in script.requests] == [one, one, one, base]


@pytest.mark.parametrize("calendar", [HOLIDAYS, "a/b?c%2F", "ünï+%", "é" * 1024])
def test_calendars_are_read_and_written_whatever_their_id(new, calendar):
    calls = new(calendars=[{"primary": True}, {"id": calendar}])
    made = calls.create(TIMED, calendar).event
    assert calls.event(made.id, calendar) == made
    assert calls.listed(calendar=calendar) == [made]
    assert calls.update(made.id, calendar, subject="x").subject == "x"
    calls.delete(made.id, calendar)
    assert calls.listed(calendar=calendar) == []


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_would_be_another_address_is_not_called(sandbox, calls, name):
    for call in (
        lambda: calls.event(name),
        lambda: calls.update(name, subject="x"),
        lambda: calls.delete(name),
    ):
        with pytest.raises(EventNotFound):
            call()
    assert set(sandbox.requests().by_operation) == {LIST}
    sandbox.forget_requests()
    assert calls.events(name)[name].reason is Reason.INVALID_CALENDAR_ID
    with pytest.raises(InvalidCalendarId):
        calls.create(TIMED, name)
    with pytest.raises(InvalidCalendarId):
        calls.delete(NO_EVENT, name)
    assert sandbox.requests().total == 0


def test_empty_list_of_calendars_makes_no_call(sandbox, calls):
    assert calls.provider.events(calls.account, [], START, END, deadline=calls.deadline) == {}
    assert sandbox.requests().total == 0
