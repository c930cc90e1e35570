"""Applications with permissions of their own: client credentials, and mailboxes by path."""

from __future__ import annotations

from typing import Any

import pytest

from providers.sandbox.client import Sandbox, SandboxDomain
from tests.providers.sandbox.callers import (
    MEETING,
    VIEW,
    Caller,
    application,
    application_token,
    code,
    graph,
)

DOMAIN = "acme.example"
ADA, BOB, EVE = (f"{name}@{DOMAIN}" for name in ("ada", "bob", "eve"))
QUERY = f"startDateTime={VIEW['startDateTime']}&endDateTime={VIEW['endDateTime']}"


@pytest.fixture
def acme(sandbox: Sandbox) -> SandboxDomain:
    members = [{"email": ADA, "events": [MEETING]}, BOB, {"email": EVE, "timeZone": "Europe/Berlin"}]
    return sandbox.domain("microsoft", DOMAIN, members)


@pytest.fixture
def call(sandbox: Sandbox, acme: SandboxDomain) -> Caller:
    return application(sandbox, acme)


def view(email: str) -> str:
    return f"users/{email}/calendar/calendarView?{QUERY}"


def batch(call: Caller, *urls: str) -> list[dict[str, Any]]:
    """The parts of a batch of GETs, in the order of the URLs."""
    parts = [{"id": str(n), "method": "GET", "url": f"/{url}"} for n, url in enumerate(urls)]
    answer = call("POST", "$batch", json={"requests": parts})
    assert answer.status_code == 200, answer.text
    found = {part["id"]: part for part in answer.json()["responses"]}
    return [found[str(n)] for n in range(len(urls))]


def refused(sandbox: Sandbox, domain: SandboxDomain, **form: str) -> tuple[int, str, list[int]]:
    answer = application_token(sandbox, domain, **form)
    return answer.status_code, answer.json()["error"], answer.json()["error_codes"]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({"client_secret": "guessed"}, (401, "invalid_client", [7000215])),
        ({"client_id": "6731de76-14a6-49ae-97bc-6eba6914391e"}, (400, "unauthorized_client", [700016])),
        ({"tenant": "0ef6a23b-8dd4-4d0d-9d7b-4ad7c3c1d8cc"}, (400, "invalid_tenant", [90002])),
        ({"scope": "https://graph.microsoft.com/Calendars.Read"}, (400, "invalid_scope", [1002012])),
    ],
)
def test_wrong_credentials_are_refused(
    sandbox: Sandbox, acme: SandboxDomain, form: dict[str, str], expected: tuple[int, str, list[int]]
) -> None:
    assert refused(sandbox, acme, **form) == expected


def test_me_needs_a_user(call: Caller) -> None:
    answer = call("GET", "me/calendars")
    assert code(answer) == (400, "BadRequest")
    assert (
        answer.json()["error"]["message"] == "/me request is only valid with delegated authentication flow."
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"excluded": True}, (403, "ErrorAccessDenied")),
        ({"suspended": True}, (404, "MailboxNotEnabledForRESTAPI")),
        ({"calendars": []}, (404, "MailboxNotEnabledForRESTAPI")),
    ],
)
def test_an_unreadable_member_fails_alone(
    sandbox: Sandbox, state: dict[str, Any], expected: tuple[int, str]
) -> None:
    domain = sandbox.domain("microsoft", DOMAIN, [ADA, {"email": BOB, **state}])
    ada, bob, missing = batch(application(sandbox, domain), view(ADA), view(BOB), view(f"nosuch@{DOMAIN}"))
    assert ada["status"] == 200
    assert (bob["status"], bob["body"]["error"]["code"]) == expected
    assert (missing["status"], missing["body"]["error"]["code"]) == (404, "ErrorInvalidUser")


def test_a_deleted_mailbox_is_unknown_and_in_no_directory(sandbox: Sandbox) -> None:
    roles = ["Calendars.ReadWrite", "MailboxSettings.Read", "User.Read.All", "Place.Read.All"]
    rooms = [{"email": EVE, "name": "Aurora"}]
    call = application(sandbox, sandbox.domain("microsoft", DOMAIN, [ADA, BOB], rooms=rooms, scope=roles))

    sandbox.delete(BOB)
    sandbox.delete(EVE)

    ada, bob, eve = batch(call, view(ADA), view(BOB), view(EVE))
    assert ada["status"] == 200
    assert [(each["status"], each["body"]["error"]["code"]) for each in (bob, eve)] == [
        (404, "ErrorInvalidUser")
    ] * 2
    assert [each["mail"] for each in call("GET", "users").json()["value"]] == [ADA]
    assert call("GET", "places/microsoft.graph.room").json()["value"] == []


def test_the_permissions_can_be_chosen(sandbox: Sandbox) -> None:
    domain = sandbox.domain("microsoft", DOMAIN, [ADA], scope=["Calendars.ReadBasic.All"])
    call = application(sandbox, domain)
    assert call("GET", view(ADA)).status_code == 200
    assert code(call("GET", f"users/{ADA}/mailboxSettings")) == (403, "ErrorAccessDenied")
    assert code(call("POST", f"users/{ADA}/events", json={})) == (403, "ErrorAccessDenied")


def test_a_members_own_token_opens_no_other_mailbox(sandbox: Sandbox, acme: SandboxDomain) -> None:
    own = graph(sandbox, sandbox.account("microsoft", BOB))
    assert own("GET", view(BOB)).status_code == 200
    assert code(own("GET", view(ADA))) == (403, "ErrorAccessDenied")
