"""Both OAuth servers: consent, tokens, refresh, revocation."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import Caller, reason, token_call

PROVIDERS = ("google", "microsoft")
ADA = "ada@example.com"
REDIRECT = "https://almanac.example.com/oauth/callback"
VERIFIER = "a-verifier-of-at-least-forty-three-characters-in-length"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
SCOPES = {
    "google": "openid email https://www.googleapis.com/auth/calendar.readonly",
    "microsoft": "openid email profile offline_access User.Read Calendars.Read",
}


def works(sandbox: Sandbox, provider: str, token: str) -> bool:
    base, path = (
        ("google/calendar/v3", "users/me/calendarList")
        if provider == "google"
        else ("microsoft/v1.0", "me/calendars")
    )
    return Caller(f"{sandbox.url}/{base}", token)("GET", path).status_code == 200


def consent(sandbox: Sandbox, provider: str, **more: str) -> dict[str, str]:
    """The query of the redirect from the authorize endpoint."""
    path = "google/o/oauth2/v2/auth" if provider == "google" else "microsoft/common/oauth2/v2.0/authorize"
    asked = {
        "client_id": "almanac",
        "redirect_uri": REDIRECT,
        "response_type": "code",
        "scope": SCOPES[provider],
        "state": "s-1",
        "login_hint": ADA,
        "access_type": "offline",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "nonce": "n-1",
    } | more
    answer = requests.get(f"{sandbox.url}/{path}", params=asked, allow_redirects=False, timeout=10)
    assert answer.status_code == 302, answer.text
    location = answer.headers["Location"]
    assert location.startswith(f"{REDIRECT}?")
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def redeem(sandbox: Sandbox, provider: str, code: str, **more: str) -> requests.Response:
    form = {"code": code, "redirect_uri": REDIRECT, "code_verifier": VERIFIER} | more
    return token_call(sandbox, provider, grant_type="authorization_code", **form)


def claims(id_token: str) -> dict[str, Any]:
    body = id_token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


def test_microsoft_refresh_narrows_scopes_but_never_adds(sandbox: Sandbox) -> None:
    refresh = sandbox.account("microsoft", ADA, scope="Calendars.Read User.Read offline_access").refresh_token
    form = {"grant_type": "refresh_token", "refresh_token": refresh}
    narrow = token_call(sandbox, "microsoft", **form, scope="https://graph.microsoft.com/User.Read")
    assert narrow.json()["scope"] == "https://graph.microsoft.com/User.Read"
    more = token_call(sandbox, "microsoft", **form, scope="Calendars.ReadWrite offline_access")
    assert (more.json()["error"], more.json()["suberror"]) == ("invalid_grant", "consent_required")


@pytest.mark.parametrize(
    ("provider", "wrong", "status", "word", "description"),
    [
        ("google", {"client_id": "wrong.app"}, 401, "invalid_client", "The OAuth client was not found."),
        ("google", {"client_secret": "wrong-one"}, 401, "invalid_client", "Unauthorized"),
        ("google", {"client_secret": "expired-one"}, 401, "invalid_client", "Unauthorized"),
        ("microsoft", {"client_id": "wrong-app"}, 400, "unauthorized_client", "AADSTS700016: "),
        ("microsoft", {"client_secret": "wrong-one"}, 401, "invalid_client", "AADSTS7000215: "),
        ("microsoft", {"client_secret": "expired-one"}, 401, "invalid_client", "AADSTS7000222: "),
    ],
)
def test_wrong_and_expired_clients_get_errors_of_the_provider(
    sandbox: Sandbox, provider: str, wrong: dict[str, str], status: int, word: str, description: str
) -> None:
    form = {"grant_type": "refresh_token", "refresh_token": sandbox.account(provider, ADA).refresh_token}
    answer = token_call(
        sandbox, provider, **form, **{"client_id": "almanac", "client_secret": "good"} | wrong
    )
    assert (answer.status_code, answer.json()["error"]) == (status, word)
    assert answer.json()["error_description"].startswith(description)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_code_is_redeemed_once_with_its_verifier(sandbox: Sandbox, provider: str) -> None:
    sandbox.account(provider, ADA)
    back = consent(sandbox, provider, prompt="consent")
    assert back["state"] == "s-1"
    answer = redeem(sandbox, provider, back["code"])
    tokens = answer.json()
    assert works(sandbox, provider, tokens["access_token"])
    assert tokens["refresh_token"]
    who = claims(tokens["id_token"])
    assert (who["email"], who["aud"], who["nonce"]) == (ADA, "almanac", "n-1")
    assert redeem(sandbox, provider, back["code"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "wrong", [{"code_verifier": "guessed"}, {"redirect_uri": "https://evil.example.com"}]
)
def test_a_stolen_code_is_worth_nothing(sandbox: Sandbox, provider: str, wrong: dict[str, str]) -> None:
    sandbox.account(provider, ADA)
    stolen = consent(sandbox, provider)["code"]
    assert redeem(sandbox, provider, stolen, **wrong).json()["error"] == "invalid_grant"


def test_google_returns_refresh_token_on_first_or_forced_consent(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA)
    client = {"client_id": "sandbox"}
    again = redeem(sandbox, "google", consent(sandbox, "google", **client)["code"], **client).json()
    assert "refresh_token" not in again
    sandbox.revoke(ADA)
    first = redeem(sandbox, "google", consent(sandbox, "google", **client)["code"], **client).json()
    assert first["refresh_token"] != account.refresh_token
    assert "refresh_token" in redeem(sandbox, "google", consent(sandbox, "google")["code"]).json()


def test_granted_scope_is_the_requested_scope(sandbox: Sandbox) -> None:
    sandbox.account("google", ADA)
    answer = redeem(sandbox, "google", consent(sandbox, "google")["code"]).json()
    call = Caller(f"{sandbox.url}/google/calendar/v3", answer["access_token"])
    assert call("GET", "users/me/calendarList").status_code == 200
    when = {"date": "2026-12-03"}
    written = call("POST", "calendars/primary/events", json={"start": when, "end": when})
    assert reason(written) == (403, "insufficientPermissions")


def google_tokens(sandbox: Sandbox, client_id: str) -> dict[str, str]:
    """The tokens of another consent at Google, with a refresh token."""
    code = consent(sandbox, "google", client_id=client_id, prompt="consent")["code"]
    tokens: dict[str, str] = redeem(sandbox, "google", code, client_id=client_id).json()
    return tokens


def test_google_consents_to_one_application_share_a_grant(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA, client_id="ours")
    second, foreign = google_tokens(sandbox, "ours"), google_tokens(sandbox, "theirs")

    revoked = requests.post(
        f"{sandbox.url}/google/revoke", data={"token": second["access_token"]}, timeout=10
    )

    assert revoked.status_code == 200
    assert not works(sandbox, "google", account.access_token)
    assert not works(sandbox, "google", second["access_token"])
    for refresh_token in (account.refresh_token, second["refresh_token"]):
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        assert token_call(sandbox, "google", **form).json()["error"] == "invalid_grant"
    # Grants of another application, and of the next consent, are separate.
    assert works(sandbox, "google", foreign["access_token"])
    assert works(sandbox, "google", google_tokens(sandbox, "ours")["access_token"])
