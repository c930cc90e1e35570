"""Tokens are refreshed by one worker at a time, and a dead grant is detected."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from providers.base import Token
from providers.errors import AuthorizationInvalid, GrantGone, Reason, Unavailable
from store.coordination.locks import hold
from store.sql.models import OAuthConnection
from store.sql.queries import connections
from tests.app.days import PROVIDERS
from workers.execution import reads
from workers.execution.accounts import ConnectionTokens
from workers.jobs import ReadBusy

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def tokens(runtime, opened):
    """The token source of a connection, as a worker creates it."""

    def make(connection):
        credentials = opened(connection)
        oauth = runtime.provider(credentials.provider).oauth
        return ConnectionTokens(runtime.stores, oauth, credentials)

    return make


def soon(seconds=30.0):
    return time.monotonic() + seconds


def refreshes(sandbox):
    return sum(n for name, n in sandbox.requests().by_operation.items() if name.endswith(".token"))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_twenty_threads_that_need_a_refresh_at_once_cause_one(sandbox, connected, tokens, opened, provider):
    account = sandbox.account(provider, "ada@example.com")
    connection = connected(account, expires_at=LONG_AGO)
    sources = [tokens(connection) for _ in range(20)]
    sandbox.fault(operation=f"{provider}.token", latency_ms=200)
    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda source: source.access_token(deadline=soon()).reveal, sources))
    assert refreshes(sandbox) == 1
    assert set(found) == {opened(connection).tokens.access_token}
    assert found[0] != account.access_token


def test_twenty_threads_with_rejected_token_cause_one_refresh(sandbox, connected, tokens):
    account = sandbox.account("google", "ada@example.com")
    connection = connected(account)
    sources = [tokens(connection) for _ in range(20)]
    rejected = Token(account.access_token)
    with ThreadPoolExecutor(20) as threads:
        found = list(threads.map(lambda each: each.renewed(rejected, deadline=soon()).reveal, sources))
    assert refreshes(sandbox) == 1
    assert len(set(found)) == 1
    assert found[0] != account.access_token


def test_a_rotated_refresh_token_is_stored_and_used_next(sandbox, connected, tokens, opened):
    account = sandbox.account("microsoft", "ada@example.com")
    connection = connected(account, expires_at=LONG_AGO)
    tokens(connection).access_token(deadline=soon())
    first = opened(connection).tokens
    assert first.refresh_token not in (None, account.refresh_token)
    assert first.expires_at > datetime.now(UTC) + timedelta(minutes=30)
    tokens(connection).renewed(Token(first.access_token), deadline=soon())
    second = opened(connection).tokens
    assert second.refresh_token not in (None, first.refresh_token)
    assert second.access_token != first.access_token


def test_a_refresh_token_that_stays_in_force_is_kept(sandbox, connected, tokens, opened):
    account = sandbox.account("google", "ada@example.com")
    connection = connected(account, expires_at=LONG_AGO)
    tokens(connection).access_token(deadline=soon())
    assert opened(connection).tokens.refresh_token == account.refresh_token


@pytest.mark.parametrize(
    ("ends_in", "refreshed"), [(timedelta(minutes=5), False), (timedelta(seconds=30), True), (None, False)]
)
def test_a_token_is_refreshed_when_it_is_about_to_end(sandbox, connected, tokens, ends_in, refreshed):
    account = sandbox.account("google", "ada@example.com")
    expires_at = None if ends_in is None else datetime.now(UTC) + ends_in
    found = tokens(connected(account, expires_at=expires_at)).access_token(deadline=soon())
    assert (found.reveal != account.access_token) == refreshed == bool(refreshes(sandbox))


def test_token_without_refresh_is_used_until_rejected(sandbox, connected, tokens, row):
    account = sandbox.account("google", "ada@example.com")
    connection = connected(account, expires_at=LONG_AGO, refresh_token=None)
    source = tokens(connection)
    assert source.access_token(deadline=soon()).reveal == account.access_token
    with pytest.raises(AuthorizationInvalid):
        source.renewed(Token(account.access_token), deadline=soon())
    assert row(connection).alive


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("expires_at", [LONG_AGO, None], ids=["expired", "unknown"])
def test_rejected_token_without_refresh_ends_the_connection(
    sandbox, connected, opened, row, runtime, provider, expires_at
):
    account = sandbox.account(provider, "ada@example.com", expires_in=0)
    connection = connected(account, expires_at=expires_at, refresh_token=None)

    reply = read(runtime, opened(connection))

    assert reply.failed.reason is Reason.AUTHORIZATION_INVALID
    assert not row(connection).alive


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_token_that_has_not_expired_may_be_rejected_for_a_while(
    sandbox, connected, opened, row, runtime, provider
):
    account = sandbox.account(provider, "ada@example.com", expires_in=0)
    connection = connected(account, expires_at=datetime.now(UTC) + timedelta(hours=1), refresh_token=None)

    reply = read(runtime, opened(connection))

    assert reply.failed.reason is Reason.AUTHORIZATION_INVALID
    assert row(connection).alive


@pytest.mark.parametrize("provider", PROVIDERS)
def test_invalid_grant_marks_the_connection_dead(sandbox, connected, opened, row, runtime, provider):
    account = sandbox.account(provider, "ada@example.com")
    connection = connected(account, expires_at=LONG_AGO)
    sandbox.revoke("ada@example.com")
    reply = read(runtime, opened(connection))
    assert reply.failed.reason is Reason.AUTHORIZATION_INVALID
    assert not row(connection).alive
    with runtime.stores.database.reading() as session:
        because = session.get_one(OAuthConnection, connection).ended_because
    assert because == f"{provider.title()} says that this connection has ended"


def test_busy_refresh_lock_is_unavailable_and_keeps_connection(sandbox, connected, opened, row, runtime):
    account = sandbox.account("google", "ada@example.com")
    connection = connected(account, expires_at=LONG_AGO)
    with hold(runtime.stores.redis, f"refresh:{connection}", deadline=soon(60)):
        began = time.monotonic()
        reply = read(runtime, opened(connection), seconds=0.5)
        assert time.monotonic() - began < 20
    assert reply.failed.reason is Reason.PROVIDER_ERROR
    assert "took too long" in reply.failed.message
    assert row(connection).alive
    assert refreshes(sandbox) == 0


def test_a_worker_that_waited_for_the_lock_takes_the_stored_token(sandbox, connected, tokens, runtime):
    connection = connected(sandbox.account("google", "ada@example.com"), expires_at=LONG_AGO)
    first, second = tokens(connection), tokens(connection)
    fresh = first.access_token(deadline=soon())
    assert second.access_token(deadline=soon()) == fresh
    assert refreshes(sandbox) == 1


def test_the_token_endpoint_that_takes_too_long_is_unavailable(sandbox, connected, tokens):
    connection = connected(sandbox.account("google", "ada@example.com"), expires_at=LONG_AGO)
    sandbox.fault(operation="google.token", latency_ms=60_000)
    with pytest.raises(Unavailable):
        tokens(connection).access_token(deadline=soon(0.3))


def test_a_connection_that_was_removed_meanwhile_is_refused(sandbox, connected, tokens, runtime):
    connection = connected(sandbox.account("google", "ada@example.com"), expires_at=LONG_AGO)
    source = tokens(connection)
    with runtime.stores.database.writing() as session:
        connections.remove(session, [connection])
    with pytest.raises(AuthorizationInvalid) as refused:
        source.access_token(deadline=soon())
    assert not isinstance(refused.value, GrantGone)
    assert refreshes(sandbox) == 0


def test_a_connection_removed_during_its_refresh_stays_removed(
    sandbox, connected, tokens, runtime, row, monkeypatch
):
    connection = connected(sandbox.account("microsoft", "ada@example.com"), expires_at=LONG_AGO)
    source = tokens(connection)
    refresh = source._oauth.refresh

    def refresh_and_remove(token, *, deadline):
        grant = refresh(token, deadline=deadline)
        with runtime.stores.database.writing() as session:
            connections.remove(session, [connection])
        return grant

    monkeypatch.setattr(source._oauth, "refresh", refresh_and_remove)
    assert source.access_token(deadline=soon()).reveal
    assert row(connection) is None


def test_refreshing_brings_a_connection_back_to_life(sandbox, connected, tokens, runtime, row):
    account = sandbox.account("google", "ada@example.com")
    connection = connected(account)
    with runtime.stores.database.writing() as session:
        connections.mark_dead(session, connection, "the grant has ended")
    tokens(connection).renewed(Token(account.access_token), deadline=soon())
    assert row(connection).alive


def test_no_token_shows_when_the_source_is_printed(sandbox, connected, tokens, opened):
    account = sandbox.account("google", "ada@example.com")
    connection = connected(account)
    shown = repr((tokens(connection), opened(connection), vars(tokens(connection))))
    assert account.access_token not in shown
    assert account.refresh_token not in shown


def read(runtime, credentials, *, seconds=30.0):
    """One busy read, as a drain does it."""
    job = ReadBusy(credentials.id, ("primary",), 0, 86_400_000)
    return reads.perform(runtime, job, credentials, soon(seconds))
