"""calendarView: https://learn.microsoft.com/graph/api/calendar-list-calendarview"""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import MEETING, VIEW, Caller, code, graph

BOB = "bob@example.com"


def bob(sandbox: Sandbox, *events: dict[str, Any], **more: Any) -> Caller:
    return graph(sandbox, sandbox.account("microsoft", BOB, events=events, **more))


def hours(count: int) -> list[dict[str, Any]]:
    return [
        {"subject": f"{n}", "start": f"2026-12-03T{n:02d}:00:00Z", "end": f"2026-12-03T{n:02d}:30:00Z"}
        for n in range(count)
    ]


def test_times_are_utc_with_seven_digits_and_no_offset(sandbox: Sandbox) -> None:
    (event,) = bob(sandbox, MEETING, time_zone="America/New_York").get("me/calendarView", **VIEW)["value"]
    assert event["start"] == {"dateTime": "2026-12-03T14:00:00.0000000", "timeZone": "UTC"}
    assert event["originalStartTimeZone"] == "Eastern Standard Time"
    assert (event["showAs"], event["isAllDay"], event["isCancelled"]) == ("busy", False, False)


@pytest.mark.parametrize("zone", ["Pacific Standard Time", "America/Los_Angeles"])
def test_the_zone_of_the_prefer_header_is_used_and_echoed(sandbox: Sandbox, zone: str) -> None:
    preferred = {"Prefer": f'IdType="ImmutableId", outlook.timezone="{zone}"'}
    answer = bob(sandbox, MEETING)("GET", "me/calendarView", params=VIEW, headers=preferred)
    assert answer.headers["Preference-Applied"] == f'outlook.timezone="{zone}"'
    (event,) = answer.json()["value"]
    assert event["start"] == {"dateTime": "2026-12-03T01:00:00.0000000", "timeZone": zone}


def test_an_unknown_zone_is_refused(sandbox: Sandbox) -> None:
    preferred = {"Prefer": 'outlook.timezone="Middle Earth"'}
    answer = bob(sandbox)("GET", "me/calendarView", params=VIEW, headers=preferred)
    assert code(answer) == (400, "TimeZoneNotSupportedException")


@pytest.mark.parametrize("zone", ["UTC", "Tokyo Standard Time"])
def test_all_day_event_keeps_its_dates_in_requested_zone(sandbox: Sandbox, zone: str) -> None:
    event = {"start": "2026-12-03", "end": "2026-12-04", "allDay": True}
    call = bob(sandbox, event, time_zone="Asia/Tokyo")
    preferred = {"Prefer": f'outlook.timezone="{zone}"'}
    (found,) = call("GET", "me/calendarView", params=VIEW, headers=preferred).json()["value"]
    assert found["start"] == {"dateTime": "2026-12-03T00:00:00.0000000", "timeZone": zone}
    assert found["end"] == {"dateTime": "2026-12-04T00:00:00.0000000", "timeZone": zone}
    # The window is compared with its midnights in UTC, although it begins nine hours earlier in Tokyo.
    before = {"startDateTime": "2026-12-02T15:00:00Z", "endDateTime": "2026-12-03T00:00:00Z"}
    assert call.get("me/calendarView", **before)["value"] == []


def test_pages_hold_ten_and_the_link_repeats_the_question(sandbox: Sandbox) -> None:
    call = bob(sandbox, *hours(23))
    found, path, query = [], "me/calendarView", {**VIEW, "$select": "subject,start"}
    while path:
        page = call.get(path, **query)
        found.append([event["subject"] for event in page["value"]])
        path, query = page.get("@odata.nextLink", "").removeprefix(f"{call.base}/"), {}
    assert [len(page) for page in found] == [10, 10, 3]
    assert [subject for page in found for subject in page] == [str(n) for n in range(23)]


def test_top_goes_up_to_a_thousand(sandbox: Sandbox) -> None:
    call = bob(sandbox, *hours(23))
    assert len(call.get("me/calendarView", **VIEW, **{"$top": 1000})["value"]) == 23
    assert call("GET", "me/calendarView", params={**VIEW, "$top": 1001}).status_code == 400


def test_only_selected_properties_come_beside_id_and_etag(sandbox: Sandbox) -> None:
    (event,) = bob(sandbox, MEETING).get("me/calendarView", **VIEW, **{"$select": "showAs,isAllDay"})["value"]
    assert set(event) == {"@odata.etag", "id", "showAs", "isAllDay"}


def test_what_overlaps_the_window_is_there_and_what_touches_it_is_not(sandbox: Sandbox) -> None:
    call = bob(sandbox, MEETING)

    def found(start: str, end: str) -> int:
        window = {"startDateTime": f"2026-12-03T{start}", "endDateTime": f"2026-12-03T{end}"}
        return len(call.get("me/calendarView", **window)["value"])

    assert found("09:59:00Z", "12:00:00Z") == 1
    assert found("10:00:00Z", "12:00:00Z") == 0
    assert found("07:00:00", "09:00:00") == 0
    assert found("10:59:00+01:00", "12:00:00+01:00") == 1


def test_series_are_expanded_into_occurrences(sandbox: Sandbox) -> None:
    event = MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=5"}
    window = {"startDateTime": "2026-12-04T00:00:00Z", "endDateTime": "2026-12-06T00:00:00Z"}
    found = bob(sandbox, event).get("me/calendarView", **window)["value"]
    assert [e["start"]["dateTime"][:10] for e in found] == ["2026-12-04", "2026-12-05"]
    assert {e["type"] for e in found} == {"occurrence"}
    assert len({e["seriesMasterId"] for e in found}) == 1


def test_cancelled_and_declined_meetings_stay_visible(sandbox: Sandbox) -> None:
    declined = MEETING | {"responseStatus": "declined"}
    found = bob(sandbox, MEETING | {"isCancelled": True}, declined).get("me/calendarView", **VIEW)["value"]
    assert [(e["isCancelled"], e["responseStatus"]["response"]) for e in found] == [
        (True, "organizer"),
        (False, "declined"),
    ]


def test_a_calendar_is_read_by_its_id(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"subject": "Team", "id": "AAMkteam="}]
    call = bob(sandbox, MEETING | {"calendarId": "AAMkteam="}, calendars=calendars)
    assert call.get("me/calendarView", **VIEW)["value"] == []
    assert call.get("me/calendar/calendarView", **VIEW)["value"] == []
    assert len(call.get("me/calendars/AAMkteam%3D/calendarView", **VIEW)["value"]) == 1


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({}, "ErrorInvalidParameter"),
        ({"startDateTime": "2026-12-03T00:00:00Z"}, "ErrorInvalidParameter"),
        ({"startDateTime": "soon", "endDateTime": "later"}, "ErrorInvalidParameter"),
        ({"startDateTime": "2026-12-04", "endDateTime": "2026-12-03"}, "ErrorInvalidParameter"),
        ({"startDateTime": "2026-01-01", "endDateTime": "2031-01-01"}, "ErrorInvalidRequest"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(
    sandbox: Sandbox, window: dict[str, str], expected: str
) -> None:
    assert code(bob(sandbox)("GET", "me/calendarView", params=window)) == (400, expected)
