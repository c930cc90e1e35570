"""Events between our service and google-api-python-client: each reads what the other wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from providers.sandbox.client import Sandbox
from tests.app.days import periods
from tests.clients.discovery import check
from tests.clients.google_client import connected
from tests.conftest import Api

pytestmark = [pytest.mark.clients, pytest.mark.usefixtures("worker")]

ADA, BOB = "ada@example.com", "bob@example.com"
WEEK = {"start": "2026-12-01", "end": "2026-12-08"}
TIMED = {
    "subject": "Review 日本",
    "description": "a < b\nc & d",
    "location": "Room 1",
    "start": "2026-12-03T10:00",
    "end": "2026-12-03T11:30",
    "attendees": [{"email": BOB}, {"email": ADA}],
    "metaId": "m-42",
}


@pytest.fixture
def calendar(sandbox: Sandbox, new_user: Callable[..., str], api: Api) -> Iterator[Any]:
    """The official client of an account that is connected to ``calendar.user``."""
    account = sandbox.account("google", ADA, time_zone="Europe/Berlin")
    with connected(sandbox, account) as client:
        client.user = new_user(account)
        yield client


@pytest.fixture
def ours(api: Api, calendar: Any) -> Callable[..., Any]:
    """Call our service for the events of the main calendar; returns the answer."""

    def call(method: str, path: str = "/google/primary", body: Any = None, **query: str) -> Any:
        answer = api.call(
            method,
            f"/users/{calendar.user}/calendar/events{path}",
            headers={"X-Timezone": "Europe/Berlin"},
            query_string=query,
            **({} if body is None else {"json": body}),
        )
        assert answer.status_code in (200, 201), answer.text
        assert answer.json is not None
        return answer.json["data"]

    return call


def stored(calendar: Any, event_id: str) -> Any:
    """An event as the client reads it, checked with the vendor's schema."""
    found = calendar.events().get(calendarId="primary", eventId=event_id).execute()
    check(found, "Event")
    return found


def test_a_timed_event_of_ours_is_read_by_the_client(calendar: Any, ours: Callable[..., Any]) -> None:
    made = ours("POST", body=TIMED)

    found = stored(calendar, made["id"])

    assert found["summary"] == "Review 日本"
    assert (found["description"], found["location"]) == ("a < b\nc & d", "Room 1")
    assert found["start"] == {"dateTime": "2026-12-03T10:00:00+01:00", "timeZone": "Europe/Berlin"}
    assert found["end"] == {"dateTime": "2026-12-03T11:30:00+01:00", "timeZone": "Europe/Berlin"}
    assert [each["email"] for each in found["attendees"]] == [BOB, ADA]
    assert found["extendedProperties"]["private"]["metaId"] == "m-42"
    assert found == made["original"]


def test_what_we_change_and_delete_is_changed_and_gone(calendar: Any, ours: Callable[..., Any]) -> None:
    made = ours("POST", body=TIMED)
    here = f"/google/primary/{made['id']}"
    ours("PUT", here, {"subject": "Later", "start": "2026-12-04", "end": "2026-12-05"})
    found = stored(calendar, made["id"])
    assert (found["summary"], found["start"]) == ("Later", {"date": "2026-12-04"})
    assert (found["location"], len(found["attendees"])) == ("Room 1", 2)
    ours("DELETE", here)
    assert stored(calendar, made["id"])["status"] == "cancelled"
    assert calendar.events().list(calendarId="primary").execute()["items"] == []


def test_what_the_client_wrote_is_read_by_us(calendar: Any, ours: Callable[..., Any], api: Api) -> None:
    berlin = {"timeZone": "Europe/Berlin"}
    body = {
        "summary": "Made",
        "description": "By another program",
        "location": "Room 2",
        "start": {"dateTime": "2026-12-03T10:00:00", **berlin},
        "end": {"dateTime": "2026-12-03T11:00:00", **berlin},
        "attendees": [{"email": BOB, "responseStatus": "accepted"}, {"email": ADA}],
        "extendedProperties": {"private": {"metaId": "m-7"}},
    }
    event_id = calendar.events().insert(calendarId="primary", body=body).execute()["id"]
    days = {"summary": "Fair", "start": {"date": "2026-12-05"}, "end": {"date": "2026-12-06"}}
    calendar.events().insert(calendarId="primary", body=days).execute()
    daily = body | {"summary": "Daily", "recurrence": ["RRULE:FREQ=DAILY;COUNT=2"], "attendees": []}
    daily |= {
        name: {"dateTime": f"2026-12-03T{clock}:00:00", **berlin}
        for name, clock in (("start", 14), ("end", 15))
    }
    daily.pop("extendedProperties")
    calendar.events().insert(calendarId="primary", body=daily).execute()

    read = ours("GET", f"/google/primary/{event_id}")

    assert (read["subject"], read["description"], read["location"]) == (
        "Made",
        "By another program",
        "Room 2",
    )
    assert (read["start"], read["end"]) == ("2026-12-03T09:00:00.000Z", "2026-12-03T10:00:00.000Z")
    assert [(each["email"], each["self"], each["responseStatus"]) for each in read["attendees"]] == [
        (BOB, False, "accepted"),
        (ADA, True, "needsAction"),
    ]
    assert [copy["id"] for copy in ours("GET", "/meta/m-7")["events"]] == [event_id]
    assert [(each["start"], each["subject"]) for each in ours("GET", "", **WEEK)] == [
        ("2026-12-03T09:00:00.000Z", "Made"),
        ("2026-12-03T13:00:00.000Z", "Daily"),
        ("2026-12-04T13:00:00.000Z", "Daily"),
        ("2026-12-04T23:00:00.000Z", "Fair"),
    ]
    busy = api.get(f"/users/{calendar.user}/calendar/busy", **WEEK)
    assert periods(busy) == [
        ("09:00", "10:00"),
        ("13:00", "14:00"),
        ("2026-12-04 13:00", "2026-12-04 14:00"),
        ("2026-12-04 23:00", "2026-12-05 23:00"),
    ]


SERIES = {
    "subject": "Weekly",
    "start": "2026-10-22T09:00",
    "end": "2026-10-22T10:00",
    "timeZone": "Europe/Berlin",
    "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE:20261105T080000Z"],
}
AUTUMN = {"start": "2026-10-20", "end": "2026-11-30"}


def instances(calendar: Any, series: str) -> list[tuple[str, str]]:
    """The occurrences of a series as the client reads them: when, and what."""
    found = calendar.events().instances(calendarId="primary", eventId=series).execute()
    return [(each["start"]["dateTime"], each["summary"]) for each in found["items"]]


def test_a_series_of_ours_is_read_and_changed_by_the_client(calendar: Any, ours: Callable[..., Any]) -> None:
    made = ours("POST", body=SERIES)
    assert stored(calendar, made["id"])["recurrence"] == SERIES["recurrence"]
    assert instances(calendar, made["id"]) == [
        ("2026-10-22T09:00:00+02:00", "Weekly"),
        ("2026-10-29T09:00:00+01:00", "Weekly"),
        ("2026-11-12T09:00:00+01:00", "Weekly"),
    ]
    second = ours("GET", "", **AUTUMN)[1]
    later = {"dateTime": "2026-10-29T11:00:00", "timeZone": "Europe/Berlin"}
    body = {"start": later, "end": {**later, "dateTime": "2026-10-29T12:00:00"}}
    calendar.events().patch(calendarId="primary", eventId=second["id"], body=body).execute()
    moved = ours("GET", "", **AUTUMN)[1]
    assert (moved["start"], moved["originalStart"]) == (
        "2026-10-29T10:00:00.000Z",
        "2026-10-29T08:00:00.000Z",
    )
    assert moved["seriesId"] == made["id"]


def test_every_scope_of_ours_is_seen_by_the_client(calendar: Any, ours: Callable[..., Any]) -> None:
    made = ours("POST", body=SERIES)
    third = f"/google/primary/{ours('GET', '', **AUTUMN)[2]['id']}"
    ours("PUT", third, {"subject": "All"}, scope="series")
    later = ours("PUT", third, {"subject": "Later"}, scope="following")
    assert [summary for _, summary in instances(calendar, made["id"])] == ["All", "All"]
    assert instances(calendar, later["id"]) == [("2026-11-12T09:00:00+01:00", "Later")]
    assert stored(calendar, made["id"])["recurrence"][0].startswith("RRULE:FREQ=WEEKLY;UNTIL=20261112T0")
    ours("DELETE", f"/google/primary/{ours('GET', '', **AUTUMN)[1]['id']}", scope="following")
    assert len(instances(calendar, made["id"])) == 1
    ours("DELETE", f"/google/primary/{ours('GET', '', **AUTUMN)[0]['id']}", scope="series")
    assert stored(calendar, made["id"])["status"] == "cancelled"


def test_a_series_of_the_client_is_read_by_us(calendar: Any, ours: Callable[..., Any]) -> None:
    berlin = {"timeZone": "Europe/Berlin"}
    lines = ["RRULE:FREQ=WEEKLY;COUNT=4", "EXDATE;TZID=Europe/Berlin:20261105T090000"]
    body = {
        "summary": "Theirs",
        "start": {"dateTime": "2026-10-22T09:00:00", **berlin},
        "end": {"dateTime": "2026-10-22T10:00:00", **berlin},
        "recurrence": lines,
    }
    series = calendar.events().insert(calendarId="primary", body=body).execute()["id"]
    read = ours("GET", f"/google/primary/{series}")
    assert (read["recurrence"], read["timeZone"]) == (lines, "Europe/Berlin")
    starts = [each["start"][:16] for each in ours("GET", "", **AUTUMN)]
    assert starts == ["2026-10-22T07:00", "2026-10-29T08:00", "2026-11-12T08:00"]
