"""Consent URLs: their parameters, and the secrets that they must not contain."""

from __future__ import annotations

import base64
import hashlib
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from providers import registry
from providers.google import oauth as google
from providers.microsoft import oauth as microsoft
from providers.oauth.consent import (
    ConsentRequest,
    new_verifier,
)

GOOGLE, MICROSOFT = "google", "microsoft"
AUTH = "https://auth.example.com/authorize"
CALENDAR = "https://www.googleapis.com/auth/calendar"
GRAPH = "https://graph.microsoft.com/Calendars.Read"
NAMED = "openid email profile"
PROFILE = f"{NAMED} User.Read MailboxSettings.Read"


def asked(**changed) -> ConsentRequest:
    request = {
        "redirect_uri": "https://almanac.example.com/back?a=b&c",
        "scopes": ["openid", "a scope's/url"],
        "state": "state-1",
        "verifier": "verifier-1",
        "offline": True,
    }
    return ConsentRequest(**(request | changed))


def query_of(link: str) -> dict[str, str]:
    assert link.startswith(f"{AUTH}?")
    fields = parse_qs(urlsplit(link).query, strict_parsing=True)
    assert all(len(values) == 1 for values in fields.values())
    return {name: values[0] for name, values in fields.items()}


@pytest.mark.parametrize("link", [google.link, microsoft.link])
def test_a_link_holds_the_challenge_and_not_the_verifier(link):
    url = link(AUTH, "client-1", asked())

    query = query_of(url)
    digest = hashlib.sha256(b"verifier-1").digest()
    assert query["code_challenge"] == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert query["code_challenge_method"] == "S256"
    assert "verifier-1" not in url
    sent = {name: query[name] for name in ("response_type", "client_id", "redirect_uri", "scope", "state")}
    assert sent == {
        "response_type": "code",
        "client_id": "client-1",
        "redirect_uri": "https://almanac.example.com/back?a=b&c",
        "scope": "openid a scope's/url",
        "state": "state-1",
    }


@pytest.mark.parametrize(
    ("link", "changed", "expected"),
    [
        (google.link, {}, {"access_type": "offline", "prompt": "consent"}),
        (google.link, {"offline": False}, {"access_type": "online"}),
        (
            google.link,
            {"login_hint": "ada@example.com"},
            {"access_type": "offline", "prompt": "consent", "login_hint": "ada@example.com"},
        ),
        (microsoft.link, {}, {"response_mode": "query", "prompt": "select_account"}),
        (microsoft.link, {"login_hint": "a@b.c"}, {"response_mode": "query", "login_hint": "a@b.c"}),
    ],
)
def test_each_provider_has_its_own_parameters(link, changed, expected):
    query = query_of(link(AUTH, "client-1", asked(**changed)))

    own = ("access_type", "prompt", "login_hint", "response_mode", "nonce")
    assert {name: query[name] for name in own if name in query} == expected


def test_verifiers_are_long_random_and_as_the_standard_writes_them():
    found = {new_verifier() for _ in range(50)}

    assert len(found) == 50
    # https://www.rfc-editor.org/rfc/rfc7636#section-4.1
    assert all(re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", each) for each in found)


@pytest.mark.parametrize(
    ("provider", "wanted", "offline", "expected"),
    [
        (GOOGLE, "write", True, f"{CALENDAR} openid email"),
        (GOOGLE, "edit", False, f"{CALENDAR} openid email"),
        (GOOGLE, "read", True, f"{CALENDAR}.readonly openid email"),
        (GOOGLE, "free-busy", True, f"{CALENDAR}.freebusy {CALENDAR}.calendarlist.readonly openid email"),
        (MICROSOFT, "write", True, f"Calendars.ReadWrite {PROFILE} offline_access"),
        (MICROSOFT, "read", False, f"Calendars.Read {PROFILE}"),
        (GOOGLE, (f"{CALENDAR}.events",), True, f"{CALENDAR}.events openid email"),
        (GOOGLE, ("email", "x", "x"), True, "email x openid"),
        (GOOGLE, ("EMAIL", "openid"), True, "EMAIL openid"),
        (MICROSOFT, ("Calendars.Read",), True, f"Calendars.Read {NAMED} offline_access"),
        (MICROSOFT, ("Calendars.Read", "Offline_Access"), False, f"Calendars.Read {NAMED}"),
        (MICROSOFT, (GRAPH, "offline_access"), True, f"{GRAPH} {NAMED} offline_access"),
    ],
)
def test_requested_scopes_identify_account_and_depend_on_offline(provider, wanted, offline, expected):
    assert " ".join(registry.scopes(provider).to_request(wanted, offline=offline)) == expected


def test_a_word_that_is_no_level_is_an_error():
    with pytest.raises(ValueError, match="admin"):
        registry.scopes(GOOGLE).to_request("admin", offline=True)
