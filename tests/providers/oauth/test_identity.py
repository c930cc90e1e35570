"""The identity of an account: trusted claims, and calls to the provider when claims are missing."""

from __future__ import annotations

import base64
import json
import time
from types import SimpleNamespace

import pytest

from providers.base import Token
from providers.errors import Unavailable
from providers.google import oauth as google_oauth
from providers.microsoft import oauth as microsoft_oauth
from providers.oauth import identity
from providers.oauth.identity import AccountIdentity, claims
from tests.providers.addresses import google_at, microsoft_at

ADA = "ada@example.com"


def token_of(payload: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(payload).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJub25lIn0.{body}.signature"


@pytest.mark.parametrize("audience", ["us", ["us"], ["them", "us"]])
def test_claims_made_for_us_are_believed(audience):
    made = {"aud": audience, "email": "ädä@example.com"}

    assert claims(token_of(made), "us") == made


@pytest.mark.parametrize(
    "token",
    [
        None,
        "",
        7,
        "one.two",
        "a.b.c.d",
        "a.!!!.c",
        "a.ä.c",
        "a.e30.c",
        token_of([1]),
        token_of("text"),
        token_of({"email": ADA}),
        token_of({"aud": "them", "email": ADA}),
        token_of({"aud": None, "email": ADA}),
        token_of({"aud": {"us": 1}, "email": ADA}),
    ],
)
def test_claims_for_another_or_no_audience_are_not(token):
    assert claims(token, "us") == {}


def google(script, claimed, *, deadline=None):
    deadline = deadline or time.monotonic() + 10
    return google_oauth.account(google_at(script.url), Token("secret-access"), claimed, deadline=deadline)


def microsoft(script, claimed, *, deadline=None):
    deadline = deadline or time.monotonic() + 10
    return microsoft_oauth.account(
        microsoft_at(script.url), Token("secret-access"), claimed, deadline=deadline
    )


@pytest.mark.parametrize(
    ("ask", "claimed", "email"),
    [
        (google, {"email": ADA}, ADA),
        (microsoft, {"email": ADA, "preferred_username": "other@example.com"}, ADA),
        (microsoft, {"preferred_username": ADA}, ADA),
        (microsoft, {"email": None, "preferred_username": ADA}, ADA),
        (microsoft, {"email": "not an address", "preferred_username": ADA}, ADA),
    ],
)
def test_address_in_the_claims_needs_no_call(script, ask, claimed, email):
    script.say(body={})

    assert ask(script, claimed).email == email
    assert script.requests == []


@pytest.mark.parametrize(
    ("ask", "claimed", "account"),
    [
        (google, {"sub": "1", "email": ADA, "email_verified": True}, ("1", {ADA})),
        (google, {"sub": "1", "email": ADA, "email_verified": "true"}, ("1", {ADA})),
        (google, {"sub": "1", "email": ADA, "email_verified": False}, ("1", set())),
        (google, {"sub": "1", "email": ADA}, ("1", set())),
        (google, {"sub": "x" * 257, "email": ADA}, (None, set())),
        (google, {"sub": 1, "email": ADA}, (None, set())),
        (google, {"sub": "a\0b", "email": ADA}, (None, set())),
        # Any tenant's administrator can write this address; the sign-in name belongs to the tenant's domain.
        (
            microsoft,
            {"oid": "1", "sub": "2", "email": ADA, "preferred_username": "eve@evil.example"},
            ("1", {"eve@evil.example"}),
        ),
        (
            microsoft,
            {"oid": "1", "email": ADA, "preferred_username": "a@x.y", "xms_edov": True},
            ("1", {ADA, "a@x.y"}),
        ),
        (microsoft, {"oid": "1", "email": ADA, "xms_edov": "0"}, ("1", set())),
    ],
)
def test_account_has_its_id_and_verified_addresses(script, ask, claimed, account):
    found = ask(script, claimed)

    assert (found.id, set(found.verified)) == account
    assert found.email == ADA


def test_an_address_is_compared_without_its_case():
    assert AccountIdentity(None, None, frozenset(("Ada@Example.com",))).is_verified_as("aDA@example.COM")
    assert not AccountIdentity(None, ADA).is_verified_as(ADA)


SPELLINGS = ["ada.lovelace@gmail.com", "AdaLovelace@GMail.com", "a.d.a.lovelace@googlemail.com"]


@pytest.mark.parametrize("known", SPELLINGS)
@pytest.mark.parametrize("expected", SPELLINGS)
def test_gmail_addresses_have_several_spellings_at_google(script, known, expected):
    found = google(script, {"sub": "1", "email": known, "email_verified": True})
    assert found.is_verified_as(expected)
    assert not found.is_verified_as("ada.lovelace@example.com")


def test_dots_matter_elsewhere(script):
    found = google(script, {"sub": "1", "email": "ada.l@example.com", "email_verified": True})
    assert not found.is_verified_as("adal@example.com")
    theirs = microsoft(script, {"oid": "1", "preferred_username": "ada.l@gmail.com"})
    assert theirs.is_verified_as("ADA.L@gmail.com")
    assert not theirs.is_verified_as("adal@gmail.com")


@pytest.mark.parametrize(
    ("ask", "answer", "account"),
    [
        (google, {"sub": "1", "email": ADA, "email_verified": True}, ("1", {ADA})),
        (google, {"sub": "1", "email": ADA, "email_verified": False}, ("1", set())),
        (microsoft, {"id": "1", "mail": ADA, "userPrincipalName": "a@x.y"}, ("1", {"a@x.y"})),
    ],
)
def test_what_the_provider_answers_names_the_account_too(script, ask, answer, account):
    script.say(body=answer)

    found = ask(script, {})

    assert (found.id, found.email, set(found.verified)) == (account[0], ADA, account[1])


def test_google_address_comes_from_userinfo_then_main_calendar(script):
    script.say(401, {"error": "invalid_token"})
    script.say(body={"kind": "calendar#calendarListEntry", "id": ADA})

    assert google(script, {}) == AccountIdentity(None, ADA, frozenset((ADA,)))
    assert [each["path"] for each in script.requests] == [
        "/userinfo",
        "/calendar/v3/users/me/calendarList/primary",
    ]
    assert {each["headers"]["Authorization"] for each in script.requests} == {"Bearer secret-access"}


@pytest.mark.parametrize(
    "profile", [{"mail": ADA, "userPrincipalName": "u@x.y"}, {"mail": None, "userPrincipalName": ADA}]
)
def test_microsoft_address_comes_from_the_profile(script, profile):
    script.say(body=profile)

    assert microsoft(script, {"preferred_username": "+49 170 1234567"}).email == ADA
    assert [each["path"] for each in script.requests] == ["/v1.0/me?$select=id,mail,userPrincipalName"]


@pytest.mark.parametrize("ask", [google, microsoft])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {}),
        (200, {"email": 7, "mail": 7, "id": 7}),
        (200, {"email": "x" * 320 + "@example.com", "mail": "@", "id": "group"}),
        (200, b"<html></html>"),
        (403, {"error": {"code": 403}}),
        (503, b""),
    ],
)
def test_an_account_without_an_address_anywhere_has_none(script, ask, status, body):
    script.say(status, body)

    assert ask(script, {}).email is None
    assert ask(script, {}).verified == frozenset()


@pytest.mark.parametrize(("ask", "questions"), [(google, 2), (microsoft, 1)])
def test_asking_ends_at_half_of_the_time_that_is_left(script, monkeypatch, ask, questions):
    deadlines = []

    def silent(*_: object, deadline: float, **__: object) -> None:
        deadlines.append(deadline)
        raise Unavailable("The provider did not answer in time")

    monkeypatch.setattr(identity, "send", silent)
    monkeypatch.setattr(identity, "time", SimpleNamespace(monotonic=lambda: 100.0))

    assert ask(script, {}, deadline=110.0) == AccountIdentity(None, None)
    assert deadlines == [105.0] * questions
