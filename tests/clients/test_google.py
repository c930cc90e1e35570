"""google-api-python-client against the sandbox; each answer is checked with the discovery document."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from googleapiclient.errors import HttpError

from providers.sandbox.client import Sandbox, SandboxAccount
from providers.sandbox.google import scopes
from tests.clients.discovery import check, document, methods
from tests.clients.google_client import connected

pytestmark = pytest.mark.clients

ADA = "ada@example.com"
CALENDARS = [
    {"primary": True},
    {"id": "c_team@group.calendar.google.com", "subject": "Team", "timeZone": "America/New_York"},
    {"id": "en.german#holiday@group.v.calendar.google.com", "subject": "Holidays", "accessRole": "reader"},
    {"id": "boss@example.com", "subject": "Boss", "accessRole": "freeBusyReader"},
]
EVENTS = [
    {"subject": "Review", "start": "2026-12-03T10:00:00", "end": "2026-12-03T11:00:00"},
    {"subject": "Fair", "start": "2026-12-07", "end": "2026-12-09", "allDay": True, "showAs": "free"},
    {"subject": "Maybe", "start": "2026-12-04T10:00:00", "end": "2026-12-04T11:00:00", "status": "tentative"},
    {
        "subject": "Weekly",
        "start": "2026-12-01T09:00:00",
        "end": "2026-12-01T09:30:00",
        "recurrence": ["RRULE:FREQ=WEEKLY;COUNT=4"],
    },
    {
        "calendarId": "boss@example.com",
        "subject": "Secret",
        "start": "2026-12-03T10:00:00",
        "end": "2026-12-03T11:00:00",
    },
]
WINDOW = {"timeMin": "2026-12-03T00:00:00Z", "timeMax": "2026-12-04T00:00:00Z"}
MADE = {
    "summary": "Made",
    "description": "<b>x</b>",
    "location": "Room 1",
    "start": {"dateTime": "2026-12-05T10:00:00", "timeZone": "Europe/Berlin"},
    "end": {"dateTime": "2026-12-05T11:00:00", "timeZone": "Europe/Berlin"},
    "attendees": [{"email": "bob@example.com"}],
    "extendedProperties": {"private": {"metaId": "m-42"}},
    "reminders": {"useDefault": False, "overrides": [{"method": "popup", "minutes": 5}]},
    "visibility": "private",
}


@pytest.fixture
def ada(sandbox: Sandbox) -> SandboxAccount:
    return sandbox.account("google", ADA, time_zone="Europe/Berlin", calendars=CALENDARS, events=EVENTS)


@pytest.fixture
def connect(sandbox: Sandbox) -> Iterator[Callable[..., Any]]:
    """The official client with an account's tokens."""
    with ExitStack() as closing:
        yield lambda account, token=None: closing.enter_context(connected(sandbox, account, token))


@pytest.fixture
def calendar(connect: Callable[..., Any], ada: SandboxAccount) -> Any:
    return connect(ada)


def test_calendars_are_listed(calendar: Any) -> None:
    answer = calendar.calendarList().list().execute()
    check(answer, "CalendarList")
    assert [entry["id"] for entry in answer["items"]] == [ADA, *(c["id"] for c in CALENDARS[1:])]


def test_the_client_follows_short_and_empty_pages(calendar: Any) -> None:
    found, sizes = [], []
    call = calendar.calendarList().list(maxResults=2)
    while call is not None:
        answer = call.execute()
        check(answer, "CalendarList")
        found += [entry["summary"] for entry in answer["items"]]
        sizes.append(len(answer["items"]))
        call = calendar.calendarList().list_next(call, answer)
    assert found == [ADA, "Team", "Holidays", "Boss"]
    assert sizes == [1, 0, 2, 1]


def test_single_calendars_and_settings(calendar: Any) -> None:
    for entry in CALENDARS[1:]:
        check(calendar.calendarList().get(calendarId=entry["id"]).execute(), "CalendarListEntry")
        check(calendar.calendars().get(calendarId=entry["id"]).execute(), "Calendar")
    check(calendar.settings().get(setting="timezone").execute(), "Setting")
    check(calendar.settings().list().execute(), "Settings")


def test_free_busy_with_an_unknown_calendar(calendar: Any) -> None:
    asked = {**WINDOW, "items": [{"id": "primary"}, {"id": "nosuch@example.com"}]}
    answer = calendar.freebusy().query(body=asked).execute()
    check(answer, "FreeBusyResponse")
    assert answer["calendars"] == {
        "primary": {"busy": [{"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}]},
        "nosuch@example.com": {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []},
    }


@pytest.mark.parametrize(
    ("query", "subjects"),
    [
        ({}, ["Review", "Fair", "Maybe", "Weekly"]),
        ({"singleEvents": True, "orderBy": "startTime", **WINDOW}, ["Review"]),
        (
            {"singleEvents": True, "orderBy": "startTime"},
            ["Weekly", "Review", "Maybe", "Fair", *["Weekly"] * 3],
        ),
        ({"timeZone": "Asia/Tokyo", "q": "fair", "showDeleted": True}, ["Fair"]),
    ],
)
def test_events_page_by_page(calendar: Any, query: dict[str, Any], subjects: list[str]) -> None:
    found = []
    call = calendar.events().list(calendarId="primary", maxResults=2, **query)
    while call is not None:
        answer = call.execute()
        check(answer, "Events")
        found += [event["summary"] for event in answer["items"]]
        call = calendar.events().list_next(call, answer)
    assert found == subjects


def test_events_of_a_calendar_one_sees_only_busy_times_of(calendar: Any) -> None:
    answer = calendar.events().list(calendarId="boss@example.com").execute()
    check(answer, "Events")
    assert "summary" not in answer["items"][0]


def test_the_life_of_an_event(calendar: Any) -> None:
    events = calendar.events()
    made = events.insert(calendarId="primary", body=MADE, sendUpdates="none").execute()
    here = {"calendarId": "primary", "eventId": made["id"]}
    check(made, "Event")
    check(events.get(**here).execute(), "Event")
    patched = events.patch(**here, body={"summary": "Patched", "visibility": "default"}).execute()
    check(patched, "Event")
    assert "visibility" not in patched
    updated = events.update(**here, body=patched | {"summary": "Updated"}).execute()
    check(updated, "Event")
    found = events.list(calendarId="primary", privateExtendedProperty="metaId=m-42").execute()
    check(found, "Events")
    assert [event["summary"] for event in found["items"]] == ["Updated"]
    assert events.delete(**here).execute() == ""
    check(events.get(**here).execute(), "Event")
    with pytest.raises(HttpError) as gone:
        events.delete(**here).execute()
    assert gone.value.status_code == 410


def test_a_series_and_its_instances(calendar: Any) -> None:
    events = calendar.events()
    weekly = next(e for e in events.list(calendarId="primary").execute()["items"] if "recurrence" in e)
    instances = events.instances(calendarId="primary", eventId=weekly["id"]).execute()
    check(instances, "Events")
    second = instances["items"][1]["id"]
    check(events.get(calendarId="primary", eventId=second).execute(), "Event")
    moved = {"end": {"dateTime": "2026-12-08T12:00:00+01:00"}}
    check(events.patch(calendarId="primary", eventId=second, body=moved).execute(), "Event")
    events.delete(calendarId="primary", eventId=second).execute()
    answer = events.list(calendarId="primary").execute()
    check(answer, "Events")
    assert [e["id"] for e in answer["items"] if e["status"] == "cancelled"] == [second]


def test_a_sync_token_is_followed(calendar: Any) -> None:
    events = calendar.events()
    token = events.list(calendarId="primary").execute()["nextSyncToken"]
    made = events.insert(calendarId="primary", body=MADE).execute()
    answer = events.list(calendarId="primary", syncToken=token).execute()
    check(answer, "Events")
    assert [event["id"] for event in answer["items"]] == [made["id"]]


def test_a_401_is_answered_by_one_refresh(
    connect: Callable[..., Any], ada: SandboxAccount, sandbox: Sandbox
) -> None:
    calendar = connect(ada, token="ya29.stale")
    check(calendar.calendarList().list().execute(), "CalendarList")
    assert sandbox.requests().by_operation == {"google.calendarList.list": 2, "google.token": 1}


def test_errors_are_read_by_the_client(calendar: Any, sandbox: Sandbox) -> None:
    with pytest.raises(HttpError) as missing:
        calendar.events().get(calendarId="primary", eventId="nosuch").execute()
    assert (missing.value.status_code, missing.value.reason) == (404, "Not Found")
    sandbox.fault(operation="google.freebusy.query", reason="rateLimitExceeded")
    with pytest.raises(HttpError) as limited:
        calendar.freebusy().query(body={**WINDOW, "items": []}).execute()
    assert limited.value.error_details[0]["reason"] == "rateLimitExceeded"


@pytest.mark.parametrize(
    ("method", "opened_by"),
    [
        ("calendar.calendarList.list", scopes.READ_LIST),
        ("calendar.calendarList.get", scopes.READ_ENTRY),
        ("calendar.calendars.get", scopes.READ_CALENDAR),
        ("calendar.freebusy.query", scopes.READ_BUSY),
        ("calendar.events.list", scopes.READ_EVENTS),
        ("calendar.events.get", scopes.READ_EVENTS),
        ("calendar.events.instances", scopes.READ_EVENTS),
        ("calendar.events.insert", scopes.WRITE_EVENTS),
        ("calendar.events.patch", scopes.WRITE_EVENTS),
        ("calendar.events.update", scopes.WRITE_EVENTS),
        ("calendar.events.delete", scopes.WRITE_EVENTS),
        ("calendar.settings.get", scopes.READ_SETTINGS),
        ("calendar.settings.list", scopes.READ_SETTINGS),
    ],
)
def test_scopes_are_those_of_the_discovery_document(method: str, opened_by: frozenset[str]) -> None:
    assert opened_by == set(methods(document()["resources"])[method]["scopes"])
