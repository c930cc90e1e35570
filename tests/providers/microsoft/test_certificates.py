"""Certificates of applications: their checks, and the assertions that they sign."""

from __future__ import annotations

import hashlib
import time
from base64 import urlsafe_b64decode
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from joserfc import jwt
from joserfc.jwk import RSAKey

from providers.base import Token
from providers.errors import ClientRefused, ClockRefused, Misconfigured
from providers.microsoft import certificates, organization_grants
from providers.microsoft.certificates import InvalidCertificate
from providers.microsoft.oauth import Expired, MicrosoftOAuth, authentication
from providers.oauth.client import Client
from providers.oauth.registration_probe import ProbeVerdict
from tests import certificates as made
from tests import rsa_keys
from tests.providers.addresses import microsoft_at

CERTIFICATE, KEY = made.of_application()
OTHER_CERTIFICATE, OTHER_KEY = made.of_application()
EXPIRED = "".join(made.of_application(days=-1))
ENDS_SOON = made.of_application(days=20)
URL = "https://login.microsoftonline.com/contoso/oauth2/v2.0/token"


def client(pem: str = CERTIFICATE + KEY) -> Client:
    return Client("the-client", Token(pem))


def der(pem: str = CERTIFICATE) -> bytes:
    return x509.load_pem_x509_certificate(pem.encode()).public_bytes(Encoding.DER)


def test_an_assertion_is_what_microsoft_documents():
    before = int(time.time())
    fields = authentication(client(), URL)

    assert fields["client_id"] == "the-client"
    assert fields["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    assert "client_secret" not in fields
    public = x509.load_pem_x509_certificate(CERTIFICATE.encode()).public_key()
    token = jwt.decode(fields["client_assertion"], RSAKey.import_key(public), algorithms=["PS256"])
    digest = token.header.pop("x5t#S256")
    assert urlsafe_b64decode(digest + "=") == hashlib.sha256(der()).digest()
    assert token.header == {"alg": "PS256", "typ": "JWT"}
    claims = token.claims
    assert (claims["aud"], claims["iss"], claims["sub"]) == (URL, "the-client", "the-client")
    assert claims["nbf"] <= before < claims["exp"] <= before + 700
    again = authentication(client(), URL)["client_assertion"]
    assert jwt.decode(again, RSAKey.import_key(public), algorithms=["PS256"]).claims["jti"] != claims["jti"]


def test_a_secret_is_sent_as_before():
    assert authentication(client("a-secret"), URL) == {
        "client_id": "the-client",
        "client_secret": "a-secret",
    }


@pytest.mark.parametrize(
    "pem", [KEY + CERTIFICATE, CERTIFICATE + KEY + OTHER_CERTIFICATE, f"note\n{CERTIFICATE}\n{KEY}"]
)
def test_order_and_further_certificates_do_not_matter(pem):
    assert certificates.load(pem).thumbprints == (
        hashlib.sha256(der()).hexdigest(),
        hashlib.sha1(der()).hexdigest(),
    )


@pytest.mark.parametrize(
    ("pem", "what"),
    [
        (CERTIFICATE, "a certificate and its private key"),
        (KEY, "a certificate and its private key"),
        ("-----BEGIN CERTIFICATE-----", "a certificate and its private key"),
        (CERTIFICATE + OTHER_KEY, "the private key of the first certificate"),
        (CERTIFICATE.replace("MII", "AAA") + KEY, "a valid certificate"),
        (CERTIFICATE + KEY.replace("MII", "AAA"), "a valid certificate and a valid private key"),
    ],
)
def test_what_is_no_certificate_with_its_key_is_refused_and_not_repeated(pem, what):
    with pytest.raises(InvalidCertificate, match=what) as refused:
        certificates.checked(pem)

    assert "BEGIN" not in str(refused.value)


def test_a_key_of_8192_bits_is_refused_before_it_is_loaded():
    with pytest.raises(InvalidCertificate, match="1024 to 4096 bits"):
        certificates.load(CERTIFICATE + rsa_keys.pem(8192))


def test_an_expired_certificate_signs_nothing():
    assert certificates.checked(EXPIRED) == EXPIRED
    with pytest.raises(Expired):
        authentication(client(EXPIRED), URL)


def test_neither_key_nor_assertion_is_in_a_text():
    assert KEY[40:80] not in f"{certificates.load(CERTIFICATE + KEY)!r} {client()!r}"


@pytest.fixture
def domain(sandbox):
    """A tenant whose application has the certificate."""
    return sandbox.domain("microsoft", "contoso.example", clientId="the-client", certificate=CERTIFICATE)


def grant(sandbox, domain, pem):
    return organization_grants.token(
        microsoft_at(f"{sandbox.url}/microsoft"), domain.tenant, client(pem), deadline=time.monotonic() + 5
    )


def test_an_organization_grant_by_certificate_gets_a_token(sandbox, domain):
    issued = grant(sandbox, domain, CERTIFICATE + KEY)

    assert "Calendars.ReadWrite" in issued.scope


@pytest.mark.parametrize(
    ("pem", "sentence"),
    [
        (OTHER_CERTIFICATE + OTHER_KEY, "Microsoft does not know the certificate"),
        (EXPIRED, "The certificate of the application has expired"),
    ],
)
def test_a_certificate_that_is_not_accepted_says_what_to_do(sandbox, domain, pem, sentence):
    with pytest.raises(ClientRefused, match=sentence):
        grant(sandbox, domain, pem)


def test_a_clock_that_is_wrong_is_named(sandbox, domain, monkeypatch):
    now = time.time()
    monkeypatch.setattr("providers.microsoft.oauth.time.time", lambda: now - 86_400)

    with pytest.raises(ClockRefused):
        grant(sandbox, domain, CERTIFICATE + KEY)


def oauth(sandbox, pem):
    return MicrosoftOAuth(microsoft_at(f"{sandbox.url}/microsoft"), client(pem))


def test_users_consent_and_are_refreshed_by_certificate(sandbox, domain):
    account = sandbox.account("microsoft", "ada@contoso.example")
    issued = oauth(sandbox, CERTIFICATE + KEY).refresh(
        Token(account.refresh_token), deadline=time.monotonic() + 5
    )

    assert issued.access_token.reveal
    with pytest.raises(Misconfigured):
        oauth(sandbox, OTHER_CERTIFICATE + OTHER_KEY).refresh(
            Token(account.refresh_token), deadline=time.monotonic() + 5
        )
    with pytest.raises(Misconfigured, match="expired"):
        oauth(sandbox, EXPIRED).refresh(Token(account.refresh_token), deadline=time.monotonic() + 5)


@pytest.mark.parametrize(
    ("pem", "verdict", "sentence"),
    [
        (OTHER_CERTIFICATE + OTHER_KEY, ProbeVerdict.WRONG, "Microsoft does not know the certificate"),
        (EXPIRED, ProbeVerdict.WRONG, "The certificate of the registration with Microsoft has expired"),
    ],
)
def test_the_check_of_a_registration_names_what_is_wrong_with_its_certificate(
    sandbox, domain, pem, verdict, sentence
):
    finding = checked(sandbox, domain, pem)

    assert (finding.verdict, finding.sentence) == (verdict, sentence)
    assert finding.advice


def checked(sandbox, domain, pem):
    endpoints = replace(microsoft_at(f"{sandbox.url}/microsoft"), tenant=domain.tenant)
    return MicrosoftOAuth(endpoints, client(pem)).check("http://x", deadline=time.monotonic() + 5)


def test_the_check_says_in_time_when_a_certificate_ends(sandbox, domain):
    soon = sandbox.domain("microsoft", "soon.example", clientId="the-client", certificate=ENDS_SOON[0])
    finding = checked(sandbox, soon, "".join(ENDS_SOON))
    assert finding.verdict is ProbeVerdict.UNKNOWN
    assert finding.sentence.startswith("Microsoft accepts the certificate, which expires on 20")

    later = sandbox.domain("microsoft", "later.example", clientId="the-client", certificate=CERTIFICATE)
    assert checked(sandbox, later, CERTIFICATE + KEY).verdict is ProbeVerdict.RIGHT
