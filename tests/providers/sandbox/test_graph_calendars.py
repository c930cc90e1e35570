"""Calendars, mailbox settings, permissions and tokens of Microsoft Graph."""

from __future__ import annotations

import pytest

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import VIEW, Caller, code, graph

BOB = "bob@example.com"
MANY = [{"primary": True}, *({"subject": f"Calendar {n}"} for n in range(11))]


def test_calendars_are_paged_by_ten_with_absolute_links(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", BOB, calendars=MANY)
    call = graph(sandbox, account)
    first = call.get("me/calendars")
    assert len(first["value"]) == 10
    link = first["@odata.nextLink"]
    assert link.startswith(f"{sandbox.url}/microsoft/v1.0/me/calendars?")
    rest = call.get(link.removeprefix(f"{call.base}/"))
    assert len(rest["value"]) == 2
    assert "@odata.nextLink" not in rest
    assert len(call.get("me/calendars", **{"$top": 100})["value"]) == 12


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


def test_ids_hold_no_slash_and_no_plus(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", BOB, calendars=MANY)
    for calendar in graph(sandbox, account).get("me/calendars", **{"$top": 100})["value"]:
        assert not set(calendar["id"]) & set("/+")


def test_mailbox_zone_has_its_windows_name(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB, time_zone="America/New_York"))
    assert call.get("me/mailboxSettings")["timeZone"] == "Eastern Standard Time"
    assert call.get("me/mailboxSettings/timeZone")["value"] == "Eastern Standard Time"


def test_a_zone_may_be_given_by_its_windows_name(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB, time_zone="W. Europe Standard Time"))
    assert call.get("me/mailboxSettings/timeZone")["value"] == "W. Europe Standard Time"


def test_profile_has_mail_and_principal_name(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB))
    assert call.get("me", **{"$select": "mail,userPrincipalName"})["mail"] == BOB


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


def test_a_dead_token_is_401_with_a_challenge(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", BOB, expires_in=0)
    for call in (graph(sandbox, account), Caller(f"{sandbox.url}/microsoft/v1.0", "")):
        answer = call("GET", "me/calendars")
        assert code(answer) == (401, "InvalidAuthenticationToken")
        assert answer.headers["WWW-Authenticate"].startswith('Bearer realm=""')


def test_every_answer_carries_the_ids_of_its_request(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB))
    answer = call("GET", "me/calendars/AAMknosuch", headers={"client-request-id": "mine"})
    assert code(answer) == (404, "ErrorItemNotFound")
    inner = answer.json()["error"]["innerError"]
    assert answer.headers["client-request-id"] == inner["client-request-id"] == "mine"
    assert answer.headers["request-id"] == inner["request-id"]
    assert code(call("GET", "me/calendars/nonsense")) == (400, "ErrorInvalidIdMalformed")


def test_an_account_without_calendars_has_no_mailbox(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB, calendars=[]))
    assert code(call("GET", "me/calendars")) == (404, "MailboxNotEnabledForRESTAPI")
    assert code(call("GET", "me/calendarView", params=VIEW)) == (404, "MailboxNotEnabledForRESTAPI")
