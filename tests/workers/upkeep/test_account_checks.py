"""Accounts that no request has read for a while are read by upkeep, and the others are not."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from sqlalchemy import delete

from store.cache.last_reads import LastRead
from store.coordination.provider_limits import Access, Circuit
from store.sql.models import OAuthConnection
from store.sql.queries import connections
from workers.upkeep import account_checks

HOUR = 3_600_000


@pytest.fixture
def check(runtime):
    """Check as the task does, without connections of other tests."""
    with runtime.stores.database.writing() as session:
        session.execute(delete(OAuthConnection))
    return lambda: account_checks.check(runtime, deadline=time.monotonic() + 60)


@pytest.fixture
def account(sandbox, unique):
    return lambda provider="google": sandbox.account(provider, f"{unique('check')}@example.com")


def test_a_worker_without_a_way_to_a_provider_reads_nothing(check, account, connected, runtime, monkeypatch):
    one = connected(account())
    monkeypatch.setattr(runtime.egress, "isolated", lambda provider: provider == "google")
    assert check() == 0
    assert runtime.stores.last_reads.load([one]) == {}
    assert runtime.stores.last_reads.missing() == 1


def read_at(runtime, connection, at):
    with runtime.stores.redis.pipeline(transaction=False) as pipe:
        runtime.stores.last_reads.note(pipe, [(connection, LastRead(at))])
        pipe.execute()


def now():
    return time.time_ns() // 1_000_000


def test_only_accounts_that_were_not_read_for_an_hour_are_read(check, account, connected, runtime, sandbox):
    never, old, recent, dead = (
        connected(account(each)) for each in ("google", "microsoft", "google", "google")
    )
    read_at(runtime, old, now() - HOUR - 1000)
    read_at(runtime, recent, now() - HOUR + 60_000)
    with runtime.stores.database.writing() as session:
        connections.mark_dead(session, dead, "the grant has ended")

    assert check() == 2
    assert runtime.stores.last_reads.missing() == 0
    reads = runtime.stores.last_reads.load([never, old, recent, dead])
    assert reads.keys() == {never, old, recent}
    assert all(reads[each].ok and now() - reads[each].at < 60_000 for each in (never, old))
    sandbox.forget_requests()
    # Where everything was read, a round makes no call.
    assert check() == 0
    assert sandbox.requests().total == 0


def test_a_failure_is_noted_with_its_begin_until_a_read_succeeds(check, account, connected, runtime, sandbox):
    failing, well = account(), account()
    ids = [connected(each) for each in (failing, well)]
    sandbox.fault(email=failing.email, status=403, reason="forbidden")
    began = now()
    assert check() == 2
    last_reads = runtime.stores.last_reads
    first, other = (last_reads.load(ids)[each] for each in ids)
    assert (first.ok, other.ok) == (False, True)
    assert began <= first.since <= now()
    assert ids[0] in last_reads.failing(100)

    sandbox.clear_faults()
    read_at(runtime, ids[0], now() - 2 * HOUR)
    last_reads.forget(ids)
    assert check() == 2
    assert last_reads.load(ids)[ids[0]].ok


def test_an_account_whose_calls_are_paused_is_left_alone(check, account, connected, runtime):
    connection = connected(account())
    circuit = Circuit("google", Access.READS)
    runtime.stores.provider_limits.throttled(circuit, connection, 30.0, named=True)
    assert check() == 0
    assert runtime.stores.last_reads.load([connection]) == {}


def test_zero_checks_nothing(check, account, connected, runtime, monkeypatch):
    connected(account())
    monkeypatch.setattr(runtime, "settings", replace(runtime.settings, account_check_seconds=0.0))
    assert check() == 0
