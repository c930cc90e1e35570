"""Parsing of Google's payloads, unusual ones included."""

from __future__ import annotations

from typing import Any

import pytest

from providers.base import MainCalendar
from providers.errors import NotFound, ProviderError, RateLimited, TooManyCalendars, Unavailable
from providers.google import parse
from providers.timestamps import instant

OPERATION = "calendar.freebusy.query"
BUSY = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


def answer(**calendar: Any) -> dict[str, Any]:
    return {"kind": "calendar#freeBusy", "calendars": {"c": calendar}}


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        (BUSY, ("2026-12-03T09:00:00Z", "2026-12-03T10:00:00Z")),
        # With offsets of the requested zone, across a clock change.
        (
            {"start": "2026-10-25T02:30:00+02:00", "end": "2026-10-25T02:30:00+01:00"},
            ("2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
        ),
        (
            {"start": "2026-12-03T09:00:00.000Z", "end": "2026-12-03T10:00:00.500Z"},
            ("2026-12-03T09:00:00Z", "2026-12-03T10:00:00.500Z"),
        ),
    ],
)
def test_a_period_is_read_whatever_its_offset(period, expected):
    assert parse.busy(answer(busy=[period]), "c", OPERATION) == [tuple(map(instant, expected))]


@pytest.mark.parametrize(
    "errors", [[{"domain": "usageLimits", "reason": "odd"}], [{"domain": "usageLimits"}]]
)
def test_any_limit_of_one_calendar_is_a_limit(errors):
    with pytest.raises(RateLimited):
        parse.busy(answer(errors=errors), "c", OPERATION)


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("notFound", NotFound),
        ("internalError", Unavailable),
        ("groupTooBig", TooManyCalendars),
        ("tooManyCalendarsRequested", TooManyCalendars),
        ("additionalTypesMayBeAdded", ProviderError),
        (None, ProviderError),
    ],
)
def test_an_error_inside_a_200_is_an_error(reason, error):
    """https://developers.google.com/workspace/calendar/api/v3/reference/freebusy/query (errors)"""
    inside = answer(errors=[{"domain": "global", "reason": reason}], busy=[BUSY])
    with pytest.raises(ProviderError) as raised:
        parse.busy(inside, "c", OPERATION)
    assert type(raised.value) is error


@pytest.mark.parametrize(
    "calendar",
    [
        {},
        {"busy": None},
        {"busy": {}},
        {"busy": ""},
        {"busy": [BUSY | {"start": None}]},
        {"busy": [None]},
        {"busy": [{"start": BUSY["end"], "end": BUSY["start"]}]},
    ],
    ids=str,
)
def test_what_is_no_list_of_periods_is_not_free_time(calendar):
    with pytest.raises(Unavailable, match="unreadable"):
        parse.busy(answer(**calendar), "c", OPERATION)


ENTRY = {
    "kind": "calendar#calendarListEntry",
    "id": "en.german#holiday@group.v.calendar.google.com",
    "summary": "Holidays in Germany",
    "timeZone": "Europe/Berlin",
    "backgroundColor": "#16a765",
    "foregroundColor": "#000000",
    "accessRole": "reader",
}


def test_what_is_false_is_left_out_by_google():
    calendar = parse.calendar(ENTRY)
    assert (calendar.primary, calendar.selected) == (False, False)
    assert calendar.original is ENTRY


@pytest.mark.parametrize("zone_field", [{"timeZone": None}, {"timeZone": ""}])
def test_a_calendar_without_a_zone_is_in_utc(zone_field):
    without = {name: value for name, value in ENTRY.items() if name != "timeZone"}
    assert parse.calendar(without).time_zone == "UTC"
    assert parse.calendar(without | zone_field).time_zone == "UTC"


@pytest.mark.parametrize(
    ("zone", "known"), [("America/New_York", "America/New_York"), (None, ""), ("", ""), (5, ""), ({}, "")]
)
def test_the_main_calendar_has_a_zone_if_google_gives_one(zone, known):
    assert parse.main_calendar({"id": "ada@example.com", "timeZone": zone}, OPERATION) == MainCalendar(
        "ada@example.com", "ada@example.com", known
    )
    assert parse.main_calendar({"id": "ada@example.com"}, OPERATION).time_zone == ""


def test_the_users_own_name_for_a_calendar_wins():
    assert parse.calendar(ENTRY).subject == "Holidays in Germany"
    assert parse.calendar(ENTRY | {"summaryOverride": "Holidays"}).subject == "Holidays"


@pytest.mark.parametrize(
    ("role", "ours"),
    [
        ("freeBusyReader", "freeBusyReader"),
        ("reader", "reader"),
        ("writerWithoutPrivateAccess", "writer"),
        ("writer", "writer"),
        ("owner", "owner"),
        ("none", "freeBusyReader"),
        ("notYetInvented", "freeBusyReader"),
    ],
)
def test_roles_are_four(role, ours):
    assert parse.calendar(ENTRY | {"accessRole": role}).access_role == ours


def test_deleted_and_hidden_entries_are_no_calendars_except_the_main_one():
    gone = {"id": "gone", "deleted": True}, {"id": "hidden", "hidden": True}
    main = {"id": "main", "hidden": True, "primary": True}
    page = {"items": [ENTRY, *(ENTRY | each for each in (*gone, main))]}
    assert [each.id for each in parse.calendars(page, OPERATION)] == [ENTRY["id"], "main"]


@pytest.mark.parametrize("odd", [{"summary": 7}, {"selected": "true"}, {"timeZone": 5}, {"accessRole": {}}])
def test_an_odd_field_that_is_only_shown_spoils_no_calendar(odd):
    assert [each.id for each in parse.calendars({"items": [ENTRY | odd]}, OPERATION)] == [ENTRY["id"]]


def test_an_empty_page_is_a_page():
    assert parse.calendars({"kind": "calendar#calendarList", "items": []}, OPERATION) == []


@pytest.mark.parametrize(
    "page",
    [
        {},
        {"kind": "calendar#calendarList"},
        {"items": None},
        {"items": {}},
        {"items": ["odd"]},
        {"items": [{}]},
        {"error": {}},
    ],
)
def test_what_is_no_page_is_no_empty_list(page):
    with pytest.raises(Unavailable):
        parse.calendars(page, OPERATION)
