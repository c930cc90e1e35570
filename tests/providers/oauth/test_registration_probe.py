"""The verdict on an OAuth client, from how a token endpoint rejects a made-up code."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from providers.base import Token
from providers.errors import ProviderNotConfigured
from providers.google.oauth import GoogleOAuth
from providers.microsoft.oauth import SECRET_UNSEEN, MicrosoftOAuth
from providers.oauth.client import Client
from providers.oauth.registration_probe import Finding, ProbeVerdict
from tests.providers.addresses import google_at, microsoft_at

TENANT = "84bd8158-6d4d-4958-8b9f-9d6445542f95"
REDIRECT = "https://almanac.example.com/v1/oauth/google/callback"


def checked(oauth: GoogleOAuth | MicrosoftOAuth, seconds: float = 5.0) -> Finding:
    return oauth.check(REDIRECT, deadline=time.monotonic() + seconds)


def google(url: str, client_id: str = "id", secret: str = "planted-secret") -> GoogleOAuth:
    return GoogleOAuth(google_at(url), Client(client_id, Token(secret)))


def microsoft(
    url: str, client_id: str = "id", secret: str = "planted-secret", tenant: str = TENANT
) -> MicrosoftOAuth:
    return MicrosoftOAuth(replace(microsoft_at(url), tenant=tenant), Client(client_id, Token(secret)))


# --- the sandbox, as the providers answer


def test_valid_google_registration_takes_one_call(sandbox):
    found = checked(google(f"{sandbox.url}/google"))

    assert found.verdict is ProbeVerdict.RIGHT
    assert found.sentence == "Google accepts the client id and the secret"
    assert sandbox.requests().by_operation == {"google.token": 1}


@pytest.mark.parametrize("wrong", [{"client_id": "wrong-id"}, {"secret": "wrong"}, {"secret": "expired-one"}])
def test_google_finds_an_unknown_id_or_secret_wrong(sandbox, wrong):
    assert checked(google(f"{sandbox.url}/google", **wrong)).verdict is ProbeVerdict.WRONG


def test_valid_microsoft_registration_takes_two_calls(sandbox):
    found = checked(microsoft(f"{sandbox.url}/microsoft"))

    assert found.verdict is ProbeVerdict.RIGHT
    assert found.sentence == "Microsoft accepts the client id and the secret"
    assert sandbox.requests().by_operation == {"microsoft.token": 2}


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        ({"client_id": "wrong-id"}, "Microsoft knows no application with this id in this tenant"),
        ({"secret": "wrong"}, "Microsoft does not accept the secret"),
        ({"secret": "expired-one"}, "The secret has expired"),
        ({"tenant": "wrong.example.com"}, "Microsoft knows no such tenant"),
    ],
)
def test_wrong_microsoft_registration_has_a_reason(sandbox, wrong, expected):
    found = checked(microsoft(f"{sandbox.url}/microsoft", **wrong))

    assert (found.verdict, found.sentence) == (ProbeVerdict.WRONG, expected)


@pytest.mark.parametrize("tenant", ["common", "organizations", "consumers", "Common"])
def test_multi_tenant_microsoft_secret_is_not_verified(sandbox, tenant):
    found = checked(microsoft(f"{sandbox.url}/microsoft", secret="wrong", tenant=tenant))

    assert found is SECRET_UNSEEN
    # An application token would belong to an unspecified tenant, so none is requested.
    assert sandbox.requests().by_operation == {"microsoft.token": 1}


# --- answers that the sandbox does not give


REFUSALS = [
    (400, {"error": "invalid_grant", "error_description": "Malformed auth code."}, ProbeVerdict.RIGHT),
    (400, {"error": "invalid_grant", "error_description": "Bad Request"}, ProbeVerdict.RIGHT),
    (401, {"error": "invalid_client", "error_description": "Unauthorized"}, ProbeVerdict.WRONG),
    (401, {"error": "unauthorized_client"}, ProbeVerdict.WRONG),
    (400, {"error": "redirect_uri_mismatch"}, ProbeVerdict.UNKNOWN),
    (400, {"error": "invalid_request"}, ProbeVerdict.UNKNOWN),
    (400, {"error": "something_new"}, ProbeVerdict.UNKNOWN),
    (400, {"error": 5}, ProbeVerdict.UNKNOWN),
    (400, {}, ProbeVerdict.UNKNOWN),
    (403, b"<html></html>", ProbeVerdict.UNKNOWN),
    (404, {"error": {"code": 404}}, ProbeVerdict.UNKNOWN),
    (429, {"error": "rate_limit_exceeded"}, ProbeVerdict.UNKNOWN),
    (500, {"error": "internal_failure"}, ProbeVerdict.UNKNOWN),
    (503, {"error": "temporarily_unavailable"}, ProbeVerdict.UNKNOWN),
    # The server accepts a made-up code: it cannot be the provider.
    (200, {"access_token": "ya29.x", "expires_in": 3599}, ProbeVerdict.UNKNOWN),
    (200, b"<html></html>", ProbeVerdict.UNKNOWN),
]


@pytest.mark.parametrize(("status", "body", "verdict"), REFUSALS)
def test_each_answer_has_its_verdict_and_advice(script, status, body, verdict):
    script.say(status, body)

    found = checked(google(script.url))

    assert found.verdict is verdict
    assert found.sentence
    assert not found.sentence.endswith(".")
    assert found.advice.endswith(".")


@pytest.mark.parametrize(
    ("word", "code", "verdict"),
    [
        ("invalid_grant", 70000, ProbeVerdict.RIGHT),
        ("invalid_grant", 54005, ProbeVerdict.RIGHT),
        ("invalid_client", 7000215, ProbeVerdict.WRONG),
        ("invalid_client", 7000222, ProbeVerdict.WRONG),
        ("invalid_client", 1234567, ProbeVerdict.WRONG),
        ("unauthorized_client", 700016, ProbeVerdict.WRONG),
        ("invalid_request", 90002, ProbeVerdict.WRONG),
        ("invalid_tenant", 1234567, ProbeVerdict.WRONG),
        ("invalid_request", 900023, ProbeVerdict.WRONG),
        ("invalid_request", 50194, ProbeVerdict.WRONG),
        ("invalid_request", 900144, ProbeVerdict.UNKNOWN),
        ("temporarily_unavailable", 90033, ProbeVerdict.UNKNOWN),
    ],
)
def test_each_error_of_microsoft_has_its_verdict(script, word, code, verdict):
    script.say(400, {"error": word, "error_codes": [code]})

    assert checked(microsoft(script.url)).verdict is verdict
    assert len(script.requests) == 1


def test_a_provider_that_cannot_be_reached_leaves_everything_open(script):
    url = script.url.rpartition(":")[0] + ":9"

    found = checked(google(url))

    assert (found.verdict, found.sentence) == (ProbeVerdict.UNKNOWN, "Google could not be asked just now")


def test_the_code_is_new_each_time_and_the_address_our_own(script):
    for _ in range(2):
        script.say(400, {"error": "invalid_grant"})
        checked(google(script.url))

    forms = [parse_qs(each["body"].decode()) for each in script.requests]
    assert forms[0]["code"] != forms[1]["code"]
    for form in forms:
        assert form["grant_type"] == ["authorization_code"]
        assert form["redirect_uri"] == [REDIRECT]
        assert (form["client_id"], form["client_secret"]) == (["id"], ["planted-secret"])


def test_missing_client_raises_without_a_call(script):
    with pytest.raises(ProviderNotConfigured):
        checked(google(script.url, secret=""))
    assert script.requests == []


def test_no_finding_and_no_log_shows_the_secret(script, caplog):
    caplog.set_level(0)
    for status, body, _ in REFUSALS:
        script.answers.clear()
        script.say(status, body)
        assert "planted" not in repr(checked(google(script.url)))
    assert "planted" not in caplog.text
