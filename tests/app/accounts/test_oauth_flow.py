"""Links of consents that are given again."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from app.accounts import oauth_flow
from store.security.one_time_secrets import PendingConsent
from tests.conftest import stores_of

CONSENT = PendingConsent(
    user_id=4711,
    provider="google",
    scopes=("openid", "https://www.googleapis.com/auth/calendar"),
    offline=True,
    redirect_uri="https://almanac.example.com/v1/oauth/google/callback",
    ours=True,
    return_url=None,
    asked_by="alm_12345678",
    within=None,
    verifier="verifier",
    expected_email="ada@example.com",
)


@pytest.fixture
def again(app):
    def again(consent: PendingConsent) -> str | None:
        with app.app_context():
            return oauth_flow.again(consent)

    return again


def test_a_consent_that_is_given_again_keeps_its_end(app, again):
    """However often it fails, its link works for ten minutes in all."""
    consent = replace(CONSENT, expires_at=time.time() + 100)

    query = parse_qs(urlsplit(again(consent)).query)

    assert query["login_hint"] == ["ada@example.com"]
    pending = stores_of(app).oauth_states.take(query["state"][0])
    assert pending.verifier != consent.verifier
    assert replace(pending, verifier=consent.verifier) == consent


def test_a_consent_that_has_ended_cannot_be_given_again(again):
    assert again(replace(CONSENT, expires_at=time.time() + 0.5)) is None


def test_a_consent_of_an_invitation_begins_on_its_page(again):
    assert again(replace(CONSENT, retry_path="/invitations/secret")) == "/invitations/secret"
