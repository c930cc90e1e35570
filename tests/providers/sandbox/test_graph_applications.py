"""Applications with permissions of their own: client credentials, and mailboxes by path."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta
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
WINDOW = {
    "startTime": {"dateTime": "2026-12-03T00:00:00", "timeZone": "UTC"},
    "endTime": {"dateTime": "2026-12-04T00:00:00", "timeZone": "UTC"},
}


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


def claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


def refused(sandbox: Sandbox, domain: SandboxDomain, **form: str) -> tuple[int, str, list[int]]:
    answer = application_token(sandbox, domain, **form)
    return answer.status_code, answer.json()["error"], answer.json()["error_codes"]


def test_a_token_has_the_permissions_as_roles_and_cannot_be_refreshed(
    sandbox: Sandbox, acme: SandboxDomain
) -> None:
    answer = application_token(sandbox, acme).json()
    assert answer.keys() == {"token_type", "expires_in", "ext_expires_in", "access_token"}
    found = claims(answer["access_token"])
    assert found["roles"] == ["Calendars.ReadWrite", "MailboxSettings.Read"]
    assert (found["tid"], found["appid"], found["idtyp"]) == (acme.tenant, acme.client_id, "app")


def test_a_tenant_may_be_named_by_its_domain(sandbox: Sandbox, acme: SandboxDomain) -> None:
    assert application_token(sandbox, acme, tenant=DOMAIN).status_code == 200


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


def test_another_tenants_application_is_unknown(sandbox: Sandbox, acme: SandboxDomain) -> None:
    other = sandbox.domain("microsoft", "other.example", ["oscar@other.example"])
    assert refused(sandbox, acme, tenant=other.tenant)[2] == [700016]
    call = application(sandbox, other)
    assert code(call("GET", view(ADA))) == (404, "ErrorInvalidUser")


def test_an_expired_secret_gives_no_token_and_ends_none(
    sandbox: Sandbox, acme: SandboxDomain, call: Caller
) -> None:
    sandbox.change_domain(DOMAIN, secretExpired=True)
    assert refused(sandbox, acme) == (401, "invalid_client", [7000222])
    assert call("GET", view(ADA)).status_code == 200
    sandbox.change_domain(DOMAIN, secretExpired=False)
    assert application_token(sandbox, acme).status_code == 200


def test_withdrawn_grant_ends_only_delegated_tokens(
    sandbox: Sandbox, acme: SandboxDomain, call: Caller
) -> None:
    personal = graph(sandbox, sandbox.account("microsoft", BOB))
    sandbox.withdraw(DOMAIN)
    assert refused(sandbox, acme) == (400, "unauthorized_client", [700016])
    assert code(call("GET", view(ADA))) == (401, "InvalidAuthenticationToken")
    assert personal("GET", "me/calendars").status_code == 200


def test_a_mailbox_is_named_by_the_path(call: Caller) -> None:
    (event,) = call.get(view(ADA))["value"]
    assert event["subject"] == "Design review"
    assert call.get(view(BOB))["value"] == []
    assert call.get(f"users/{EVE}/mailboxSettings")["timeZone"] == "W. Europe Standard Time"
    (calendar,) = call.get(f"users/{ADA.upper()}/calendars")["value"]
    assert call.get(f"users/{ADA}/calendars/{calendar['id']}/calendarView", **VIEW)["value"] == [event]
    assert call.get(f"users/{ADA}/events/{event['id']}")["subject"] == "Design review"


def test_events_are_written_in_the_mailbox_of_the_path(call: Caller) -> None:
    edge = {"dateTime": "2026-12-03T12:00:00", "timeZone": "UTC"}
    answer = call("POST", f"users/{BOB}/events", json={"subject": "Made", "start": edge, "end": edge})
    assert answer.status_code == 201
    path = f"users/{BOB}/events/{answer.json()['id']}"
    assert call("PATCH", path, json={"subject": "Changed"}).json()["subject"] == "Changed"
    assert code(call("GET", path.replace(BOB, ADA))) == (404, "ErrorItemNotFound")
    assert call("DELETE", path).status_code == 204


def test_pages_of_a_mailbox_continue_in_that_mailbox(sandbox: Sandbox, call: Caller) -> None:
    made = [MEETING | {"subject": str(n)} for n in range(3)]
    sandbox.account("microsoft", BOB, events=made)
    for first in (call.get(view(BOB) + "&$top=2"), batch(call, view(BOB) + "&$top=2")[0]["body"]):
        link = first["@odata.nextLink"].removeprefix(f"{call.base}/")
        assert link.startswith(f"users/{BOB}/")
        assert len(call.get(link)["value"]) == 1


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


def test_an_excluded_member_can_be_included_again(sandbox: Sandbox, call: Caller) -> None:
    sandbox.change_domain(DOMAIN, members=[{"email": ADA, "excluded": True}])
    assert code(call("GET", view(ADA))) == (403, "ErrorAccessDenied")
    sandbox.change_domain(DOMAIN, members=[{"email": ADA, "excluded": False}])
    assert call("GET", view(ADA)).status_code == 200


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


def test_schedules_are_those_of_the_tenant(sandbox: Sandbox, acme: SandboxDomain, call: Caller) -> None:
    sandbox.account("microsoft", "solo@elsewhere.example")
    sandbox.change_domain(DOMAIN, members=[{"email": EVE, "excluded": True}])
    body = {"schedules": [ADA, EVE, "solo@elsewhere.example"], **WINDOW}
    answer = call("POST", f"users/{BOB}/calendar/getSchedule", json=body).json()
    ada, eve, solo = answer["value"]
    assert [item["status"] for item in ada["scheduleItems"]] == ["busy"]
    assert eve["error"]["responseCode"] == solo["error"]["responseCode"] == "5009"


def test_twenty_mailboxes_in_one_batch_are_read_at_once(sandbox: Sandbox) -> None:
    members = [f"p{n}@{DOMAIN}" for n in range(20)]
    call = application(sandbox, sandbox.domain("microsoft", DOMAIN, members))
    sandbox.fault(operation="microsoft.calendarView.list", latency_ms=300)
    sandbox.forget_requests()
    began = time.monotonic()
    assert {part["status"] for part in batch(call, *map(view, members))} == {200}
    # Four parts of one mailbox at a time would take 1.5 seconds.
    assert 0.3 <= time.monotonic() - began < 1.4
    counted = sandbox.requests()
    assert counted.total == 1
    assert counted.by_operation == {"microsoft.batch": 1, "microsoft.calendarView.list": 20}


def test_a_fault_of_an_address_strikes_its_part_and_no_other(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(email=BOB, status=429, retry_after=7)
    ada, bob = batch(call, view(ADA), view(BOB))
    assert ada["status"] == 200
    assert (bob["status"], bob["headers"]["Retry-After"]) == (429, "7")
    assert call("GET", view(BOB)).status_code == 429


def test_the_whole_batch_can_be_throttled(sandbox: Sandbox, call: Caller) -> None:
    sandbox.fault(operation="microsoft.batch", status=429, retry_after=1, times=1)
    assert code(call("POST", "$batch", json={"requests": []})) == (429, "ApplicationThrottled")


def subscription(resource: str, url: str) -> dict[str, str]:
    return {
        "changeType": "created,updated,deleted",
        "notificationUrl": url,
        "resource": resource,
        "expirationDateTime": (datetime.now(UTC) + timedelta(hours=2)).isoformat(),
        "clientState": "t",
    }


def test_an_application_subscribes_to_a_mailbox(
    sandbox: Sandbox, acme: SandboxDomain, call: Caller, receiver: Any
) -> None:
    answer = call("POST", "subscriptions", json=subscription(f"users/{BOB}/events", receiver.url))
    assert answer.status_code == 201
    path = f"subscriptions/{answer.json()['id']}"
    edge = {"dateTime": "2026-12-03T12:00:00", "timeZone": "UTC"}
    call("POST", f"users/{BOB}/events", json={"subject": "Made", "start": edge, "end": edge})
    assert receiver.wait(1)[0].json["value"][0]["clientState"] == "t"

    own = graph(sandbox, sandbox.account("microsoft", EVE))
    other = application(sandbox, sandbox.domain("microsoft", "other.example"))
    for stranger in (own, other):
        assert code(stranger("GET", path)) == (404, "ResourceNotFound")
    assert [each["id"] for each in call.get("subscriptions")["value"]] == [answer.json()["id"]]
    assert call("PATCH", path, json=subscription("", "")).status_code == 200
    assert call("DELETE", path).status_code == 204


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("me/events", (400, "InvalidRequest")),
        (f"users/nosuch@{DOMAIN}/events", (404, "ErrorInvalidUser")),
        (f"users/{ADA}/messages", (400, "InvalidRequest")),
    ],
)
def test_a_resource_that_cannot_be_watched_is_refused(
    call: Caller, receiver: Any, resource: str, expected: tuple[int, str]
) -> None:
    assert code(call("POST", "subscriptions", json=subscription(resource, receiver.url))) == expected
