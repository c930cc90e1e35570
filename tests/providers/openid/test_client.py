"""The client of an identity provider believes only what the provider has signed for this sign-in."""

from __future__ import annotations

import base64
import socket
import time
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from providers.base import Token
from providers.errors import (
    ClockRefused,
    GrantGone,
    Misconfigured,
    NoAnswer,
    ProviderError,
    TimedOut,
    Unavailable,
)
from providers.oauth import consent
from providers.oauth.consent import ConsentRequest
from providers.openid.client import ClientRegistration, IdentityProvider, WrongIssuer, claim
from providers.openid.id_tokens import Untrusted
from tests.openid_issuer import CLIENT_ID, SECRET, Issuer, issuing

REDIRECT = "https://almanac.example.com/dashboard/sign-in/openid/callback"
REFUSED = (401, b'{"error": "invalid_client"}')
A_DAY = 86_400


@pytest.fixture
def issuer():
    with issuing() as issuer:
        yield issuer


def client(issuer: Issuer | str, role_claim: str = "groups") -> IdentityProvider:
    url = issuer if isinstance(issuer, str) else issuer.url
    return IdentityProvider(ClientRegistration(url, CLIENT_ID, Token(SECRET), role_claim))


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def redeem(issuer, role_claim="groups"):
    return client(issuer, role_claim).redeem("code", "nonce", "verifier", REDIRECT, deadline=soon())


def test_a_person_signs_in(issuer):
    asserted = redeem(issuer)

    assert asserted.subject == "ada"
    assert asserted.claims["groups"] == ["admins"]
    assert asserted.refresh_token == Token("planted-refresh-token")
    (sent,) = [form for path, _, form in issuer.requests if path == "/token"]
    assert sent == {
        "grant_type": ["authorization_code"],
        "code": ["code"],
        "code_verifier": ["verifier"],
        "redirect_uri": [REDIRECT],
    }


def test_the_page_is_asked_for_a_code_with_the_challenge_of_the_verifier():
    request = ConsentRequest(REDIRECT, ("openid", "offline_access"), "s", "v")
    url = consent.link(
        "https://login.example.com/go?realm=acme", CLIENT_ID, request, nonce="n", prompt="consent"
    )

    assert {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()} == {
        "realm": "acme",
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": REDIRECT,
        "scope": "openid offline_access",
        "state": "s",
        "nonce": "n",
        "code_challenge": create_s256_code_challenge("v"),
        "code_challenge_method": "S256",
        "prompt": "consent",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://other.example.com"},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": [CLIENT_ID, "other"]},
        {"aud": [CLIENT_ID, "other"], "azp": "other"},
        {"nonce": "other"},
        {"nonce": None},
        {"sub": None},
        {"sub": ""},
        {"sub": "a\nb"},
        {"sub": "x" * 256},
        {"iss": None},
        {"aud": None},
        {"exp": None},
        {"iat": None},
        {"exp": "never"},
        {"at_hash": "0000"},
    ],
)
def test_an_id_token_for_something_else_is_refused(issuer, changes):
    issuer.changes = changes

    with pytest.raises(Untrusted):
        redeem(issuer)


def test_a_token_for_several_clients_names_ours(issuer):
    issuer.changes = {"aud": [CLIENT_ID, "other"], "azp": CLIENT_ID}

    assert redeem(issuer).subject == "ada"


@pytest.mark.parametrize(
    "changes",
    [
        lambda now: {"iat": now - A_DAY, "exp": now - A_DAY + 60},
        lambda now: {"iat": now + A_DAY, "exp": now + 2 * A_DAY},
        lambda now: {"nbf": now + A_DAY},
    ],
)
def test_a_clock_that_is_wrong_is_named(issuer, changes):
    issuer.changes = changes(int(time.time()))

    with pytest.raises(ClockRefused):
        redeem(issuer)


def test_clocks_may_differ_by_half_a_minute(issuer):
    now = int(time.time())
    issuer.changes = {"iat": now + 30, "nbf": now + 30}
    assert redeem(issuer).subject == "ada"

    issuer.changes = {"iat": now - 90, "exp": now - 30}
    assert redeem(issuer).subject == "ada"


def _unsigned(issuer):
    _head, body, _ = issuer.token().split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    return f"{none}.{body}."


def _by_another_key(issuer):
    claims = jwt.decode(issuer.token(), issuer.key).claims
    return jwt.encode({"alg": "ES256", "kid": "one"}, claims, ECKey.generate_key("P-256"))


def _by_the_client_secret(issuer):
    claims = jwt.decode(issuer.token(), issuer.key).claims
    return jwt.encode({"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(SECRET))


def _changed(issuer):
    head, body, signature = issuer.token().split(".")
    return ".".join((head, body[:-2] + ("AA" if body[-2:] != "AA" else "BB"), signature))


@pytest.mark.parametrize(
    "forge", [_unsigned, _by_another_key, _by_the_client_secret, _changed, lambda _: "x", lambda _: "a.b.c"]
)
def test_a_forged_id_token_is_refused(issuer, forge):
    issuer.id_token = forge(issuer)

    with pytest.raises(Untrusted):
        redeem(issuer)


def test_an_answer_without_an_id_token_is_refused(issuer):
    issuer.sends_id_token = False

    with pytest.raises(Untrusted):
        redeem(issuer)


def test_new_keys_of_the_provider_are_read_once_for_an_unknown_one(issuer, monkeypatch):
    monkeypatch.setattr("providers.openid.client.KEYS_KEPT", 0.0)
    provider = client(issuer)
    args = ("code", "nonce", "verifier", REDIRECT)
    provider.redeem(*args, deadline=soon())
    issuer.key = ECKey.generate_key("P-256", {"kid": "two", "use": "sig"})

    assert provider.redeem(*args, deadline=soon()).subject == "ada"
    provider.redeem(*args, deadline=soon())

    assert [path for path, *_ in issuer.requests].count("/keys") == 2
    assert [path for path, *_ in issuer.requests].count("/.well-known/openid-configuration") == 1


@pytest.mark.parametrize(
    "fault", [b'{"keys": []}', b"{}", None], ids=["no keys", "something else", "another key of the same id"]
)
def test_keys_that_do_not_fit_are_read_again(issuer, monkeypatch, fault):
    monkeypatch.setattr("providers.openid.client.KEYS_KEPT", 0.0)
    provider = client(issuer)
    args = ("code", "nonce", "verifier", REDIRECT)
    if fault is None:
        provider.redeem(*args, deadline=soon())
        issuer.key = ECKey.generate_key("P-256", {"kid": "one", "use": "sig"})
    else:
        issuer.faults["/keys"] = 200, fault
        with pytest.raises(Untrusted):
            provider.redeem(*args, deadline=soon())
        issuer.faults.clear()

    assert provider.redeem(*args, deadline=soon()).subject == "ada"


def test_a_fresh_look_asks_although_metadata_are_cached(issuer):
    provider = client(issuer)
    provider.page(deadline=soon())
    issuer.faults["/.well-known/openid-configuration"] = (503, b"")

    assert provider.page(deadline=soon()) == f"{issuer.url}/authorize"
    with pytest.raises(Unavailable):
        provider.page(deadline=soon(), fresh=True)


def test_metadata_of_another_issuer_are_not_kept(issuer):
    provider = client(issuer)
    issuer.metadata = {"issuer": "https://other.example.com"}
    with pytest.raises(WrongIssuer):
        provider.page(deadline=soon())
    issuer.metadata = {}

    assert provider.page(deadline=soon()) == f"{issuer.url}/authorize"


@pytest.mark.parametrize(
    "changes",
    [
        {"at_hash": 5},
        {"at_hash": ["x"]},
        {"nonce": ["nonce"]},
        {"azp": [CLIENT_ID]},
        {"azp": "other"},
        {"nbf": "x"},
        {"iat": []},
        {"aud": {CLIENT_ID: 1}},
        {"aud": [1]},
        {"aud": []},
        {"iss": ["x"]},
        {"sub": 5},
        {"sub": ["ada"]},
        {"amr": "x"},
        {"auth_time": "x"},
    ],
)
def test_claims_of_a_wrong_type_are_refused(issuer, changes):
    issuer.changes = changes

    with pytest.raises(Untrusted):
        redeem(issuer)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "ES256", "crit": ["x"], "x": 1},
        {"alg": ["ES256"]},
        {"alg": "ES256", "jwk": {"kty": "oct", "k": "AAAA"}},
        {"alg": "ES256", "jku": "https://evil.example"},
        {"alg": "ES256", "kid": ["one"]},
        {},
        [],
    ],
)
def test_headers_that_ask_for_something_else_are_refused(issuer, header):
    _head, body, signature = issuer.token().split(".")
    head = base64.urlsafe_b64encode(orjson.dumps(header)).decode().rstrip("=")
    issuer.id_token = f"{head}.{body}.{signature}"

    with pytest.raises(Untrusted):
        redeem(issuer)


def test_made_up_key_ids_do_not_make_the_keys_be_read_again_and_again(issuer):
    provider = client(issuer)
    issuer.id_token = jwt.encode({"alg": "ES256", "kid": "?"}, {"sub": "ada"}, issuer.key)

    for _ in range(3):
        with pytest.raises(Untrusted):
            provider.redeem("code", "nonce", "verifier", REDIRECT, deadline=soon())

    assert [path for path, *_ in issuer.requests].count("/keys") == 1


def test_what_the_id_token_lacks_is_read_from_the_userinfo_of_the_same_person(issuer):
    issuer.changes = {"groups": None}
    issuer.userinfo = {"sub": "ada", "groups": ["staff"], "iss": "ignored"}
    asserted = redeem(issuer)
    assert (asserted.claims["groups"], asserted.claims["iss"]) == (["staff"], issuer.url)

    issuer.userinfo = {"sub": "eve", "groups": ["admins"]}
    with pytest.raises(Untrusted):
        redeem(issuer)


def test_a_claim_is_found_by_its_name_or_by_a_path():
    claims = {"https://acme.example/roles": ["a"], "realm_access": {"roles": ["b"]}, "groups": "c"}

    assert claim(claims, "https://acme.example/roles") == ["a"]
    assert claim(claims, "realm_access.roles") == ["b"]
    assert claim(claims, "groups") == "c"
    assert claim(claims, "groups.more") is None
    assert claim(claims, "missing") is None


@pytest.mark.parametrize(
    ("methods", "basic"), [(None, True), (["client_secret_post"], False), (["client_secret_basic"], True)]
)
def test_the_secret_is_sent_as_the_provider_takes_it(issuer, methods, basic):
    issuer.metadata = {"token_endpoint_auth_methods_supported": methods}
    redeem(issuer)

    ((_, header, form),) = [each for each in issuer.requests if each[0] == "/token"]
    assert header == (f"Basic {base64.b64encode(f'{CLIENT_ID}:{SECRET}'.encode()).decode()}" if basic else "")
    assert form.get("client_secret") == (None if basic else [SECRET])


def test_a_secret_that_is_wrong_in_both_ways_is_refused(issuer):
    issuer.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"]}
    issuer.faults["/token"] = REFUSED

    with pytest.raises(Misconfigured):
        redeem(issuer)
    assert [path for path, *_ in issuer.requests].count("/token") == 2


def test_a_code_that_was_used_is_no_longer_valid(issuer):
    issuer.faults["/token"] = (400, b'{"error": "invalid_grant"}')

    with pytest.raises(GrantGone):
        redeem(issuer)
    # A code can be used once: it is never sent again.
    assert [path for path, *_ in issuer.requests].count("/token") == 1


def test_a_person_is_checked_by_the_refresh_token(issuer):
    issuer.changes = {"nonce": None, "groups": ["staff"]}
    issuer.refresh_token = "next"
    checked = client(issuer).check("ada", Token("old"), deadline=soon())

    assert checked.claims["groups"] == ["staff"]
    assert checked.refresh_token == Token("next")
    (sent,) = [form for path, _, form in issuer.requests if path == "/token"]
    assert sent == {"grant_type": ["refresh_token"], "refresh_token": ["old"]}


def test_the_check_of_one_person_never_confirms_another(issuer):
    issuer.changes = {"sub": "eve"}
    with pytest.raises(Untrusted):
        client(issuer).check("ada", Token("old"), deadline=soon())

    issuer.sends_id_token = False
    issuer.userinfo = {"sub": "eve", "groups": ["admins"]}
    with pytest.raises(Untrusted):
        client(issuer).check("ada", Token("old"), deadline=soon())


def test_a_check_without_id_token_and_userinfo_says_nothing_about_roles(issuer):
    issuer.sends_id_token = False
    issuer.metadata = {"userinfo_endpoint": None}

    checked = client(issuer).check("ada", Token("old"), deadline=soon())

    assert (checked.subject, checked.names_roles) == ("ada", False)


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"issuer": "https://other.example.com"}, WrongIssuer),
        ({"token_endpoint": None}, WrongIssuer),
        ({"token_endpoint": "ftp://x"}, WrongIssuer),
        ({"token_endpoint": "http://user@x/"}, WrongIssuer),
        ({"token_endpoint": "http://[/"}, WrongIssuer),
        ({"jwks_uri": 5}, WrongIssuer),
    ],
)
def test_metadata_that_do_not_fit_are_refused(issuer, metadata, kind):
    issuer.metadata = metadata

    with pytest.raises(kind):
        redeem(issuer)


def test_endpoints_of_an_https_issuer_are_https(monkeypatch):
    known = {"issuer": "https://login.example.com", "authorization_endpoint": "http://login.example.com/go"}
    monkeypatch.setattr("providers.openid.client.send", lambda *_, **__: known)

    with pytest.raises(WrongIssuer):
        client("https://login.example.com").page(deadline=soon())


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
@pytest.mark.parametrize("fault", [(500, b""), (503, b"<html>"), (200, b"<html>"), (200, b"[]")])
def test_a_provider_that_is_out_of_order_is_unavailable(issuer, path, fault):
    issuer.faults[path] = fault

    with pytest.raises(Unavailable):
        client(issuer).redeem("code", "nonce", "verifier", REDIRECT, deadline=soon(1.5))


def test_no_provider_at_the_address_is_a_wrong_issuer(issuer):
    with pytest.raises(WrongIssuer):
        client(f"{issuer.url}/realms/none").page(deadline=soon())


def test_a_refused_connection_is_no_answer():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"

        with pytest.raises(NoAnswer):
            client(url).page(deadline=soon(1))


def test_a_provider_that_hangs_costs_the_deadline_and_no_more():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()

        with pytest.raises(TimedOut):
            client(f"http://127.0.0.1:{silent.getsockname()[1]}").page(deadline=soon(0.5))
        assert time.monotonic() - began < 2


def test_errors_and_texts_show_no_secret(issuer):
    issuer.changes = {"aud": "planted-audience", "nonce": "planted-nonce"}
    provider = client(issuer)
    with pytest.raises(ProviderError) as refused:
        provider.redeem("planted-code", "nonce", "planted-verifier", REDIRECT, deadline=soon())
    issuer.changes = {}
    asserted = redeem(issuer)

    assert "planted" not in f"{refused.value!r} {refused.value.message} {asserted!r}"
    assert "planted" not in repr(provider._registered)
