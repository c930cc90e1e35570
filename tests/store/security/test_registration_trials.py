"""Registrations for a worker to try: taken once, short-lived and encrypted."""

from __future__ import annotations

import secrets

from store.security.crypto import Keyring
from store.security.registration_trials import RegistrationTrial, RegistrationTrials

ENTERED = RegistrationTrial(
    "microsoft", "8f6b", "planted-secret", None, "https://almanac.example.com/callback"
)


def test_what_was_left_comes_back_once(stores):
    name = stores.registration_trials.put(ENTERED)

    assert stores.registration_trials.take(name) == ENTERED
    assert stores.registration_trials.take(name) is None


def test_it_cannot_be_read_in_redis_and_is_gone_after_a_minute(stores):
    name = stores.registration_trials.put(ENTERED)

    kept = stores.redis.get(f"registration:{name}")

    assert kept is not None
    assert b"planted" not in kept
    assert b"microsoft" not in kept
    assert 50 <= stores.redis.ttl(f"registration:{name}") <= 60


def test_what_waits_under_one_name_does_not_open_under_another(stores):
    first, second = (stores.registration_trials.put(ENTERED) for _ in range(2))
    stores.redis.rename(f"registration:{first}", f"registration:{second}")

    assert stores.registration_trials.take(second) is None


def test_trial_of_unknown_key_is_dropped_and_logged_unnamed(stores, caplog):
    name = stores.registration_trials.put(ENTERED)

    assert RegistrationTrials(stores.redis, Keyring([secrets.token_bytes(32)])).take(name) is None
    assert "registration dropped" in caplog.text
    assert name not in caplog.text


def test_the_secret_does_not_show():
    assert "planted" not in repr(ENTERED)
