"""A calendar that two accounts can read, each through its own list."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox, SandboxAccount
from tests.providers.sandbox.callers import MEETING, VIEW, code, free_busy, google, graph, reason

ADA, BOB = "ada@example.com", "bob@example.com"
NINE = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
GOOGLE_EVENT = {edge: {"dateTime": time} for edge, time in NINE.items()}
GRAPH_EVENT = {edge: {"dateTime": time[:-1], "timeZone": "UTC"} for edge, time in NINE.items()}


def two(sandbox: Sandbox, provider: str, **ada: Any) -> tuple[SandboxAccount, SandboxAccount]:
    return sandbox.account(provider, ADA, **ada), sandbox.account(provider, BOB)


def test_a_shared_google_calendar_has_one_id_in_both_lists(sandbox: Sandbox) -> None:
    ada, bob = two(sandbox, "google")
    shared = sandbox.share(ada, bob, access_role="reader")
    assert shared == ADA
    entries = {each["id"]: each for each in google(sandbox, bob).get("users/me/calendarList")["items"]}
    assert entries.keys() == {ADA, BOB}
    assert entries[ADA]["accessRole"] == "reader"
    assert "primary" not in entries[ADA]


def test_shared_microsoft_calendar_has_own_id_per_mailbox(sandbox: Sandbox) -> None:
    ada, bob = two(sandbox, "microsoft")
    shared = sandbox.share(ada, bob)
    own = graph(sandbox, ada).get("me/calendar")["id"]
    assert shared != own
    entry = graph(sandbox, bob).get(f"me/calendars/{shared}")
    assert entry["owner"]["address"] == ADA
    assert not entry["isDefaultCalendar"]
    assert entry["canEdit"]
    assert code(graph(sandbox, ada)("GET", f"me/calendars/{shared}")) == (404, "ErrorItemNotFound")


def test_a_write_through_either_google_account_is_seen_through_both(sandbox: Sandbox) -> None:
    ada, bob = two(sandbox, "google")
    sandbox.share(ada, bob)
    for writer, reader in ((ada, bob), (bob, ada)):
        # Both read before the write, so that both have cached an answer that the write must invalidate.
        for each in (ada, bob):
            assert free_busy(google(sandbox, each), ADA) == {ADA: {"busy": []}}
        made = google(sandbox, writer)("POST", f"calendars/{ADA}/events", json=GOOGLE_EVENT)
        event = f"calendars/{ADA}/events/{made.json()['id']}"
        assert free_busy(google(sandbox, reader), ADA) == {ADA: {"busy": [NINE]}}
        assert google(sandbox, reader)("DELETE", event).status_code == 204
        assert free_busy(google(sandbox, writer), ADA) == {ADA: {"busy": []}}


def test_a_write_through_either_mailbox_is_seen_through_both(sandbox: Sandbox) -> None:
    ada, bob = two(sandbox, "microsoft")
    paths = {ADA: "me/calendar", BOB: f"me/calendars/{sandbox.share(ada, bob)}"}
    for writer, reader in ((ada, bob), (bob, ada)):
        for each in (ada, bob):
            assert graph(sandbox, each).get(f"{paths[each.email]}/calendarView", **VIEW)["value"] == []
        made = graph(sandbox, writer)("POST", f"{paths[writer.email]}/events", json=GRAPH_EVENT)
        (found,) = graph(sandbox, reader).get(f"{paths[reader.email]}/calendarView", **VIEW)["value"]
        assert found["id"] == made.json()["id"]
        event = f"{paths[reader.email]}/events/{found['id']}"
        assert graph(sandbox, reader)("DELETE", event).status_code == 204
        assert graph(sandbox, writer).get(f"{paths[writer.email]}/calendarView", **VIEW)["value"] == []


def test_a_named_calendar_can_be_shared_and_its_reader_cannot_write(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"id": "team@group.calendar.google.com"}]
    events = [MEETING | {"calendarId": "team@group.calendar.google.com"}]
    ada, bob = two(sandbox, "google", calendars=calendars, events=events)
    shared = sandbox.share(ada, bob, "team@group.calendar.google.com", access_role="reader")
    assert shared == "team@group.calendar.google.com"
    assert len(google(sandbox, bob).get(f"calendars/{shared}/events")["items"]) == 1
    refused = google(sandbox, bob)("POST", f"calendars/{shared}/events", json=GOOGLE_EVENT)
    assert reason(refused) == (403, "requiredAccessLevel")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"provider": "yahoo"}, "provider is google or microsoft"),
        ({"email": "nobody@example.com"}, "no account nobody@example.com"),
        ({"with": "nobody@example.com"}, "no account nobody@example.com"),
        ({"with": ADA}, "ada@example.com has this calendar already"),
        ({"calendarId": "x"}, "no calendar 'x'"),
        (
            {"accessRole": "king"},
            "accessRole is one of freeBusyReader, reader, writerWithoutPrivateAccess, writer, owner",
        ),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(
    sandbox: Sandbox, changed: dict[str, str], problem: str
) -> None:
    two(sandbox, "google")
    body = {"provider": "google", "email": ADA, "with": BOB} | changed
    answer = requests.post(f"{sandbox.url}/sandbox/shares", json=body, timeout=10)
    assert (answer.status_code, answer.json()) == (400, {"error": problem})
