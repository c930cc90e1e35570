"""Service accounts with domain-wide delegation, and free/busy inside a domain."""

from __future__ import annotations

import time
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from providers.sandbox.client import Sandbox, SandboxDomain
from tests.providers.sandbox.callers import (
    CALENDAR_SCOPE,
    MEETING,
    acting_as,
    assertion,
    delegated_token,
    exchanged,
    free_busy,
    google,
    reason,
)

DOMAIN = "acme.example"
ADA, BOB, EVE = (f"{name}@{DOMAIN}" for name in ("ada", "bob", "eve"))
BUSY = [{"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}]
NOT_FOUND = {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
UNAUTHORIZED = (
    "Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of "
    "the scopes requested."
)
BAD_CLOCK = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your "
    "iat and exp values in the JWT claim."
)
FREE_BUSY = CALENDAR_SCOPE + ".freebusy"


@pytest.fixture
def acme(sandbox: Sandbox) -> SandboxDomain:
    return sandbox.domain("google", DOMAIN, [ADA, {"email": BOB, "events": [MEETING]}, EVE])


def refused(domain: SandboxDomain, subject: str = ADA, **changed: Any) -> tuple[int, str, str]:
    """Status, error and description of a refused token."""
    answer = delegated_token(domain, subject, **changed)
    return answer.status_code, answer.json()["error"], answer.json()["error_description"]


def test_a_token_for_a_member_lives_an_hour_and_cannot_be_refreshed(acme: SandboxDomain) -> None:
    answer = delegated_token(acme, ADA)
    assert answer.status_code == 200
    assert answer.json() | {"access_token": ""} == {
        "access_token": "",
        "expires_in": 3599,
        "token_type": "Bearer",
    }


def test_impersonation_reads_and_writes_everything_of_the_member(
    sandbox: Sandbox, acme: SandboxDomain
) -> None:
    call = acting_as(sandbox, acme, BOB)
    (event,) = call.get("calendars/primary/events")["items"]
    assert event["summary"] == "Design review"
    assert call("DELETE", f"calendars/primary/events/{event['id']}").status_code == 204
    assert free_busy(call, "primary") == {"primary": {"busy": []}}


def test_an_assertion_for_the_real_audience_is_accepted(acme: SandboxDomain) -> None:
    assert delegated_token(acme, ADA, aud="https://oauth2.googleapis.com/token").status_code == 200


def test_a_service_account_itself_has_no_calendars(sandbox: Sandbox, acme: SandboxDomain) -> None:
    call = acting_as(sandbox, acme, ADA, sub=None)
    assert call.get("users/me/calendarList")["items"] == []


@pytest.mark.parametrize("key", ["another key", "another domain's key"])
def test_a_wrong_private_key_gives_no_token(sandbox: Sandbox, acme: SandboxDomain, key: str) -> None:
    pem = RSAKey.generate_key(2048, private=True).as_pem(private=True).decode()
    if key == "another domain's key":
        pem = sandbox.domain("google", "other.example").service_account_key["private_key"]
    answer = exchanged(acme, assertion(acme, ADA, key=pem))
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "invalid_grant", "error_description": "Invalid JWT Signature."},
    )


@pytest.mark.parametrize(
    ("issued", "lifetime"),
    [(-600, 3600), (600, 3600), (0, 3700), (0, 0), (-7200, 3600)],
    ids=["slow clock", "fast clock", "over an hour", "no time", "hours ago"],
)
def test_times_out_of_bounds_are_refused(acme: SandboxDomain, issued: int, lifetime: int) -> None:
    start = int(time.time()) + issued
    assert refused(acme, iat=start, exp=start + lifetime) == (400, "invalid_grant", BAD_CLOCK)


@pytest.mark.parametrize("issued", [-120, 120])
def test_a_clock_that_is_two_minutes_off_is_accepted(acme: SandboxDomain, issued: int) -> None:
    start = int(time.time()) + issued
    assert delegated_token(acme, ADA, iat=start, exp=start + 3600).status_code == 200


@pytest.mark.parametrize("claim", [{"iat": None}, {"exp": None}, {"exp": "soon"}])
def test_an_assertion_without_times_is_refused(acme: SandboxDomain, claim: dict[str, Any]) -> None:
    assert refused(acme, **claim) == (400, "invalid_grant", BAD_CLOCK)


def test_a_wrong_audience_and_an_unknown_issuer_are_refused(acme: SandboxDomain) -> None:
    assert refused(acme, aud="https://elsewhere.example/google/token")[1:] == (
        "invalid_grant",
        "Invalid JWT: Failed audience check. The right audience is https://oauth2.googleapis.com/token",
    )
    assert refused(acme, iss="nosuch@x.iam.gserviceaccount.com")[1:] == (
        "invalid_grant",
        "Invalid grant: account not found",
    )


@pytest.mark.parametrize("text", ["", "a.b", "a.!!.c", "a.W10.c"])
def test_what_is_no_assertion_is_refused(acme: SandboxDomain, text: str) -> None:
    answer = exchanged(acme, text)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_an_unknown_or_suspended_subject_is_named_as_such(sandbox: Sandbox, acme: SandboxDomain) -> None:
    wrong = (400, "invalid_grant", "Invalid email or User ID")
    assert refused(acme, f"nosuch@{DOMAIN}") == wrong
    token = acting_as(sandbox, acme, ADA)
    sandbox.change_domain(DOMAIN, members=[{"email": ADA, "suspended": True}])
    assert refused(acme, ADA) == wrong
    assert reason(token("GET", "users/me/calendarList")) == (401, "authError")
    sandbox.change_domain(DOMAIN, members=[{"email": ADA, "suspended": False}])
    assert delegated_token(acme, ADA).status_code == 200


def test_an_account_of_another_domain_is_out_of_reach(sandbox: Sandbox, acme: SandboxDomain) -> None:
    sandbox.account("google", "ada@elsewhere.example")
    assert refused(acme, "ada@elsewhere.example") == (401, "unauthorized_client", UNAUTHORIZED)


def test_scopes_that_were_not_authorized_are_refused(sandbox: Sandbox) -> None:
    narrow = sandbox.domain("google", DOMAIN, [ADA], scope=["calendar.freebusy"])
    both = f"{FREE_BUSY} {CALENDAR_SCOPE}"
    assert refused(narrow) == (401, "unauthorized_client", UNAUTHORIZED)
    assert refused(narrow, scope=both) == (401, "unauthorized_client", UNAUTHORIZED)
    assert refused(narrow, scope="")[1] == "invalid_scope"
    call = acting_as(sandbox, narrow, ADA, scope=FREE_BUSY)
    assert free_busy(call, "primary") == {"primary": {"busy": []}}
    assert reason(call("GET", "users/me/calendarList")) == (403, "insufficientPermissions")


def test_withdrawn_grant_ends_only_delegated_tokens(sandbox: Sandbox, acme: SandboxDomain) -> None:
    personal = google(sandbox, sandbox.account("google", BOB))
    call = acting_as(sandbox, acme, ADA)
    sandbox.withdraw(DOMAIN)
    assert refused(acme) == (401, "unauthorized_client", UNAUTHORIZED)
    assert reason(call("GET", "users/me/calendarList")) == (401, "authError")
    assert personal("GET", "users/me/calendarList").status_code == 200


def test_a_user_cannot_revoke_the_administrators_grant(sandbox: Sandbox, acme: SandboxDomain) -> None:
    call = acting_as(sandbox, acme, ADA)
    sandbox.revoke(ADA)
    assert call("GET", "users/me/calendarList").status_code == 200


def test_colleagues_are_read_in_one_query(sandbox: Sandbox, acme: SandboxDomain) -> None:
    call = acting_as(sandbox, acme, acme.subject)
    sandbox.forget_requests()
    assert free_busy(call, ADA, BOB.upper(), EVE) == {
        ADA: {"busy": []},
        BOB.upper(): {"busy": BUSY},
        EVE: {"busy": []},
    }
    assert sandbox.requests().by_operation == {"google.freebusy.query": 1}


def test_member_without_sharing_is_not_found_but_impersonated(sandbox: Sandbox) -> None:
    domain = sandbox.domain(
        "google",
        DOMAIN,
        [ADA, {"email": BOB, "sharing": "none", "events": [MEETING]}, {"email": EVE, "suspended": True}],
    )
    found = free_busy(acting_as(sandbox, domain, ADA), ADA, BOB, EVE, f"nosuch@{DOMAIN}")
    assert found == {ADA: {"busy": []}, BOB: NOT_FOUND, EVE: NOT_FOUND, f"nosuch@{DOMAIN}": NOT_FOUND}
    assert free_busy(acting_as(sandbox, domain, BOB), BOB) == {BOB: {"busy": BUSY}}


def test_a_domain_without_sharing_has_exceptions_too(sandbox: Sandbox) -> None:
    members = [ADA, {"email": BOB, "sharing": "domain", "events": [MEETING]}, EVE]
    domain = sandbox.domain("google", DOMAIN, members, sharing="none")
    found = free_busy(acting_as(sandbox, domain, ADA), BOB, EVE)
    assert found == {BOB: {"busy": BUSY}, EVE: NOT_FOUND}


def test_other_domains_and_their_members_see_nothing(sandbox: Sandbox, acme: SandboxDomain) -> None:
    other = sandbox.domain("google", "other.example", ["oscar@other.example"])
    sandbox.account("google", "solo@elsewhere.example")
    found = free_busy(acting_as(sandbox, other, "oscar@other.example"), BOB, "solo@elsewhere.example")
    assert found == {BOB: NOT_FOUND, "solo@elsewhere.example": NOT_FOUND}


def test_a_fault_of_one_calendar_concerns_that_colleague_alone(sandbox: Sandbox, acme: SandboxDomain) -> None:
    call = acting_as(sandbox, acme, ADA)
    sandbox.fault(calendar_id=BOB, status=503)
    found = free_busy(call, BOB, EVE)
    assert found[BOB]["errors"][0]["reason"] == "internalError"
    assert found[EVE] == {"busy": []}


def test_a_fault_of_an_address_strikes_the_calls_of_that_subject(
    sandbox: Sandbox, acme: SandboxDomain
) -> None:
    ada, bob = (acting_as(sandbox, acme, email) for email in (ADA, BOB))
    sandbox.fault(email=BOB, operation="google.token", status=503)
    sandbox.fault(email=BOB, operation="google.freebusy.query", status=429)
    assert delegated_token(acme, BOB).status_code == 503
    assert delegated_token(acme, ADA).status_code == 200
    assert bob("POST", "freeBusy", json={}).status_code == 429
    assert free_busy(ada, BOB) == {BOB: {"busy": BUSY}}
