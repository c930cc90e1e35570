"""Tokens of organization grants: key files, assertions, and the meaning of each error."""

from __future__ import annotations

import base64
import json
import time
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from providers.base import IssuedTokens, Token
from providers.errors import (
    AuthorizationInvalid,
    ClientRefused,
    GrantRefused,
    ProviderError,
    ProviderNotConfigured,
    RateLimited,
    SubjectRefused,
    Unavailable,
)
from providers.google import organization_grants as google_grants
from providers.google.service_accounts import InvalidKey, ServiceAccountKey
from providers.microsoft import organization_grants as microsoft_grants
from providers.oauth.client import Client
from tests.providers.addresses import google_at, microsoft_at

RSA = RSAKey.generate_key(2048)
PEM = RSA.as_pem(private=True).decode()
KEY_FILE = {
    "type": "service_account",
    "project_id": "almanac-tests",
    "private_key_id": "0123456789abcdef",
    "private_key": PEM,
    "client_email": "reader@almanac-tests.iam.gserviceaccount.com",
    "client_id": "112233445566778899",
    # A token URL that must never be called.
    "token_uri": "http://127.0.0.1:9/token",
}
SCOPES = ["https://www.googleapis.com/auth/calendar.readonly"]
TENANT = "84bd8158-6d4d-4958-8b9f-9d6445542f95"
TOKEN = {"access_token": "secret-token", "expires_in": 3599, "token_type": "Bearer"}


def google(url: str, subject: str = "reader@example.com", left: float = 5.0) -> IssuedTokens:
    key = ServiceAccountKey.parse(KEY_FILE)
    return google_grants.token(google_at(url), key, subject, SCOPES, deadline=time.monotonic() + left)


def microsoft(
    url: str, tenant: str = TENANT, client: Client | None = None, left: float = 5.0
) -> IssuedTokens:
    ours = client or Client("client-id", Token("secret-of-client"))
    return microsoft_grants.token(microsoft_at(url), tenant, ours, deadline=time.monotonic() + left)


def form(request: dict[str, Any]) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request["body"].decode()).items()}


# --- key files


def test_a_key_file_is_read_and_never_shown():
    key = ServiceAccountKey.parse(KEY_FILE)
    assert (key.client_email, key.private_key_id) == (KEY_FILE["client_email"], KEY_FILE["private_key_id"])
    assert "PRIVATE" not in repr(key)


def test_the_ids_of_a_key_file_are_optional():
    del (file := dict(KEY_FILE))["private_key_id"], file["client_id"]
    assert ServiceAccountKey.parse(file).private_key_id is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"type": "authorized_user"}, "type"),
        ({"type": None}, "type"),
        ({"client_email": None}, "client_email"),
        ({"client_email": 7}, "client_email"),
        ({"client_email": "no address"}, "client_email"),
        ({"private_key": ""}, "private_key"),
        ({"private_key": ["-----BEGIN"]}, "private_key"),
        ({"private_key": "-----BEGIN PRIVATE KEY-----\nxx\n-----END PRIVATE KEY-----\n"}, "private_key"),
        ({"private_key": PEM[: len(PEM) // 2]}, "private_key"),
        ({"private_key": RSA.as_pem(private=False).decode()}, "private_key"),
        ({"private_key": RSA.as_pem(private=True, password="x").decode()}, "private_key"),
        ({"private_key": ECKey.generate_key("P-256").as_pem(private=True).decode()}, "private_key"),
        ({"private_key_id": 1}, "private_key_id"),
    ],
)
def test_what_is_no_key_file_is_rejected_and_the_field_named(change, field):
    with pytest.raises(InvalidKey) as rejected:
        ServiceAccountKey.parse(KEY_FILE | change)
    assert rejected.value.field == field
    assert field in rejected.value.sentence
    assert "BEGIN" not in str(rejected.value)


# --- requests


def test_the_assertion_names_the_subject_and_the_configured_token_url(script):
    script.say(200, TOKEN)
    granted = google(script.url)

    sent = form(script.requests[0])
    assert sent["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    read = jwt.decode(sent["assertion"], RSA, algorithms=["RS256"])
    assert read.header == {"alg": "RS256", "typ": "JWT", "kid": KEY_FILE["private_key_id"]}
    issued = read.claims.pop("iat")
    assert abs(issued - time.time()) < 5
    assert read.claims == {
        "iss": KEY_FILE["client_email"],
        "sub": "reader@example.com",
        "scope": SCOPES[0],
        "aud": google_at(script.url).token,
        "exp": issued + 3600,
    }
    assert granted.access_token == Token("secret-token")
    assert granted.refresh_token is None


def test_application_requests_every_consented_permission(script):
    script.say(200, TOKEN)
    granted = microsoft(script.url)

    assert script.requests[0]["path"] == f"/{TENANT}/oauth2/v2.0/token"
    assert form(script.requests[0]) == {
        "grant_type": "client_credentials",
        "client_id": "client-id",
        "client_secret": "secret-of-client",
        "scope": "https://graph.microsoft.com/.default",
    }
    assert granted.scope is None


def test_a_tenant_cannot_change_the_path(script):
    script.say(200, TOKEN)
    microsoft(script.url, tenant="../common?x=")
    assert script.requests[0]["path"] == "/..%2Fcommon%3Fx%3D/oauth2/v2.0/token"


@pytest.mark.parametrize(
    ("claims", "scope"),
    [
        ({"roles": ["Calendars.Read", "MailboxSettings.Read"]}, ("Calendars.Read", "MailboxSettings.Read")),
        ({"roles": []}, ()),
        ({"roles": ["Mail.Read", "User.Read.All"]}, ("Mail.Read", "User.Read.All")),
        # Exchange may have given the application a role for calendars, which no token shows.
        ({"roles": ["User.Read.All", "Place.Read.All"]}, None),
        ({"roles": "Calendars.Read"}, None),
        ({}, None),
        ([], None),
    ],
)
def test_the_permissions_are_those_that_the_token_shows(script, claims, scope):
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    script.say(200, TOKEN | {"access_token": f"e30.{payload}.c2ln"})
    assert microsoft(script.url).scope == scope


def test_an_opaque_token_shows_no_permissions(script):
    script.say(200, TOKEN | {"access_token": "a.b!.c"})
    assert microsoft(script.url).scope is None


def test_without_a_client_nothing_is_sent(script):
    with pytest.raises(ProviderNotConfigured):
        microsoft(script.url, client=Client("", Token("")))
    assert script.requests == []


# --- errors


def refused(script: Any, request: Any, status: int, body: Any) -> ProviderError:
    script.say(status, body)
    with pytest.raises(ProviderError) as failure:
        request(script.url)
    return failure.value


@pytest.mark.parametrize(
    ("status", "word", "description", "says"),
    [
        (401, "unauthorized_client", "Client is unauthorized to retrieve access tokens using this method, "
         "or client not authorized for any of the scopes requested.", "Domain-wide delegation"),
        (403, "access_denied", "Requested client not authorized.", "Domain-wide delegation"),
        (400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.", "scopes"),
        (400, "invalid_grant", "Invalid JWT Signature.", "new key"),
        (400, "invalid_grant", "Invalid grant: account not found", "new key"),
        (400, "invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes) and in a "
         "reasonable timeframe. Check your iat and exp values in the JWT claim.", "clock"),
        (401, "disabled_client", "The OAuth client was disabled.", "disabled"),
        (401, "invalid_client", "The OAuth client was not found.", "new key"),
    ],
)  # fmt: skip
def test_what_the_administrator_of_a_domain_has_to_do(
    script, is_fit_for_people, status, word, description, says
):
    error = refused(script, google, status, {"error": word, "error_description": description})
    assert isinstance(error, GrantRefused)
    assert says in error.message
    is_fit_for_people(error)


@pytest.mark.parametrize("description", ["Invalid email or User ID", "Not a valid email.", "something new"])
def test_unknown_google_account_does_not_end_the_grant(script, description):
    error = refused(script, google, 400, {"error": "invalid_grant", "error_description": description})
    assert isinstance(error, SubjectRefused)
    assert not isinstance(error, GrantRefused)


@pytest.mark.parametrize(
    ("status", "word", "code", "kind", "says"),
    [
        (401, "invalid_client", 7000215, ClientRefused, "Certificates & secrets"),
        (401, "invalid_client", 7000222, ClientRefused, "expired"),
        (400, "unauthorized_client", 700016, GrantRefused, "no such application"),
        (400, "invalid_request", 90002, GrantRefused, "no such tenant"),
        (400, "unauthorized_client", 7000229, GrantRefused, "no such application"),
        (401, "invalid_client", 1, ClientRefused, "Certificates & secrets"),
        (400, "invalid_grant", 65001, GrantRefused, "admin consent"),
    ],
)
def test_what_the_administrator_of_a_tenant_has_to_do(
    script, is_fit_for_people, status, word, code, kind, says
):
    body = {"error": word, "error_description": f"AADSTS{code}: ...", "error_codes": [code]}
    error = refused(script, microsoft, status, body)
    assert type(error) is kind
    assert says in error.message
    is_fit_for_people(replace_secret(error))


def replace_secret(error: ProviderError) -> ProviderError:
    """The same error; the name of a page in Microsoft's console is no secret."""
    error.message = error.message.replace("secret", "")
    return type(error)(error.message, operation=error.operation)


@pytest.mark.parametrize("request_token", [google, microsoft])
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (503, {"error": "temporarily_unavailable"}, Unavailable),
        (500, b"<html>", Unavailable),
        (400, {"error": "internal_failure"}, Unavailable),
        (429, {"error": "unauthorized_client"}, RateLimited),
        (400, {"error": "invalid_grant", "error_codes": [50196]}, RateLimited),
        (200, {"expires_in": 3599}, Unavailable),
        (200, b"{", Unavailable),
    ],
)
def test_temporary_errors_do_not_end_the_grant(script, request_token, status, body, kind):
    error = refused(script, lambda url: request_token(url, left=0.5), status, body)
    assert isinstance(error, kind)
    assert not isinstance(error, AuthorizationInvalid)


def test_an_endpoint_that_does_not_answer_is_unavailable():
    with pytest.raises(Unavailable):
        google("http://127.0.0.1:9", left=0.5)
    endpoints = replace(microsoft_at("http://127.0.0.1:9"))
    with pytest.raises(Unavailable):
        microsoft(endpoints.login, left=0.5)
