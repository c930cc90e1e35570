"""Token endpoints over a socket: which errors end a connection and which do not."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import pytest

from providers.base import IssuedTokens, Token
from providers.errors import (
    GrantGone,
    Misconfigured,
    ProviderError,
    ProviderNotConfigured,
    RateLimited,
    Unavailable,
)
from providers.google.oauth import GoogleOAuth
from providers.http.calls import HttpReply
from providers.microsoft.oauth import MicrosoftOAuth
from providers.oauth.client import Client, CodeExchangeResult
from providers.oauth.consent import ConsentRequest
from tests.providers.addresses import google_at, microsoft_at

BOTH = pytest.mark.parametrize("provider", ["google", "microsoft"])
CLIENT = Client("client-id", Token("secret-of-client"))


def refreshed(server: Any, token: str = "secret-refresh", left: float = 5.0) -> IssuedTokens:
    return server.refresh(Token(token), deadline=time.monotonic() + left)


def scripted(script: Any) -> GoogleOAuth:
    return GoogleOAuth(google_at(script.url), CLIENT)


def test_google_keeps_the_refresh_token(sandbox, oauth):
    account = sandbox.account("google", "ada@example.com")
    grant = refreshed(oauth["google"], account.refresh_token)
    assert grant.refresh_token is None
    assert grant.access_token.reveal != account.access_token
    assert "https://www.googleapis.com/auth/calendar" in (grant.scope or ())


def test_microsoft_rotates_the_refresh_token(sandbox, oauth):
    account = sandbox.account("microsoft", "ada@contoso.com")
    grant = refreshed(oauth["microsoft"], account.refresh_token)
    assert grant.refresh_token is not None
    assert grant.refresh_token.reveal != account.refresh_token


@BOTH
def test_grant_has_the_expiry_of_its_access_token(sandbox, oauth, provider):
    account = sandbox.account(provider, "ada@example.com")
    life = refreshed(oauth[provider], account.refresh_token).expires_at - datetime.now(UTC)
    assert timedelta(minutes=50) < life < timedelta(minutes=91)


@BOTH
def test_a_revoked_grant_is_gone(sandbox, oauth, provider):
    account = sandbox.account(provider, "ada@example.com")
    sandbox.revoke("ada@example.com")
    with pytest.raises(GrantGone):
        refreshed(oauth[provider], account.refresh_token)


@BOTH
def test_a_foreign_refresh_token_is_gone(oauth, provider):
    with pytest.raises(GrantGone):
        refreshed(oauth[provider], "no-such-token")


def test_a_wrong_client_secret_is_the_operators_fault(google_endpoints, microsoft_endpoints, sandbox):
    wrong = Client("client-id", Token("wrong"))
    for server in (GoogleOAuth(google_endpoints, wrong), MicrosoftOAuth(microsoft_endpoints, wrong)):
        account = sandbox.account(server.name, "ada@example.com")
        with pytest.raises(Misconfigured):
            refreshed(server, account.refresh_token)


@pytest.mark.parametrize("client", [Client("", Token("s")), Client("id", Token("")), Client("", Token(""))])
def test_without_a_client_no_call_is_made(script, client):
    script.say(body={})
    with pytest.raises(ProviderNotConfigured):
        refreshed(GoogleOAuth(google_at(script.url), client))
    with pytest.raises(ProviderNotConfigured):
        refreshed(MicrosoftOAuth(microsoft_at(script.url), client))
    assert script.requests == []


REFUSALS = [
    (400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}, GrantGone),
    (400, {"error": "invalid_grant", "error_subtype": "invalid_rapt"}, GrantGone),
    (400, {"error": "invalid_grant", "error_codes": [700082]}, GrantGone),
    (400, {"error": "invalid_grant", "error_codes": [65001], "suberror": "consent_required"}, GrantGone),
    (400, {"error": "interaction_required", "error_codes": [50079], "claims": "{}"}, GrantGone),
    (400, {"error": "consent_required"}, GrantGone),
    (400, {"error": "login_required"}, GrantGone),
    (400, {"error": "invalid_grant", "error_codes": [50196]}, RateLimited),
    (401, {"error": "invalid_client", "error_codes": [7000215]}, Misconfigured),
    (400, {"error": "unauthorized_client", "error_codes": [700016]}, Misconfigured),
    (401, {"error": "unauthorized_client"}, Misconfigured),
    (400, {"error": "invalid_scope", "error_codes": [70011]}, ProviderError),
    (400, {"error": "invalid_request"}, ProviderError),
    (503, {"error": "temporarily_unavailable"}, Unavailable),
    (400, {"error": "temporarily_unavailable"}, Unavailable),
    (400, {"error": "internal_failure"}, Unavailable),
    (400, {"error": "server_error"}, Unavailable),
    (500, {"error": {"code": 500}}, Unavailable),
    (502, b"<html></html>", Unavailable),
    (400, b"<html></html>", Unavailable),
    (429, {"error": "too_many"}, RateLimited),
]


@pytest.mark.parametrize(("status", "body", "error"), REFUSALS, ids=str)
def test_each_refusal_has_its_meaning(script, is_fit_for_people, status, body, error):
    """After RFC 6749, 5.2 and
    https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes
    """
    script.say(status, body)
    with pytest.raises(ProviderError) as raised:
        refreshed(scripted(script), left=10)
    assert type(raised.value) is error
    is_fit_for_people(raised.value)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"access_token": None},
        {"access_token": ""},
        {"access_token": 7},
        b"<html></html>",
        b'{"access_token": "t"',
    ],
)
def test_answer_without_token_is_unavailable(script, body):
    script.say(body=body)
    with pytest.raises(Unavailable):
        refreshed(scripted(script), left=10)


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [
        *((each, each) for each in (3599, 60, 86_400)),
        ("3599", 3599),
        ("3599.0", 3599),
        (3599.5, 3599.5),
        *((each, 3600) for each in (None, "", "soon", -1, 0, 10**30, "inf", "nan", {}, [], True)),
    ],
)
def test_a_lifetime_that_makes_no_sense_is_an_hour(script, stated, seconds):
    script.say(body={"access_token": "t", "expires_in": stated})
    left = refreshed(scripted(script)).expires_at - datetime.now(UTC)
    assert seconds - 20 < left.total_seconds() <= seconds


@BOTH
@pytest.mark.parametrize(
    "fault", [{"status": 503}, {"body": "html"}, {"body": "truncated"}, {"body": "reset"}]
)
def test_an_endpoint_that_fails_leaves_the_connection_alive(sandbox, oauth, provider, fault):
    account = sandbox.account(provider, "ada@example.com")
    sandbox.fault(operation=f"{provider}.token", **fault)
    with pytest.raises(Unavailable):
        refreshed(oauth[provider], account.refresh_token, left=10)


def test_a_slow_endpoint_is_left_at_the_deadline(sandbox, oauth):
    account = sandbox.account("google", "ada@example.com")
    sandbox.fault(operation="google.token", latency_ms=60_000)
    with pytest.raises(Unavailable, match="in time"):
        refreshed(oauth["google"], account.refresh_token, left=0.3)


def test_secrets_travel_in_the_body_and_not_in_the_url(script):
    script.say(body={"access_token": "t", "expires_in": "3599"})
    refreshed(scripted(script))
    asked = script.requests[0]
    assert asked["path"] == "/token"
    assert b"client_secret=secret-of-client" in asked["body"]
    assert asked["headers"]["Content-Type"] == "application/x-www-form-urlencoded"


def test_revoking_at_google_ends_the_grant(sandbox, oauth):
    account = sandbox.account("google", "ada@example.com")
    oauth["google"].revoke(Token(account.refresh_token), deadline=time.monotonic() + 5)
    with pytest.raises(GrantGone):
        refreshed(oauth["google"], account.refresh_token)


def test_revoking_what_is_already_gone_is_a_success(oauth):
    oauth["google"].revoke(Token("gone"), deadline=time.monotonic() + 5)


@pytest.mark.parametrize("content", [b"", b"{}"])
def test_revoking_may_be_answered_with_nothing(script, content):
    script.say(body=content)
    scripted(script).revoke(Token("t"), deadline=time.monotonic() + 5)
    assert script.requests[0]["body"] == b"token=t"


def test_a_failed_revocation_raises(script):
    script.say(503, {})
    with pytest.raises(Unavailable):
        scripted(script).revoke(Token("t"), deadline=time.monotonic() + 10)


def test_microsoft_has_nothing_to_revoke_with(sandbox, oauth):
    oauth["microsoft"].revoke(Token("any"), deadline=time.monotonic() + 5)
    assert sandbox.requests().total == 0


def test_no_secret_is_shown_by_anything_that_holds_one(script):
    grant = IssuedTokens(Token("secret-a"), Token("secret-b"), datetime.now(UTC), None)
    server = scripted(script)
    reply = HttpReply("Google", "oauth.token.refresh", 200, {"access_token": "secret-d"})
    for shown in (CLIENT, grant, server, Token("secret-c"), reply):
        assert "secret-" not in f"{shown!r} {shown!s}"
    assert server.name == "google"


# --- codes


def redeemed(server: Any, left: float = 5.0) -> CodeExchangeResult:
    redirect = "https://almanac.example.com/callback"
    return server.redeem("secret-code", "secret-verifier", redirect, deadline=time.monotonic() + left)


def test_a_code_travels_in_the_body_with_its_verifier_and_once(script):
    script.say(body={"access_token": "t", "expires_in": 3599, "scope": "openid email"})
    consented = redeemed(scripted(script))
    (asked,) = script.requests
    assert asked["path"] == "/token"
    assert parse_qs(asked["body"].decode()) == {
        "grant_type": ["authorization_code"],
        "code": ["secret-code"],
        "code_verifier": ["secret-verifier"],
        "redirect_uri": ["https://almanac.example.com/callback"],
        "client_id": ["client-id"],
        "client_secret": ["secret-of-client"],
    }
    assert consented.grant.scope == ("openid", "email")
    assert consented.claims == {}


@pytest.mark.parametrize(("status", "body", "error"), REFUSALS, ids=str)
def test_a_refused_code_has_the_same_meanings_and_is_never_sent_again(
    script, is_fit_for_people, status, body, error
):
    script.say(status, body)
    with pytest.raises(ProviderError) as raised:
        redeemed(scripted(script))
    assert type(raised.value) is error
    is_fit_for_people(raised.value)
    assert len(script.requests) == 1


@pytest.mark.parametrize("client", [Client("", Token("s")), Client("id", Token(""))])
def test_missing_client_raises_without_a_call(script, client):
    for server in (
        GoogleOAuth(google_at(script.url), client),
        MicrosoftOAuth(microsoft_at(script.url), client),
    ):
        with pytest.raises(ProviderNotConfigured):
            redeemed(server)
        with pytest.raises(ProviderNotConfigured):
            server.link(ConsentRequest("https://a.example", ["openid"], "s", "v", True))
    assert script.requests == []


def test_no_secret_of_a_consent_is_shown(script):
    script.say(body={"access_token": "secret-a", "id_token": "secret.b.c"})
    asked = ConsentRequest("https://a.example", ["openid"], "secret-state", "secret-verifier", True)
    assert "secret-" not in f"{redeemed(scripted(script))!r} {asked!r}"
