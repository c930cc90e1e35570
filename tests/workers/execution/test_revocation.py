"""Which grants are revoked with a removed connection, also during consents of the same account."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from providers.base import Failed
from providers.errors import Reason
from store.coordination.locks import LockTimeout
from store.security.one_time_secrets import JOB_SECONDS, PendingRevocation
from store.sql.models import OAuthConnection
from store.sql.queries import connections
from store.sql.queries.connections import ProviderAccount
from tests import people
from workers.execution.removals import evict_and_list_revocations
from workers.execution.revocation import LOST, revoke, revoke_unused
from workers.execution.writes import perform
from workers.jobs import Revoke

ADA = "ada@example.com"

# The columns that are arguments of ``connections.replace``; others are set afterwards.
STORED = {"provider", "email", "account_id", "obtained"}


@pytest.fixture
def empty(runtime):
    """Remove the connections of other tests, which could use the same account."""
    with runtime.stores.database.writing() as session:
        session.query(OAuthConnection).delete()


@pytest.fixture
def put(runtime, unique, empty):
    """Store a connection of a new user; returns the user's id."""

    def make(account, **columns) -> int:
        stored = {name: columns.pop(name) for name in columns.keys() & STORED}
        with runtime.stores.database.writing() as session:
            user = people.add_user(session, unique("user"))
            row = people.add_connection(
                session, runtime.stores.keyring, user, account, **({"obtained": True} | stored)
            )
            for name, value in columns.items():
                setattr(row, name, value)
            return user.id

    return make


@pytest.fixture
def disconnect(runtime):
    """Remove a user's connection and revoke its grant if unused; returns whether the provider was called."""

    def run(user_id, sandbox) -> bool:
        sandbox.forget_requests()
        with runtime.stores.database.writing() as session:
            (removed,) = connections.remove_of_user(session, user_id)
        for revocation in evict_and_list_revocations(runtime.stores, [removed]):
            name = runtime.stores.revocations.put(revocation)
            assert perform(runtime, Revoke(name), None, time.monotonic() + 5).failed is None
        return sandbox.requests().by_operation == {"google.revoke": 1}

    return run


def test_unused_grant_obtained_by_the_service_is_revoked(sandbox, put, disconnect):
    assert disconnect(put(sandbox.account("google", ADA)), sandbox)


@pytest.mark.parametrize(
    "columns",
    [{"obtained": False}, {"alive": False}, {"provider": "microsoft"}],
    ids=["posted", "dead", "microsoft"],
)
def test_what_is_never_revoked(sandbox, put, disconnect, columns):
    assert not disconnect(put(sandbox.account("google", ADA), **columns), sandbox)


@pytest.mark.parametrize(
    ("own", "others", "revoked"),
    [
        # The id decides if both are known.
        ({"account_id": "1"}, {"account_id": "1", "email": "other@example.com"}, False),
        ({"account_id": "1"}, {"account_id": "2"}, True),
        # The address decides if one id is unknown.
        ({"account_id": "1"}, {"email": "ADA@example.COM"}, False),
        ({}, {"account_id": "2", "email": "ADA@example.COM"}, False),
        ({"account_id": "1"}, {"email": None, "main_calendar_id": "Ada@Example.com"}, False),
        ({"account_id": "1"}, {"email": "eve@example.com"}, True),
        ({"account_id": "1", "email": None}, {}, True),
        # An account without id and address is another one, and a dead connection uses none.
        ({"account_id": "1"}, {"email": None}, True),
        ({"account_id": "1"}, {"account_id": "1", "alive": False}, True),
        ({"account_id": "1"}, {"account_id": "1", "provider": "microsoft"}, True),
        ({"account_id": "1"}, {"account_id": "1", "obtained": False}, False),
    ],
)
def test_a_grant_is_kept_while_another_connection_uses_its_account(
    sandbox, put, disconnect, own, others, revoked
):
    account = sandbox.account("google", ADA)
    user_id = put(account, **own)
    put(account, **others)

    assert disconnect(user_id, sandbox) is revoked


def test_connection_without_address_prevents_revocation(sandbox, put, runtime):
    account = sandbox.account("google", ADA)
    user_id = put(account, email=None)
    opened = ProviderAccount("google", "1", ADA)
    with runtime.stores.database.reading() as session:
        assert connections.uses_account(session, opened, or_user=user_id)
        assert not connections.uses_account(session, opened, or_user=user_id + 1)


def test_concurrent_deletes_of_two_connections_revoke_the_grant(sandbox, put, runtime):
    account = sandbox.account("google", ADA)
    users = [put(account, account_id="1"), put(account, account_id="1")]
    sandbox.forget_requests()

    def end(user_id):
        with runtime.stores.database.writing() as session:
            (removed,) = connections.remove_of_user(session, user_id)
        (revocation,) = evict_and_list_revocations(runtime.stores, [removed])
        name = runtime.stores.revocations.put(revocation)
        return revoke(runtime, Revoke(name), time.monotonic() + 5)

    with ThreadPoolExecutor(2) as threads:
        replies = list(threads.map(end, users))

    assert [reply.failed for reply in replies] == [None, None]
    # The later one of the two has found no other connection.
    assert sandbox.requests().by_operation["google.revoke"] >= 1


def test_a_revocation_waits_for_a_consent_that_is_being_stored(sandbox, put, runtime):
    account = sandbox.account("google", ADA)
    revocation = PendingRevocation(0, "google", "1", ADA, account.refresh_token)
    sandbox.forget_requests()
    # The consent has only the account's address.
    with (
        runtime.stores.account_locks.exclusive(
            ProviderAccount("google", None, ADA.upper()), deadline=_soon(5)
        ),
        pytest.raises(LockTimeout),
    ):
        revoke_unused(runtime, revocation, _soon(0.2))

    put(account, account_id="1")
    revoke_unused(runtime, revocation, _soon(5))

    assert sandbox.requests().total == 0


@pytest.mark.parametrize(
    "consented",
    [ProviderAccount("google", "1", None), ProviderAccount("google", None, "ADA@example.com")],
    ids=["by id", "by address"],
)
def test_a_consent_learns_that_its_account_was_revoked_meanwhile(sandbox, put, runtime, consented):
    locks, account = runtime.stores.account_locks, sandbox.account("google", ADA)
    before = locks.now()
    assert not locks.revoked_since(consented, before)

    revoke_unused(runtime, PendingRevocation(0, "google", "1", ADA, account.refresh_token), _soon(5))

    assert locks.revoked_since(consented, before)
    assert not locks.revoked_since(consented, locks.now())
    assert not locks.revoked_since(ProviderAccount("google", "2", "eve@example.com"), before)
    assert not locks.revoked_since(ProviderAccount("google", None, None), before)


def test_failed_revocation_is_returned_and_ends_the_lock(sandbox, put, runtime):
    account = sandbox.account("google", ADA)
    sandbox.fault(operation="google.revoke", status=503)
    before = runtime.stores.account_locks.now()
    revocation = PendingRevocation(0, "google", "1", ADA, account.refresh_token)
    name = runtime.stores.revocations.put(revocation)

    reply = perform(runtime, Revoke(name), None, _soon(1))

    assert isinstance(reply.failed, Failed)
    assert runtime.stores.account_locks.revoked_since(ProviderAccount("google", "1", None), before)


def test_a_grant_to_revoke_waits_once_and_shows_no_token(runtime):
    revocation = PendingRevocation(1, "google", "1", ADA, "planted-token")
    name = runtime.stores.revocations.put(revocation)
    kept = runtime.stores.redis.get(f"oauth-revocation:{name}")
    assert 0 < runtime.stores.redis.ttl(f"oauth-revocation:{name}") <= JOB_SECONDS
    assert b"planted" not in kept
    assert "planted" not in repr(revocation)

    assert runtime.stores.revocations.take(name) == revocation
    assert runtime.stores.revocations.take(name) is None
    assert perform(runtime, Revoke(name), None, _soon(1)).failed == LOST
    assert LOST.reason is Reason.PROVIDER_ERROR


def _soon(seconds: float) -> float:
    return time.monotonic() + seconds
