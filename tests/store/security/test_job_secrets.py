"""The secret parts of jobs: taken once, short-lived and encrypted."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from store.config.declaration import Reading
from store.config.setting import declared
from store.security.crypto import Keyring
from store.security.one_time_secrets import (
    JOB_SECONDS,
    AccountByForm,
    EnteredForm,
    GrantTrial,
    JobSecrets,
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
    "revocations": ("oauth-revocation", PendingRevocation(1, "microsoft", None, None, "planted-token")),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(stores: Stores, kind: str) -> JobSecrets[Any]:
    found: JobSecrets[Any] = getattr(stores, kind)
    return found


@pytest.fixture
def prefix(kind: str) -> str:
    return KINDS[kind][0]


@pytest.fixture
def value(kind: str) -> Any:
    return KINDS[kind][1]


def test_a_secret_can_be_taken_once(store, value):
    name = store.put(value)

    assert store.take(name) == value
    assert store.take(name) is None


def test_a_secret_is_encrypted_in_redis_and_expires(stores, store, prefix, value):
    name = store.put(value)

    kept = stores.redis.get(f"{prefix}:{name}")

    assert kept is not None
    assert b"planted" not in kept
    assert b"microsoft" not in kept
    assert 0 < stores.redis.ttl(f"{prefix}:{name}") <= JOB_SECONDS


def test_a_secret_outlasts_the_longest_deadline():
    (deadline,) = (each for each in declared(Reading) if each.name == "ALMANAC_FANOUT_DEADLINE")
    assert deadline.maximum is not None
    assert deadline.maximum < JOB_SECONDS


def test_a_secret_is_bound_to_its_name(stores, store, prefix, value):
    first, second = (store.put(value) for _ in range(2))
    stores.redis.rename(f"{prefix}:{first}", f"{prefix}:{second}")

    assert store.take(second) is None


def test_a_secret_of_a_removed_encryption_key_is_dropped_and_logged_unnamed(
    stores, store, prefix, value, caplog
):
    name = store.put(value)
    other_key = JobSecrets(stores.redis, Keyring([secrets.token_bytes(32)]), prefix, type(value))

    assert other_key.take(name) is None
    assert f"{prefix} dropped" in caplog.text
    assert name not in caplog.text


def test_the_secret_does_not_show(value):
    assert "planted" not in repr(value)
