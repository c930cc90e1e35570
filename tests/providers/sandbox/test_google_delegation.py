"""Service accounts with domain-wide delegation, and free/busy inside a domain."""

from __future__ import annotations

import time
from typing import Any

import pytest
import requests
from joserfc.jwk import RSAKey

from providers.sandbox.client import Sandbox, SandboxDomain
from tests.providers.sandbox.callers import (
    CALENDAR_SCOPE,
    MEETING,
    Caller,
    acting_as,
    assertion,
    delegated_token,
    exchanged,
    free_busy,
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
DIRECTORY = "https://www.googleapis.com/auth/admin.directory.user.readonly"


@pytest.fixture
def acme(sandbox: Sandbox) -> SandboxDomain:
    return sandbox.domain("google", DOMAIN, [ADA, {"email": BOB, "events": [MEETING]}, EVE])


def refused(domain: SandboxDomain, subject: str = ADA, **changed: Any) -> tuple[int, str, str]:
    """Status, error and description of a refused token."""
    answer = delegated_token(domain, subject, **changed)
    return answer.status_code, answer.json()["error"], answer.json()["error_description"]


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


def test_member_without_sharing_is_not_found_but_impersonated(sandbox: Sandbox) -> None:
    domain = sandbox.domain(
        "google",
        DOMAIN,
        [ADA, {"email": BOB, "sharing": "none", "events": [MEETING]}, {"email": EVE, "suspended": True}],
    )
    found = free_busy(acting_as(sandbox, domain, ADA), ADA, BOB, EVE, f"nosuch@{DOMAIN}")
    assert found == {ADA: {"busy": []}, BOB: NOT_FOUND, EVE: NOT_FOUND, f"nosuch@{DOMAIN}": NOT_FOUND}
    assert free_busy(acting_as(sandbox, domain, BOB), BOB) == {BOB: {"busy": BUSY}}


def test_a_deleted_account_is_unknown_and_in_no_directory(sandbox: Sandbox) -> None:
    scope = f"{FREE_BUSY} {DIRECTORY}"
    domain = sandbox.domain("google", DOMAIN, [ADA, BOB], scope=scope.split())
    own = acting_as(sandbox, domain, BOB, scope=FREE_BUSY)
    token = delegated_token(domain, ADA, scope=scope).json()["access_token"]
    people = Caller(f"{sandbox.url}/google/admin/directory/v1", token)

    sandbox.delete(BOB.upper())

    assert own("GET", "users/me/calendarList").status_code == 401
    assert delegated_token(domain, BOB, scope=FREE_BUSY).json()["error"] == "invalid_grant"
    assert free_busy(acting_as(sandbox, domain, ADA, scope=FREE_BUSY), BOB) == {BOB: NOT_FOUND}
    listed = people("GET", "users?customer=my_customer").json()["users"]
    assert [each["primaryEmail"] for each in listed] == [ADA]
    with pytest.raises(requests.HTTPError, match="404"):
        sandbox.delete(BOB)
