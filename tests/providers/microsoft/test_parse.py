"""Parsing of Graph's payloads, unusual ones included."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

import pytest

from providers.errors import (
    AccessDenied,
    InsufficientScopes,
    MailboxUnavailable,
    NotFound,
    ProviderError,
    Unavailable,
    Unreadable,
)
from providers.microsoft import parse
from providers.timestamps import DAY, instant

OPERATION = "calendar.freebusy.query"
NINE, TEN = instant("2026-12-03T09:00:00Z"), instant("2026-12-03T10:00:00Z")


def at(text: str, zone: str = "UTC") -> dict[str, str]:
    return {"dateTime": f"{text}.0000000", "timeZone": zone}


MIDNIGHT, HOUR = instant("2026-12-03T00:00:00Z"), DAY // 24
YEAR_1 = instant("0001-01-01T00:00:00Z")
DAY_EDGES = {"start": at("2026-12-03T00:00:00"), "end": at("2026-12-04T00:00:00")}


def event(**more: Any) -> dict[str, Any]:
    """After https://learn.microsoft.com/en-us/graph/api/resources/event"""
    return {
        "@odata.etag": 'W/"abc=="',
        "showAs": "busy",
        "isAllDay": False,
        "isCancelled": False,
        "responseStatus": {"response": "organizer", "time": "0001-01-01T00:00:00Z"},
        "start": at("2026-12-03T09:00:00"),
        "end": at("2026-12-03T10:00:00"),
    } | more


def all_day(first: str, last: str, **more: Any) -> dict[str, Any]:
    return event(isAllDay=True, start=at(f"{first}T00:00:00"), end=at(f"{last}T00:00:00"), **more)


def busy(*events: dict[str, Any], zone: Any = "UTC") -> list[tuple[int, int]]:
    return parse.busy([{"value": list(events)}], zone, OPERATION)


@pytest.mark.parametrize(
    ("more", "is_busy"),
    [
        ({"showAs": "busy"}, True),
        ({"showAs": "oof"}, True),
        ({"showAs": "tentative"}, True),
        ({"showAs": "unknown"}, True),
        ({"showAs": "unknownFutureValue"}, True),
        ({"showAs": None}, True),
        ({"showAs": "free"}, False),
        ({"showAs": "workingElsewhere"}, False),
        ({"isCancelled": True}, False),
        ({"responseStatus": {"response": "declined"}}, False),
        ({"responseStatus": {"response": "tentativelyAccepted"}}, True),
        ({"responseStatus": {"response": "notResponded"}}, True),
        ({"responseStatus": None}, True),
    ],
)
def test_what_blocks(more, is_busy):
    assert busy(event(**more)) == ([(NINE, TEN)] if is_busy else [])


@pytest.mark.parametrize(
    ("zone", "hour"),
    [
        ("UTC", 9),
        ("tzone://Microsoft/Utc", 9),
        ("Pacific Standard Time", 17),
        ("W. Europe Standard Time", 8),
        ("Asia/Tokyo", 0),
    ],
)
def test_a_label_other_than_utc_is_converted(zone, hour):
    moved = event(start=at("2026-12-03T09:00:00", zone), end=at("2026-12-03T10:00:00", zone))
    start = instant(f"2026-12-03T{hour:02}:00:00Z")
    assert busy(moved) == [(start, start + DAY // 24)]


@pytest.mark.parametrize(
    "zone", ["Customized Time Zone", "tzone://Microsoft/Custom", "Nowhere", "", "../etc", None, 7, [], {}]
)
def test_a_time_in_an_unknown_zone_is_busy_in_every_zone(zone):
    edges = at("2026-12-03T09:00:00", zone), at("2026-12-03T10:00:00", zone)
    assert busy(event(start=edges[0])) == [(NINE - 14 * HOUR, TEN)]
    assert busy(event(start=edges[0], end=edges[1])) == [(NINE - 14 * HOUR, TEN + 12 * HOUR)]


@pytest.mark.parametrize(
    ("odd", "start", "end"),
    [
        # Whole days, or the times that are written: both.
        ({**DAY_EDGES, "isAllDay": None}, MIDNIGHT - 9 * HOUR, MIDNIGHT + DAY),
        ({**DAY_EDGES, "isAllDay": "true"}, MIDNIGHT - 9 * HOUR, MIDNIGHT + DAY),
        ({"isCancelled": "false"}, NINE, TEN),
        ({"responseStatus": "declined"}, NINE, TEN),
        ({"showAs": 7}, NINE, TEN),
        ({"start": {"dateTime": "0000-01-01T00:00:00", "timeZone": "UTC"}}, YEAR_1, TEN),
        # RFC 3339 allows a lower-case "t"; https://www.rfc-editor.org/rfc/rfc3339#section-5.6.
        ({"isAllDay": None, "start": at("2026-12-03t09:00:00"), "end": at("2026-12-03t10:00:00")}, NINE, TEN),
        (
            {"start": {"dateTime": "2026-12-03T10:00:00+0100"}, "end": {"dateTime": "2026-12-03T10:00:00z"}},
            NINE,
            TEN,
        ),
        (
            {"isAllDay": True, "start": at("2026-12-03t00:00:00"), "end": at("2026-12-03t23:59:59")},
            MIDNIGHT - 9 * HOUR,
            MIDNIGHT + DAY - 1000,
        ),
    ],
)
def test_an_odd_event_blocks_the_time_that_it_states(odd, start, end):
    assert busy(event(**odd), zone="Asia/Tokyo") == [(start, end)]


@pytest.mark.parametrize(
    "free", [{"showAs": "free"}, {"isCancelled": True}, {"responseStatus": {"response": "declined"}}]
)
def test_an_event_that_blocks_nothing_needs_no_time(free):
    assert busy(event(start=None, end=None, **free)) == []


def test_a_day_is_as_long_as_it_is_in_the_zone_of_the_mailbox():
    spring = all_day("2026-03-08", "2026-03-09")
    autumn = all_day("2026-11-01", "2026-11-02")
    lengths = [(end - start) * 24 / DAY for start, end in busy(spring, autumn, zone="America/New_York")]
    assert lengths == [23, 25]


@pytest.mark.parametrize(("first", "last"), [("2026-01-15", "2026-01-16"), ("2026-07-15", "2026-07-18")])
def test_days_in_an_unknown_zone_cover_those_of_every_zone(first, last):
    ((start, end),) = busy(all_day(first, last), zone=None)
    found = [busy(all_day(first, last), zone=zone)[0] for zone in available_timezones()]
    assert (min(since for since, _ in found), max(until for _, until in found)) == (start, end)


def test_an_unknown_zone_widens_nothing_but_days():
    assert busy(event(), all_day("2026-12-03", "2026-12-04", showAs="free"), zone=None) == [(NINE, TEN)]


def test_day_with_skipped_midnight_begins_after_the_gap():
    (day,) = busy(all_day("2018-11-04", "2018-11-05"), zone="America/Sao_Paulo")
    assert day == (instant("2018-11-04T03:00:00Z"), instant("2018-11-05T02:00:00Z"))


def test_shifted_all_day_event_is_read_as_moments():
    shifted = event(isAllDay=True, start=at("2026-12-03T08:00:00"), end=at("2026-12-04T08:00:00"))
    assert busy(shifted, zone="Asia/Tokyo") == [
        (instant("2026-12-03T08:00:00Z"), instant("2026-12-04T08:00:00Z"))
    ]


@pytest.mark.parametrize(
    ("first", "last", "days"),
    [
        ("2026-12-03T00:00:00", "2026-12-03T23:59:59", 1),
        ("2026-12-03T00:00:00", "2026-12-03T23:59:00", 1),
        ("2026-12-03T00:00:01", "2026-12-04T00:00:00", 1),
        ("2026-12-03T00:00:00", "2026-12-04T23:59:59", 2),
        # It ends on its first day.
        ("2026-12-03T00:00:00", "2026-12-03T00:00:00", 1),
        ("2026-12-03T09:00:00", "2026-12-03T09:00:00", 1),
    ],
)
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "UTC"])
def test_an_all_day_event_without_midnights_blocks_the_days_of_the_mailbox(first, last, days, zone):
    ((start, end),) = busy(event(isAllDay=True, start=at(first), end=at(last)), zone=zone)

    ((begins, ends),) = busy(all_day("2026-12-03", f"2026-12-0{3 + days}"), zone=zone)
    assert start <= begins
    assert ends <= end
    if not first.endswith("T00:00:00") or not last.endswith("T00:00:00"):
        # And the time that is written.
        assert (start, end) == (min(begins, instant(f"{first}Z")), max(ends, instant(f"{last}Z")))


def test_without_a_zone_only_busy_all_day_events_fail():
    unknown = ProviderError("no zone")
    assert busy(event(), all_day("2026-12-03", "2026-12-04", showAs="free"), zone=unknown) == [(NINE, TEN)]
    with pytest.raises(ProviderError, match="no zone"):
        busy(event(), all_day("2026-12-03", "2026-12-04"), zone=unknown)


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_dates_at_the_ends_of_the_calendar_do_not_crash(zone):
    forever = event(
        start=at("0001-01-01T00:00:00"), end={"dateTime": "9999-12-31T23:59:59.9999999", "timeZone": "UTC"}
    )
    first = all_day("0001-01-01", "0001-01-02")
    assert all(start < end for start, end in busy(forever, first, zone=zone))


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"value": None},
        {"value": [{"showAs": "busy"}]},
        {"value": {}},
        {"value": ""},
        {"value": ["odd"]},
        {"value": [event(start=None)]},
        {"value": [event(start=at("2026-12-03T10:00:00"), end=at("2026-12-03T09:00:00"))]},
        {"value": [all_day("2026-12-04", "2026-12-03")]},
        {"value": [event(end={"dateTime": "soon", "timeZone": "UTC"})]},
    ],
)
def test_what_is_no_page_of_events_is_not_free_time(page):
    with pytest.raises(Unavailable, match="unreadable"):
        parse.busy([page], "UTC", OPERATION)


@pytest.mark.parametrize(
    ("settings", "zone"),
    [
        (None, None),
        ([], None),
        ([{}], None),
        *(
            ([{"timeZone": name}], None)
            for name in (None, "", " ", 7, {}, "Customized Time Zone", "tzone://Microsoft/Custom", "Odd 1")
        ),
        *((refusal("no"), None) for refusal in (AccessDenied, InsufficientScopes, NotFound, Unreadable)),
        (MailboxUnavailable("no"), None),
        (ProviderError("refused the request, status 400"), None),
        ([{"timeZone": "Pacific Standard Time"}], "America/Los_Angeles"),
        ([{"timeZone": "Europe/Berlin"}], "Europe/Berlin"),
    ],
)
def test_the_zone_of_a_mailbox(settings, zone):
    assert parse.mailbox_zone(settings) == zone


def test_settings_that_failed_for_now_are_that_failure():
    failure = Unavailable("down")
    assert parse.mailbox_zone(failure) is failure


CALENDAR = {
    "id": "AAMkAGI2TGuLAAA=",
    "name": "Calendar",
    "color": "auto",
    "hexColor": "",
    "canEdit": True,
    "isDefaultCalendar": True,
    "owner": {"name": "Samantha Booth", "address": "samanthab@adatum.onmicrosoft.com"},
}
THEIRS = CALENDAR | {"isDefaultCalendar": False, "owner": {"address": "alex@adatum.onmicrosoft.com"}}


@pytest.mark.parametrize(
    ("entry", "email", "role"),
    [
        (CALENDAR, None, "owner"),
        (CALENDAR | {"isDefaultCalendar": False}, "SamanthaB@adatum.onmicrosoft.com", "owner"),
        (THEIRS, "samanthab@adatum.onmicrosoft.com", "writer"),
        (THEIRS | {"canEdit": False}, "samanthab@adatum.onmicrosoft.com", "reader"),
        (THEIRS | {"canEdit": False, "owner": None}, None, "reader"),
    ],
)
def test_the_role_follows_from_owner_and_rights(entry, email, role):
    (calendar,) = parse.calendars([{"value": [entry]}], email, "UTC", OPERATION)
    assert calendar.access_role == role


def test_the_owner_of_the_default_calendar_is_the_account_itself():
    second = CALENDAR | {"id": "second", "isDefaultCalendar": False}
    found = parse.calendars([{"value": [second, CALENDAR]}], None, "UTC", OPERATION)
    assert [each.access_role for each in found] == ["owner", "owner"]


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"value": None},
        {"value": {}},
        {"value": [{}]},
        {"value": ["odd"]},
        {"value": [CALENDAR | {"id": ""}]},
    ],
)
def test_what_is_no_page_of_calendars_is_no_empty_list(page):
    with pytest.raises(Unavailable):
        parse.calendars([page], None, "UTC", OPERATION)
