"""Calendars, mailbox settings, permissions and tokens of Microsoft Graph."""

from __future__ import annotations

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import VIEW, code, graph

BOB = "bob@example.com"


def test_a_calendar_knows_its_owner_and_no_zone(sandbox: Sandbox) -> None:
    calendars = [{"primary": True}, {"id": "AAMkshared", "subject": "Team", "accessRole": "reader"}]
    call = graph(sandbox, sandbox.account("microsoft", BOB, calendars=calendars))
    mine, shared = call.get("me/calendars")["value"]
    assert (mine["isDefaultCalendar"], mine["canEdit"], mine["owner"]["address"]) == (True, True, BOB)
    assert (shared["isDefaultCalendar"], shared["canEdit"]) == (False, False)
    assert shared["owner"]["address"] != BOB
    assert "timeZone" not in mine
    assert call.get("me/calendar")["id"] == mine["id"]
    assert call.get("me/calendars/AAMkshared")["name"] == "Team"


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("Calendars.ReadWrite", {"list", "view", "write"}),
        ("https://graph.microsoft.com/calendars.read", {"list", "view"}),
        ("Calendars.ReadBasic", {"list", "view"}),
        ("MailboxSettings.Read", {"settings"}),
        ("User.Read", {"me"}),
    ],
)
def test_each_call_wants_one_of_its_permissions(sandbox: Sandbox, scope: str, allowed: set[str]) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB, scope=scope))
    when = {"dateTime": "2026-12-05T12:00:00", "timeZone": "UTC"}
    answers = {
        "list": call("GET", "me/calendars"),
        "view": call("GET", "me/calendarView", params=VIEW),
        "write": call("POST", "me/events", json={"subject": "x", "start": when, "end": when}),
        "settings": call("GET", "me/mailboxSettings"),
        "me": call("GET", "me"),
    }
    assert {name for name, answer in answers.items() if answer.status_code < 300} == allowed
    for name in answers.keys() - allowed:
        assert code(answers[name]) == (403, "ErrorAccessDenied")
