"""Both OAuth servers: consent, tokens, refresh, revocation."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from providers.sandbox.client import Sandbox
from tests.providers.sandbox.callers import Caller, code, google, graph, reason, token_call

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


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_refresh_gives_a_token_that_works(sandbox: Sandbox, provider: str) -> None:
    account = sandbox.account(provider, ADA, expires_in=0)
    assert not works(sandbox, provider, account.access_token)
    answer = token_call(sandbox, provider, grant_type="refresh_token", refresh_token=account.refresh_token)
    assert answer.status_code == 200
    assert answer.json()["expires_in"] == 3599
    assert works(sandbox, provider, answer.json()["access_token"])


def test_google_never_rotates_a_refresh_token(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA)
    for _ in range(2):
        answer = token_call(
            sandbox, "google", grant_type="refresh_token", refresh_token=account.refresh_token
        )
        assert "refresh_token" not in answer.json()
    assert "https://www.googleapis.com/auth/userinfo.email" in answer.json()["scope"].split()


def test_microsoft_always_rotates_and_the_old_one_stays_good(sandbox: Sandbox) -> None:
    account = sandbox.account("microsoft", ADA)
    tokens = [account.refresh_token]
    for _ in range(2):
        form = {"grant_type": "refresh_token", "refresh_token": tokens[0]}
        tokens.append(token_call(sandbox, "microsoft", **form).json()["refresh_token"])
    assert len(set(tokens)) == 3
    form = {"grant_type": "refresh_token", "refresh_token": tokens[-1]}
    assert token_call(sandbox, "microsoft", **form).status_code == 200


def test_microsoft_refresh_narrows_scopes_but_never_adds(sandbox: Sandbox) -> None:
    refresh = sandbox.account("microsoft", ADA, scope="Calendars.Read User.Read offline_access").refresh_token
    form = {"grant_type": "refresh_token", "refresh_token": refresh}
    narrow = token_call(sandbox, "microsoft", **form, scope="https://graph.microsoft.com/User.Read")
    assert narrow.json()["scope"] == "https://graph.microsoft.com/User.Read"
    more = token_call(sandbox, "microsoft", **form, scope="Calendars.ReadWrite offline_access")
    assert (more.json()["error"], more.json()["suberror"]) == ("invalid_grant", "consent_required")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_revoked_grant_is_gone_for_good(sandbox: Sandbox, provider: str) -> None:
    account = sandbox.account(provider, ADA)
    sandbox.revoke(ADA.upper())
    answer = token_call(sandbox, provider, grant_type="refresh_token", refresh_token=account.refresh_token)
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_grant"
    if provider == "google":
        assert answer.json()["error_description"] == "Token has been expired or revoked."
        assert reason(google(sandbox, account)("GET", "users/me/calendarList")) == (401, "authError")
    else:
        assert answer.json()["error_codes"] == [50173]
        assert answer.json()["error_description"].startswith("AADSTS50173: ")
        assert code(graph(sandbox, account)("GET", "me/calendars")) == (401, "InvalidAuthenticationToken")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_unknown_refresh_token_is_an_invalid_grant(sandbox: Sandbox, provider: str) -> None:
    answer = token_call(sandbox, provider, grant_type="refresh_token", refresh_token="nonsense")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_wrong_client_secret_is_the_operators_fault(sandbox: Sandbox, provider: str) -> None:
    form = {"grant_type": "refresh_token", "refresh_token": sandbox.account(provider, ADA).refresh_token}
    answer = token_call(sandbox, provider, **form, client_secret="wrong")
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


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


def test_a_tenant_that_is_called_wrong_is_unknown(sandbox: Sandbox) -> None:
    url = f"{sandbox.url}/microsoft/wrong.example.com/oauth2/v2.0/token"
    answer = requests.post(url, data={"grant_type": "refresh_token"}, timeout=10)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_tenant")
    assert answer.json()["error_codes"] == [90002]


@pytest.mark.parametrize(("provider", "codes"), [("google", None), ("microsoft", [9002313])])
def test_a_made_up_code_is_malformed(sandbox: Sandbox, provider: str, codes: list[int] | None) -> None:
    answer = redeem(sandbox, provider, "made-up", client_secret="good")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert answer.json().get("error_codes") == codes


def test_microsoft_application_token_cannot_read_calendars(sandbox: Sandbox) -> None:
    form = {"scope": "https://graph.microsoft.com/.default", "client_secret": "good"}
    answer = token_call(sandbox, "microsoft", grant_type="client_credentials", **form)
    assert answer.status_code == 200
    assert "refresh_token" not in answer.json()
    assert not works(sandbox, "microsoft", answer.json()["access_token"])


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


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_program_cannot_consent_for_an_unknown_account(sandbox: Sandbox, provider: str) -> None:
    assert consent(sandbox, provider)["error"] == "access_denied"


def test_revoking_at_google_ends_the_whole_grant(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA)
    url = f"{sandbox.url}/google/revoke"
    assert requests.post(url, data={"token": account.access_token}, timeout=10).status_code == 200
    form = {"grant_type": "refresh_token", "refresh_token": account.refresh_token}
    assert token_call(sandbox, "google", **form).json()["error"] == "invalid_grant"
    again = requests.post(url, data={"token": account.refresh_token}, timeout=10)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_token")


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


def test_an_account_can_end_the_grants_of_all_applications(sandbox: Sandbox) -> None:
    sandbox.account("google", ADA)
    tokens = [google_tokens(sandbox, client_id)["access_token"] for client_id in ("ours", "theirs")]

    sandbox.revoke(ADA)

    assert [works(sandbox, "google", token) for token in tokens] == [False, False]


def test_userinfo_has_the_address(sandbox: Sandbox) -> None:
    account = sandbox.account("google", ADA)
    call = Caller(f"{sandbox.url}/google", account.access_token)
    assert call.get("userinfo")["email"] == ADA
    assert Caller(f"{sandbox.url}/google", "nonsense")("GET", "userinfo").status_code == 401


# --- the page for people


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def question(sandbox: Sandbox, provider: str, **more: str) -> tuple[str, str]:
    """The consent page, and its address."""
    path = "google/o/oauth2/v2/auth" if provider == "google" else "microsoft/common/oauth2/v2.0/authorize"
    asked = {"client_id": "<b>almanac", "redirect_uri": REDIRECT, "response_type": "code", "state": "s-1"}
    asked |= {"scope": SCOPES[provider]} | more
    answer = requests.get(f"{sandbox.url}/{path}", params=asked, headers=BROWSER, timeout=10)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    return answer.text, answer.url


def decide(url: str, *scopes: str, decision: str = "allow", **fields: str) -> dict[str, str]:
    """Submit the form; returns the query of the redirect."""
    form = {"decision": decision, "scope": scopes, **fields}
    answer = requests.post(url, data=form, allow_redirects=False, timeout=10)
    assert answer.status_code == 302, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def ticked(page: str) -> list[str]:
    return re.findall(r'name="scope" value="([^"]+)" checked', page)


def accounts(page: str) -> list[tuple[str, bool]]:
    """The listed addresses, and which one is selected."""
    found = re.findall(r'type="radio" name="account" value="([^"]+)"( checked)?', page)
    return [(email, bool(checked)) for email, checked in found]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_consent_page_lists_accounts_and_scopes(sandbox: Sandbox, provider: str) -> None:
    sandbox.account(provider, ADA)
    sandbox.account(provider, "eve@example.com")
    sandbox.account("microsoft" if provider == "google" else "google", "other@example.com")
    page, _ = question(sandbox, provider)
    assert "&lt;b&gt;almanac" in page
    assert "<b>almanac" not in page
    assert "<script" not in page
    assert accounts(page) == [(ADA, True), ("eve@example.com", False)]
    assert len(ticked(page)) == len(SCOPES[provider].split())
    hinted, _ = question(sandbox, provider, login_hint="EVE@example.com")
    assert accounts(hinted) == [("EVE@example.com", True), (ADA, False)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_stays_ticked_is_granted_to_whom_was_chosen(sandbox: Sandbox, provider: str) -> None:
    sandbox.account(provider, ADA)
    sandbox.account(provider, "eve@example.com")
    page, url = question(sandbox, provider)
    kept = [scope for scope in ticked(page) if "email" not in scope]
    # A form cannot grant a scope that was not requested.
    back = decide(url, *kept, "https://www.googleapis.com/auth/calendar", account="eve@example.com")
    assert back["state"] == "s-1"
    tokens = redeem(sandbox, provider, back["code"], client_id="<b>almanac", code_verifier="").json()
    assert works(sandbox, provider, tokens["access_token"])
    granted = {scope.rpartition("/")[2] for scope in tokens["scope"].split()}
    assert granted == {scope.rpartition("/")[2] for scope in kept} - {"offline_access"}
    assert "email" not in claims(tokens["id_token"])
    if provider == "google":
        assert back["scope"].split() == kept
    else:
        assert claims(tokens["id_token"])["preferred_username"] == "eve@example.com"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_new_address_makes_its_account(sandbox: Sandbox, provider: str) -> None:
    page, url = question(sandbox, provider)
    assert accounts(page) == []
    back = decide(url, *ticked(page), newcomer=" new@example.com ")
    tokens = redeem(sandbox, provider, back["code"], client_id="<b>almanac", code_verifier="").json()
    assert claims(tokens["id_token"])["email"] == "new@example.com"
    assert works(sandbox, provider, tokens["access_token"])
    assert accounts(question(sandbox, provider)[0]) == [("new@example.com", True)]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("scopes", "decision"), [(SCOPES["google"].split(), "deny"), ([], "allow"), (["openid"], "")]
)
def test_denying_or_unticking_everything_grants_nothing(
    sandbox: Sandbox, provider: str, scopes: list[str], decision: str
) -> None:
    sandbox.account(provider, ADA)
    _, url = question(sandbox, provider)
    back = decide(url, *scopes, decision=decision, account=ADA)
    assert (back["error"], back["state"]) == ("access_denied", "s-1")
    assert "code" not in back


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_form_without_an_account_is_shown_again(sandbox: Sandbox, provider: str) -> None:
    _, url = question(sandbox, provider)
    answer = requests.post(url, data={"decision": "allow", "scope": "openid"}, timeout=10)
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_code_of_another_application_is_worth_nothing(sandbox: Sandbox, provider: str) -> None:
    sandbox.account(provider, ADA)
    stolen = consent(sandbox, provider)["code"]
    assert redeem(sandbox, provider, stolen, client_id="other").json()["error"] == "invalid_grant"
