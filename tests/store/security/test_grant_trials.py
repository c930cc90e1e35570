"""Grants for a worker to try: taken once, short-lived and encrypted."""

from __future__ import annotations

import secrets

from store.security.crypto import Keyring
from store.security.grant_trials import GrantTrial, GrantTrials

ENTERED = GrantTrial("microsoft", None, "tenant", "8f6b", "planted-secret", ("Calendars.Read",))


def test_a_proposal_can_be_taken_once(stores):
    name = stores.grant_trials.put(ENTERED)

    assert stores.grant_trials.take(name) == ENTERED
    assert stores.grant_trials.take(name) is None


def test_a_proposal_is_encrypted_in_redis_and_expires_after_a_minute(stores):
    name = stores.grant_trials.put(ENTERED)

    kept = stores.redis.get(f"grant:{name}")

    assert kept is not None
    assert b"planted" not in kept
    assert b"microsoft" not in kept
    assert 50 <= stores.redis.ttl(f"grant:{name}") <= 60


def test_trial_is_bound_to_its_name_and_encryption_key(stores):
    first, second = (stores.grant_trials.put(ENTERED) for _ in range(2))
    stores.redis.rename(f"grant:{first}", f"grant:{second}")

    assert stores.grant_trials.take(second) is None
    third = stores.grant_trials.put(ENTERED)
    assert GrantTrials(stores.redis, Keyring([secrets.token_bytes(32)])).take(third) is None


def test_the_secret_does_not_show():
    assert "planted" not in repr(ENTERED)
