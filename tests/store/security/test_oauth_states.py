"""Pending consents: taken once, short-lived and encrypted."""

from __future__ import annotations

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from store.security.one_time_secrets import STATE_SECONDS, OAuthStates, PendingConsent

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
    verifier="planted-verifier",
)


@pytest.fixture
def states(stores) -> OAuthStates:
    return stores.oauth_states


@pytest.mark.parametrize("changed", [{}, {"return_url": "https://a.b/ä", "within": 3, "offline": False}])
def test_the_consent_of_a_state_can_be_taken_once(states, changed):
    consent = replace(CONSENT, **changed)
    state = states.begin(consent)

    assert states.take(state) == consent
    assert states.take(state) is None


@pytest.mark.parametrize(("left", "most"), [(None, STATE_SECONDS), (100, 100), (-5, 1)])
def test_a_state_ends_with_its_consent(states, stores, left, most):
    """A consent that is given again keeps the end of the first one."""
    before = set(stores.redis.scan_iter("oauth-state:*"))
    states.begin(replace(CONSENT, expires_at=None if left is None else time.time() + left))
    (key,) = set(stores.redis.scan_iter("oauth-state:*")) - before

    assert most - 2 <= stores.redis.ttl(key) <= most


def test_states_are_random_and_never_the_same(states):
    made = {states.begin(CONSENT) for _ in range(20)}

    assert len(made) == 20
    # 256 bits in base64url.
    assert {len(state) for state in made} == {43}


def test_concurrent_takes_of_a_state_succeed_once(states):
    for _ in range(5):
        state = states.begin(CONSENT)
        gate = threading.Barrier(8)

        def take(_: int, state: str = state, gate: threading.Barrier = gate) -> PendingConsent | None:
            gate.wait(timeout=10)
            return states.take(state)

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(take, range(8)))
        assert [each for each in found if each is not None] == [CONSENT]


def test_neither_a_state_nor_its_consent_can_be_read_in_redis(states, stores):
    state = states.begin(CONSENT)
    name = f"oauth-state:{hashlib.sha256(state.encode()).hexdigest()}"

    kept = stores.redis.get(name)

    assert kept is not None
    assert b"planted" not in kept
    assert b"google" not in kept
    assert 590 <= stores.redis.ttl(name) <= 600


def test_the_verifier_does_not_show():
    assert "planted" not in repr(CONSENT)
