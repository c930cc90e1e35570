"""Events of Google Calendar, listed, read by their id, or found by their metaId."""

from __future__ import annotations

from typing import Any

import pytest

from providers.errors import EventNotFound, InvalidCalendarId, Reason, Unavailable
from providers.events import Changes, Day
from providers.google import parse_events
from providers.timestamps import DAY
from tests.providers.event_calls import ALL_DAY, END, MEETING, NINE, START, TEN, TIMED
from tests.providers.google.google_calls import (
    BOSS,
    GOOD,
    LIST,
    NO_EVENT,
    TEAM,
    midnights,
    scripted,
)


def test_all_pages_are_read_over_short_and_empty_ones(sandbox, new, monkeypatch):
    monkeypatch.setattr("providers.google.calendars.EVENTS_PER_PAGE", 3)
    minutes = [f"2026-12-03T09:{n:02}:00Z" for n in range(10)]
    calls = new(*({"subject": f"{n}", "start": at, "end": at} for n, at in enumerate(minutes)))
    assert [event.subject for event in calls.listed()] == [str(n) for n in range(10)]
    # Pages of two, none, three, three and two events.
    assert sandbox.requests().by_operation == {LIST: 5}


def test_a_later_page_that_fails_fails_the_calendar(script, scripted_account):
    script.say(body={"timeZone": "UTC", "items": [GOOD], "nextPageToken": "next"})
    script.say(404, {"error": {"errors": [{"reason": "notFound"}], "code": 404}})
    assert scripted(script, scripted_account).events()["primary"].reason is Reason.NOT_FOUND


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
        ({"status": 429, "retry_after": 60}, Reason.RATE_LIMITED),
        ({"status": 410, "reason": "updatedMinTooLongAgo"}, Reason.NOT_FOUND),
        ({"status": 503}, Reason.PROVIDER_ERROR),
        ({"body": "html"}, Reason.PROVIDER_ERROR),
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


@pytest.mark.parametrize(
    "bad",
    [
        None,
        {},
        GOOD | {"id": None},
        GOOD | {"attendees": [{"email": 7}]},
        GOOD | {"extendedProperties": "odd"},
        GOOD | {"start": {"dateTime": "soon"}},
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


@pytest.mark.parametrize("answer", [[], {}, GOOD | {"id": 7}, GOOD | {"start": 7}, {"id": "abcde1"}], ids=str)
def test_an_answer_that_is_no_event_is_unreadable(script, scripted_account, answer):
    script.say(body=answer)
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).event("abcde1")


def carried(meta_id: str) -> dict[str, Any]:
    return {"extendedProperties": {"private": {parse_events.META_ID: meta_id}}}


def test_of_several_the_first_created_is_found_over_all_pages(script, scripted_account):
    created = {
        number: GOOD | carried("m") | {"id": f"abcde{number}", "created": f"2026-12-0{number}T08:00:00Z"}
        for number in (3, 2, 1)
    }
    script.say(body={"timeZone": "UTC", "items": [created[2]], "nextPageToken": "a"})
    script.say(body={"timeZone": "UTC", "items": [], "nextPageToken": "b"})
    script.say(body={"timeZone": "UTC", "items": [created[3], created[1], GOOD | carried("M")]})
    assert scripted(script, scripted_account).find("m").id == "abcde1"
    paths = [each["path"] for each in script.requests]
    assert all("privateExtendedProperty=metaId%3Dm" in path for path in paths)
    assert ["pageToken=" in path for path in paths] == [False, True, True]


@pytest.mark.parametrize("page", [{"items": ["odd"]}, {"items": [GOOD | {"extendedProperties": 7}]}], ids=str)
def test_what_cannot_be_read_is_not_the_same_as_not_found(script, scripted_account, page):
    script.say(body={"timeZone": "UTC"} | page)
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).find("m")


def test_a_series_is_found_as_a_whole(new):
    calls = new(MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=3"})
    first, second, _ = calls.listed(END - DAY, END + 3 * DAY)
    series = first.original["recurringEventId"]
    assert calls.update(series, meta_id="m").id == series
    calls.patch(second.id, summary="Moved")
    assert calls.find("m").id == series
