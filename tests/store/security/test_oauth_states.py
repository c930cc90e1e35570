"""Pending consents: taken once, short-lived and encrypted."""

from __future__ import annotations

import hashlib
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from store.security.crypto import Keyring
from store.security.oauth_states import OAuthStates, PendingConsent, PendingExchange

ASKED = PendingConsent(
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
def waiting(stores) -> OAuthStates:
    return stores.oauth_states


@pytest.mark.parametrize("changed", [{}, {"return_url": "https://a.b/ä", "within": 3, "offline": False}])
def test_what_a_state_stands_for_comes_back_once(waiting, changed):
    asked = replace(ASKED, **changed)
    state = waiting.begin(asked)

    assert waiting.take(state) == asked
    assert waiting.take(state) is None


def test_a_code_that_was_left_comes_back_once(waiting):
    redemption = PendingExchange(ASKED, "planted-code")
    name = waiting.put_exchange(redemption)

    assert waiting.take_exchange(name) == redemption
    assert waiting.take_exchange(name) is None


def test_states_are_random_and_never_the_same(waiting):
    states = {waiting.begin(ASKED) for _ in range(20)}

    assert len(states) == 20
    # 256 bits in base64url.
    assert {len(state) for state in states} == {43}


def test_concurrent_takes_of_a_state_succeed_once(waiting):
    for _ in range(5):
        state = waiting.begin(ASKED)
        gate = threading.Barrier(8)

        def take(_: int, state: str = state, gate: threading.Barrier = gate) -> PendingConsent | None:
            gate.wait(timeout=10)
            return waiting.take(state)

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(take, range(8)))
        assert [each for each in found if each is not None] == [ASKED]


def test_neither_a_state_nor_what_it_stands_for_can_be_read_in_redis(waiting, stores):
    state = waiting.begin(ASKED)
    name = f"oauth-state:{hashlib.sha256(state.encode()).hexdigest()}"

    kept = stores.redis.get(name)

    assert kept is not None
    assert b"planted" not in kept
    assert b"google" not in kept
    assert 590 <= stores.redis.ttl(name) <= 600


def test_what_was_sealed_for_one_state_does_not_open_under_another(waiting, stores):
    first, second = (waiting.begin(ASKED) for _ in range(2))
    names = [f"oauth-state:{hashlib.sha256(each.encode()).hexdigest()}" for each in (first, second)]
    stores.redis.rename(names[0], names[1])

    assert waiting.take(second) is None


def test_state_of_a_removed_encryption_key_is_unknown(waiting, stores):
    state = waiting.begin(ASKED)
    others = OAuthStates(stores.redis, Keyring([secrets.token_bytes(32)]))

    assert others.take(state) is None


def test_neither_verifier_nor_code_shows(waiting):
    assert "planted" not in f"{ASKED!r} {PendingExchange(ASKED, 'planted-code')!r}"
