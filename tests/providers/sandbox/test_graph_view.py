"""calendarView: https://learn.microsoft.com/graph/api/calendar-list-calendarview"""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import MEETING, VIEW, Caller, graph

BOB = "bob@example.com"


def bob(sandbox: Sandbox, *events: dict[str, Any], **more: Any) -> Caller:
    return graph(sandbox, sandbox.account("microsoft", BOB, events=events, **more))


def hours(count: int) -> list[dict[str, Any]]:
    return [
        {"subject": f"{n}", "start": f"2026-12-03T{n:02d}:00:00Z", "end": f"2026-12-03T{n:02d}:30:00Z"}
        for n in range(count)
    ]


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


def test_only_selected_properties_come_beside_id_and_etag(sandbox: Sandbox) -> None:
    (event,) = bob(sandbox, MEETING).get("me/calendarView", **VIEW, **{"$select": "showAs,isAllDay"})["value"]
    assert set(event) == {"@odata.etag", "id", "showAs", "isAllDay"}


def test_cancelled_and_declined_meetings_stay_visible(sandbox: Sandbox) -> None:
    declined = MEETING | {"responseStatus": "declined"}
    found = bob(sandbox, MEETING | {"isCancelled": True}, declined).get("me/calendarView", **VIEW)["value"]
    assert [(e["isCancelled"], e["responseStatus"]["response"]) for e in found] == [
        (True, "organizer"),
        (False, "declined"),
    ]
