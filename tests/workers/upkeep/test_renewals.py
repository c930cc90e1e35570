"""Tokens that expire soon are renewed in advance; expired idempotency keys are deleted."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier, BoundedSemaphore, Lock

import pytest
from sqlalchemy import delete, select

from store.coordination.locks import MARGIN, hold
from store.sql.models import ApiKey, AuditRecord, IdempotencyKey, OAuthConnection
from store.sql.queries import api_keys, audit, connections
from workers.process import RENEWAL_SECONDS
from workers.runtime import UPKEEP_THREADS
from workers.upkeep import batches, renewals


@contextmanager
def all_threads_held(runtime):
    """Hold every thread for upkeep."""
    held = 0
    while runtime.upkeep.acquire(blocking=False):
        held += 1
    try:
        yield held
    finally:
        if held:
            runtime.upkeep.release(held)


def all_threads_free(runtime):
    """Whether every thread for upkeep can be taken."""
    with all_threads_held(runtime) as held:
        return held == max(1, min(UPKEEP_THREADS, runtime.settings.reads_in_flight // 2))


@pytest.fixture
def renew(runtime):
    """Renew as the task does, without connections of other tests."""
    with runtime.stores.database.writing() as session:
        session.execute(delete(OAuthConnection))
    return lambda *, seconds=60.0: renewals.renew_tokens(runtime, deadline=time.monotonic() + seconds)


@pytest.fixture
def account(sandbox):
    """Create an account of either provider."""
    return lambda name, provider="google": sandbox.account(provider, f"{name}@example.com")


class Inside:
    """Counts concurrent calls; ``most`` is the peak."""

    def __init__(self):
        self.most = self._now = 0
        self._lock = Lock()

    def counting(self, call, meet):
        """``call``, counted, with ``meet`` called inside before it."""

        def counted(*arguments):
            with self._lock:
                self._now += 1
                self.most = max(self.most, self._now)
            try:
                meet()
                return call(*arguments)
            finally:
                with self._lock:
                    self._now -= 1

        return counted


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
        connections.mark_dead(session, dead, "the grant has ended")
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
        rows = {each: session.get_one(OAuthConnection, each) for each in (lost, good)}
        rows[lost].sealed_access_token = rows[good].sealed_access_token
    assert renew() == 1


def test_a_token_that_expired_long_ago_is_left_to_the_next_request(
    renew, account, connected, opened, sandbox
):
    old, late = account("old"), account("late")
    ids = [connected(old, **ends_in(-61)), connected(late, **ends_in(-59))]
    assert renew() == 1
    assert opened(ids[0]).tokens.access_token == old.access_token
    assert opened(ids[1]).tokens.access_token != late.access_token


def test_a_provider_that_is_not_configured_is_passed_over(
    renew, account, connected, opened, runtime, sandbox
):
    ada, eve = account("ada"), account("eve", "microsoft")
    ids = [connected(each, **ends_in(1)) for each in (ada, eve)]
    nobody = replace(runtime.settings.providers, google_client_id="")
    runtime.settings = replace(runtime.settings, providers=nobody)
    assert renew() == 1
    assert opened(ids[0]).tokens.access_token == ada.access_token
    assert sandbox.requests().by_operation == {"microsoft.token": 1}


def test_renewals_run_in_parallel(renew, account, connected, runtime, monkeypatch):
    for n in range(8):
        connected(account(f"user-{n}"), **ends_in(1))
    inside = Inside()
    # No call returns before four are in progress: sequential renewals would break the barrier.
    monkeypatch.setattr(renewals, "_renew", inside.counting(renewals._renew, Barrier(4, timeout=30).wait))
    assert renew() == 8
    assert inside.most == 4
    assert all_threads_free(runtime)


def test_a_round_takes_no_more_threads_than_it_may(renew, account, connected, monkeypatch):
    monkeypatch.setattr(batches, "AT_ONCE", 2)
    for n in range(6):
        connected(account(f"user-{n}"), **ends_in(1))
    inside = Inside()
    monkeypatch.setattr(renewals, "_renew", inside.counting(renewals._renew, Barrier(2, timeout=30).wait))
    assert renew() == 6
    assert inside.most == 2


def test_failed_renewals_come_after_untried_ones(renew, account, connected, opened, monkeypatch, runtime):
    monkeypatch.setattr(renewals, "MAX_RENEWALS", 2)
    for n in range(2):
        gone = connected(account(f"broken-{n}"), **ends_in(-10))
        with runtime.stores.database.writing() as session:
            session.get_one(OAuthConnection, gone).sealed_access_token = b"lost"
    fresh = [connected(account(f"fresh-{n}"), **ends_in(5)) for n in range(2)]
    before = [opened(each).tokens.access_token for each in fresh]
    assert renew() == 2
    assert all(opened(i).tokens.access_token != old for i, old in zip(fresh, before, strict=True))


def test_no_renewal_begins_too_late_to_finish(renew, account, connected, sandbox, runtime):
    connected(account("ada"), **ends_in(1))
    assert renew(seconds=batches.SECONDS_FOR_EACH - 1) == 0
    assert sandbox.requests().total == 0
    assert all_threads_free(runtime)


def test_a_round_without_a_free_thread_ends_in_time(renew, account, connected, runtime, sandbox):
    connected(account("ada"), **ends_in(1))
    with all_threads_held(runtime):
        began = time.monotonic()
        assert renew(seconds=batches.SECONDS_FOR_EACH + 0.3) == 0
        # Not when the run ends, ten seconds later: a renewal started then would not have its full time.
        assert time.monotonic() - began < batches.SECONDS_FOR_EACH
    assert renew() == 1


def test_a_round_waits_for_room(renew, account, connected, runtime):
    connected(account("ada"), **ends_in(1))
    runtime.upkeep = BoundedSemaphore(1)
    assert runtime.upkeep.acquire()
    assert renew(seconds=batches.SECONDS_FOR_EACH + 0.3) == 0
    with ThreadPoolExecutor(1) as threads:
        renewed = threads.submit(renew)
        runtime.upkeep.release()
        assert renewed.result(30) == 1
    assert runtime.upkeep.acquire(blocking=False)


def test_two_rounds_do_not_overlap(renew, account, connected, runtime, sandbox):
    connected(account("ada"), **ends_in(1))
    with hold(runtime.stores.redis, "round:renew_tokens", deadline=time.monotonic() + 60):
        assert renew() == 0
    assert sandbox.requests().total == 0
    assert renew() == 1


def test_a_renewal_that_breaks_on_our_side_does_not_stop_the_round(
    renew, account, connected, runtime, monkeypatch
):
    broken = connected(account("broken"), **ends_in(2))
    connected(account("good"), **ends_in(1))
    renewing = renewals._renew

    def breaking(runtime, row):
        if row.id == broken:
            raise RuntimeError("broken")
        return renewing(runtime, row)

    monkeypatch.setattr(renewals, "_renew", breaking)
    assert renew() == 1
    assert all_threads_free(runtime)


def test_a_round_that_dies_does_not_cost_the_next_one():
    assert renewals.ROUND_SECONDS + MARGIN < RENEWAL_SECONDS


def test_keys_that_are_over_are_purged_in_batches_and_the_others_stay(runtime, monkeypatch):
    monkeypatch.setattr("workers.upkeep.batches.PURGED_AT_ONCE", 3)
    now = datetime.now(UTC)
    with runtime.stores.database.writing() as session:
        session.execute(delete(IdempotencyKey))
        api_keys.create(session, prefix="alm_", name="purge")
        caller = session.scalars(select(ApiKey.id).where(ApiKey.name == "purge")).one()
        ends = {f"over-{n}": now - timedelta(seconds=1 + n) for n in range(7)} | {
            "lasting": now + timedelta(minutes=1)
        }
        session.add_all(
            IdempotencyKey(api_key_id=caller, digest=name, fingerprint="x", expires_at=end)
            for name, end in ends.items()
        )
    assert renewals.purge_idempotency_keys(runtime) == 7
    with runtime.stores.database.reading() as session:
        assert session.scalars(select(IdempotencyKey.digest)).all() == ["lasting"]
    assert renewals.purge_idempotency_keys(runtime) == 0


def test_audit_records_are_deleted_after_the_days_of_the_setting(runtime):
    old = datetime.now(UTC) - timedelta(days=41)
    with runtime.stores.database.writing() as session:
        for number in range(3):
            session.add(AuditRecord(actor="ops", action="x", subject=f"old {number}", created_at=old))
        audit.record(session, actor="ops", action="x", subject="new")
    assert renewals.purge_audit_records(runtime) == 0

    runtime.settings = replace(runtime.settings, audit_days=40)

    assert renewals.purge_audit_records(runtime) == 3
    with runtime.stores.database.reading() as session:
        assert not [row for row in audit.page(session) if row.subject.startswith("old ")]
        assert "new" in {row.subject for row in audit.page(session)}
