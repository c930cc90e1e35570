"""Tokens that end soon are renewed before anybody needs them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import delete

from store.models import OAuthConnection
from store.queries import connections
from workers import upkeep
from workers.tasks import RENEW_AHEAD


@pytest.fixture
def renew(runtime):
    """Renew as the task does, with nothing in the database from other tests."""
    with runtime.stores.database.writing() as session:
        session.execute(delete(OAuthConnection))
    return lambda: upkeep.renew_tokens(runtime, before=datetime.now(UTC) + RENEW_AHEAD)


@pytest.fixture
def account(sandbox):
    """Make an account of either provider."""
    return lambda name, provider="google": sandbox.account(provider, f"{name}@example.com")


def ends_in(minutes):
    return {"expires_at": datetime.now(UTC) + timedelta(minutes=minutes)}


def test_only_what_ends_soon_is_renewed(renew, account, connected, opened):
    accounts = [account("soon"), account("soon-too", "microsoft"), account("later")]
    ids = [connected(each, **ends_in(n)) for each, n in zip(accounts, (5, 5, 30), strict=True)]
    assert renew() == 2
    kept = [opened(i).tokens.access_token == a.access_token for i, a in zip(ids, accounts, strict=True)]
    assert kept == [False, False, True]
    assert renew() == 0


def test_what_cannot_be_refreshed_or_is_dead_is_left_alone(renew, account, connected, runtime, sandbox):
    connected(account("one"), refresh_token=None, **ends_in(1))
    dead = connected(account("two"), **ends_in(1))
    with runtime.stores.database.writing() as session:
        connections.mark_dead(session, dead)
    assert renew() == 0
    assert sandbox.requests().total == 0


def test_a_grant_that_is_gone_is_noticed_and_the_others_are_renewed(renew, account, connected, row, sandbox):
    gone, good = connected(account("gone"), **ends_in(1)), connected(account("good"), **ends_in(2))
    sandbox.revoke("gone@example.com")
    assert renew() == 1
    assert (row(gone).alive, row(good).alive) == (False, True)


def test_a_token_endpoint_that_is_down_kills_nothing(renew, account, connected, row, sandbox):
    connection = connected(account("ada"), **ends_in(1))
    sandbox.fault(operation="google.token", status=503)
    assert renew() == 0
    assert row(connection).alive


def test_tokens_under_a_key_that_is_lost_do_not_stop_the_round(renew, account, connected, runtime):
    lost, good = connected(account("lost"), **ends_in(1)), connected(account("good"), **ends_in(2))
    with runtime.stores.database.writing() as session:
        rows = connections.sealed(session, [lost, good])
        rows[lost].sealed_access_token = rows[good].sealed_access_token
    assert renew() == 1
