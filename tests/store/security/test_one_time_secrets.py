"""Pending consents and the secret parts of jobs: taken once, short-lived and encrypted."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from store.config.declaration import Reading
from store.config.setting import declared
from store.security.crypto import Keyring
from store.security.one_time_secrets import (
    JOB_SECONDS,
    STATE_SECONDS,
    AccountByForm,
    EnteredForm,
    GrantTrial,
    OneTimeSecrets,
    PendingConsent,
    PendingExchange,
    PendingRevocation,
    RegistrationTrial,
)
from store.stores import Stores

CONSENT = PendingConsent(
    4711, "microsoft", ("openid",), True, "https://a/callback", True, None, "alm_1", None, "planted-verifier"
)
# Each kind by the name of its store, with the prefix of its keys in Redis.
KINDS = {
    "grant_trials": ("grant", GrantTrial("microsoft", None, "tenant", "8f6b", "planted-secret", ("Read",))),
    "registration_trials": (
        "registration",
        RegistrationTrial("microsoft", "8f6b", "planted-secret", None, "https://a/callback"),
    ),
    "code_exchanges": ("oauth-code", PendingExchange(CONSENT, "planted-code")),
    "entered_forms": ("form", EnteredForm("caldav", {"password": "planted-password"})),
    "opened_accounts": ("opened-account", AccountByForm("ada", None, "planted-password", ("read",))),
    "oauth_states": ("oauth-state", replace(CONSENT, return_url="https://a.b/ä", within=3, offline=False)),
    "revocations": ("oauth-revocation", PendingRevocation(1, "microsoft", None, None, "planted-token")),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(stores: Stores, kind: str) -> OneTimeSecrets[Any]:
    found: OneTimeSecrets[Any] = getattr(stores, kind)
    return found


@pytest.fixture
def prefix(kind: str) -> str:
    return KINDS[kind][0]


@pytest.fixture
def key(kind: str, prefix: str) -> Callable[[str], str]:
    """The key in Redis of a name."""
    hashed = kind == "oauth_states"
    return lambda name: f"{prefix}:{hashlib.sha256(name.encode()).hexdigest() if hashed else name}"


@pytest.fixture
def value(kind: str) -> Any:
    return KINDS[kind][1]


def test_a_secret_can_be_taken_once(store, value):
    name = store.put(value)

    assert store.take(name) == value
    assert store.take(name) is None


def test_a_secret_is_encrypted_in_redis_and_expires(stores, store, key, kind, value):
    name = store.put(value)

    kept = stores.redis.get(key(name))

    assert kept is not None
    assert b"planted" not in kept
    assert b"microsoft" not in kept
    most = STATE_SECONDS if kind == "oauth_states" else JOB_SECONDS
    assert most - 2 <= stores.redis.ttl(key(name)) <= most


def test_a_secret_may_end_earlier(stores, store, key, value):
    """A consent that is given again keeps the end of the first one."""
    assert 98 <= stores.redis.ttl(key(store.put(value, 100))) <= 100


def test_names_are_random_and_never_the_same(store, value):
    made = {store.put(value) for _ in range(20)}

    assert len(made) == 20
    # 256 bits in base64url.
    assert {len(name) for name in made} == {43}


def test_concurrent_takes_succeed_once(store, value):
    for _ in range(5):
        name = store.put(value)
        gate = threading.Barrier(8)

        def take(_: int, name: str = name, gate: threading.Barrier = gate) -> Any:
            gate.wait(timeout=10)
            return store.take(name)

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(take, range(8)))
        assert [each for each in found if each is not None] == [value]


def test_a_secret_outlasts_the_longest_deadline():
    (deadline,) = (each for each in declared(Reading) if each.name == "ALMANAC_FANOUT_DEADLINE")
    assert deadline.maximum is not None
    assert deadline.maximum < JOB_SECONDS


def test_a_secret_is_bound_to_its_name(stores, store, key, value):
    first, second = (store.put(value) for _ in range(2))
    stores.redis.rename(key(first), key(second))

    assert store.take(second) is None


def test_a_secret_of_a_removed_encryption_key_is_dropped_and_logged_unnamed(
    stores, store, kind, prefix, value, caplog
):
    name = store.put(value)
    other_key = OneTimeSecrets(
        stores.redis, Keyring([secrets.token_bytes(32)]), prefix, type(value), hashed=kind == "oauth_states"
    )

    assert other_key.take(name) is None
    assert f"{prefix} dropped" in caplog.text
    assert name not in caplog.text


def test_the_secret_does_not_show(value):
    assert "planted" not in repr(value)
