"""The provider rate limiter: compared with a simple oracle, backoff for all workers, expiring leases."""

from __future__ import annotations

import secrets
import time

import fakeredis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import ConnectionError

from store.coordination.provider_limits import (
    GO,
    Access,
    AcquireRequest,
    BreakerLimits,
    CallLimit,
    Circuit,
    Permit,
    ProviderLimits,
    WaitReason,
    record_key,
)
from store.stores import Stores

LOOSE = CallLimit(10**6, 60)
GOOGLE = Circuit("google", Access.READS)
CALLS_AT_ONCE = 4
# Milliseconds ahead for which a permit is reserved.
HORIZON = 500


def limits_of(redis, project: CallLimit = LOOSE, account: CallLimit = LOOSE, provider: str = "google"):
    projects, accounts = (dict.fromkeys((provider, "microsoft"), each) for each in (project, account))
    return ProviderLimits(redis, projects, accounts, BreakerLimits(0, 0, 0.0))


def acquire(
    limits: ProviderLimits, requests: list[AcquireRequest], *, left=60.0, lease=5.0, now=None
) -> list[Permit]:
    limits._clock = None if now is None else lambda: now
    return limits.acquire(requests, left=left, lease_seconds=lease)


def google(account="ada", calls=1, provider="google", access=Access.READS) -> AcquireRequest:
    return AcquireRequest(Circuit(provider, access), account, calls, None, "job")


def mailbox(job, *, mailbox="ada@contoso.example", calls=0) -> AcquireRequest:
    return AcquireRequest(Circuit("microsoft", Access.READS), f"connection-{job}", calls, mailbox, job)


@pytest.fixture
def unique_name() -> str:
    return secrets.token_hex(6)


@given(
    limit=st.integers(2, 12),
    seconds=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(0, 1500), st.integers(1, 3)), max_size=60),
)
def test_no_window_ever_has_more_than_the_limit(limit, seconds, steps):
    """``steps``: milliseconds that pass, and the number of requests then. A request begins after its wait."""
    redis = fakeredis.FakeRedis()
    paced = limits_of(redis, project=CallLimit(limit, seconds))
    now, starts = 1_800_000_000_000, []
    for passed, count in steps:
        now += passed
        for answer in acquire(paced, [google()] * count, now=now / 1000):
            if answer.paid:
                starts.append(now + answer.wait * 1000)
    for start in starts:
        # Waits are rounded up to a millisecond.
        assert sum(start <= other < start + seconds * 1000 - 1 for other in starts) <= limit


@given(
    limit=st.integers(2, 12),
    seconds=st.integers(1, 5),
    steps=st.lists(st.integers(0, 1500), max_size=60),
)
def test_a_call_that_the_bucket_has_room_for_gets_a_permit(limit, seconds, steps):
    """The oracle is a bucket of half the limit into which the other half drips over the window."""
    redis = fakeredis.FakeRedis()
    paced = limits_of(redis, account=CallLimit(limit, seconds))
    interval, room = 2000 * seconds / limit, limit / 2
    level, now = 0.0, 1_800_000_000_000
    for passed in steps:
        now += passed
        level = max(0.0, level - passed / interval)
        (answer,) = acquire(paced, [google()], now=now / 1000)
        over = (level + 1 - room) * interval
        if over <= 1e-3:
            assert answer.wait <= 0.001
        elif over <= HORIZON - 0.1:
            assert answer.paid
            assert abs(answer.wait * 1000 - over) < 1.01
        elif over >= HORIZON + 0.1:
            assert not answer.paid
        level += answer.paid


def test_one_limit_is_for_all_accounts_and_one_for_each(redis, unique_name):
    paced = limits_of(redis, project=CallLimit(8, 3600), account=CallLimit(4, 3600), provider=unique_name)

    def go(*accounts):
        requests = [google(account, provider=unique_name) for account in accounts]
        return [not each.wait for each in acquire(paced, requests)]

    assert go("ada", "ada", "ada") == [True, True, False]
    assert go("bob", "bob", "cid") == [True, True, False]


def test_a_job_with_more_calls_than_the_limit_gets_a_permit():
    redis = fakeredis.FakeRedis()
    paced = limits_of(redis, account=CallLimit(4, 10))
    assert acquire(paced, [google(calls=50)]) == [GO]
    assert acquire(paced, [google()])[0].wait > 0


def test_no_permit_is_reserved_beyond_the_deadline():
    redis = fakeredis.FakeRedis()
    paced = limits_of(redis, account=CallLimit(10, 1))
    assert [each.paid for each in acquire(paced, [google()] * 5)] == [True] * 5
    (refused,) = acquire(paced, [google()], left=0.01)
    assert not refused.paid
    assert refused.wait > 0.01
    (given,) = acquire(paced, [google()], left=1)
    assert given.paid
    assert given.wait <= 0.2


def test_a_job_whose_calls_are_counted_is_not_paced_again():
    redis = fakeredis.FakeRedis()
    paced = limits_of(redis, account=CallLimit(4, 60))
    acquire(paced, [google()] * 2)
    assert [each.wait > 0 for each in acquire(paced, [google(calls=1), google(calls=0)])] == [
        True,
        False,
    ]


def test_a_mailbox_has_four_leases(redis, unique_name):
    paced = limits_of(redis)
    requests = [mailbox(str(n), mailbox=unique_name) for n in range(7)]
    answers = acquire(paced, requests)
    assert [each.wait == 0 for each in answers] == [True] * CALLS_AT_ONCE + [False] * 3
    assert {each.why for each in answers[CALLS_AT_ONCE:]} == {WaitReason.MAILBOX}
    with redis.pipeline(transaction=False) as pipe:
        for request in requests[:2]:
            paced.release(pipe, request, probed=False)
        pipe.execute()
    assert [each.wait == 0 for each in acquire(paced, requests[4:])] == [True, True, False]
    (other,) = acquire(paced, [mailbox("x", mailbox=f"other-{unique_name}")])
    assert other == GO


def test_the_lease_of_a_dead_worker_expires(redis, unique_name):
    paced = limits_of(redis)
    requests = [mailbox(str(n), mailbox=unique_name) for n in range(5)]
    assert [each.wait == 0 for each in acquire(paced, requests[:4], lease=0.2)] == [True] * 4
    assert acquire(paced, requests[4:])[0].wait > 0
    time.sleep(0.25)
    assert acquire(paced, requests[4:]) == [GO]


def test_a_short_lease_does_not_end_a_long_one(redis, unique_name):
    paced = limits_of(redis)
    requests = [mailbox(str(n), mailbox=unique_name) for n in range(5)]
    acquire(paced, requests[:3], lease=30)
    acquire(paced, requests[3:4], lease=0.05)
    time.sleep(0.1)
    assert redis.zcard(f"throttle:mailbox:{unique_name}") == 4
    assert acquire(paced, requests[4:]) == [GO]
    assert acquire(paced, [mailbox("last", mailbox=unique_name)])[0].why is WaitReason.MAILBOX


@pytest.mark.parametrize("access", Access)
def test_a_named_time_holds_the_account_for_all_workers(redis, unique_name, access):
    paced = limits_of(redis)
    assert paced.throttled(GOOGLE, unique_name, 5.0, named=True) == pytest.approx(5.0, abs=0.1)
    again = limits_of(redis)
    (held,) = acquire(again, [google(unique_name, access=access)])
    assert (held.why, held.paid) == (WaitReason.NAMED, False)
    assert 4 < held.wait <= 5
    assert acquire(again, [google(f"other-{unique_name}")]) == [GO]
    # A shorter pause later does not replace it.
    assert 4 < again.throttled(GOOGLE, unique_name, 0.5, named=True) <= 5


@pytest.mark.parametrize("project", [False, True], ids=["account", "project"])
@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (True, True, WaitReason.NAMED),
        (True, False, WaitReason.NAMED),
        (False, True, WaitReason.BACKOFF),
        (False, False, WaitReason.BACKOFF),
    ],
    ids=["named, named", "named, guessed", "guessed, named", "guessed, guessed"],
)
def test_a_shorter_pause_does_not_replace_a_longer_one(redis, unique_name, project, first, second, reason):
    paced = limits_of(redis, provider=unique_name)
    circuit = Circuit(unique_name, Access.WRITES)
    paced.throttled(circuit, "ada", 5.0, named=first, project=project)
    paced.throttled(circuit, "ada", 0.05, named=second, project=project)
    assert redis.pttl(record_key(circuit, None if project else "ada")) > 4_000

    (answer,) = acquire(paced, [google(provider=unique_name)])

    assert (answer.why, answer.paid) == (reason, False)
    assert 4 < answer.wait <= 5


def test_a_backoff_holds_new_calls_but_not_retries(redis, unique_name):
    paced = limits_of(redis)
    assert paced.throttled(GOOGLE, unique_name, 5.0, named=False) == 0
    (held,) = acquire(paced, [google(unique_name)])
    assert (held.why, held.wait > 4) == (WaitReason.BACKOFF, True)


def test_a_pause_of_the_project_holds_every_account():
    redis = fakeredis.FakeRedis()
    paced = limits_of(redis)
    paced.throttled(GOOGLE, "ada", 5.0, named=True, project=True)
    requests = [google("ada"), google("bob"), google("ada", access=Access.WRITES), mailbox("1")]
    assert [each.wait > 0 for each in acquire(paced, requests)] == [True, True, True, False]
    # A retry of an account that is throttled itself waits for it too.
    assert 4 < paced.throttled(GOOGLE, "ada", 0.1, named=False) <= 5


def test_no_pause_is_longer_than_an_hour():
    redis = fakeredis.FakeRedis()
    assert limits_of(redis).throttled(GOOGLE, "ada", 1e9, named=True) == pytest.approx(3600, abs=1)


def test_a_retry_waits_for_the_time_that_another_call_was_named(redis, unique_name):
    paced = limits_of(redis)
    paced._breaker = BreakerLimits(9, 9, 1.0)
    paced.throttled(GOOGLE, unique_name, 5.0, named=True)
    assert 4 < paced.failed(GOOGLE, unique_name, given_up=False) <= 5


def test_an_answer_or_a_failure_ends_no_pause(redis, unique_name):
    """They belong to calls that began before it."""
    paced = limits_of(redis, provider=unique_name)
    paced._breaker = BreakerLimits(1, 1, 1.0)
    circuit = Circuit(unique_name, Access.READS)
    paced.throttled(circuit, "ada", 5.0, named=True)
    assert paced.failed(circuit, "ada", given_up=True) is None
    assert acquire(paced, [google(provider=unique_name)])[0].why is WaitReason.NAMED
    paced.answered(circuit, "ada")
    (held,) = acquire(paced, [google(provider=unique_name)])
    assert (held.why, held.wait > 4) == (WaitReason.NAMED, True)
    assert not paced.states([circuit])[circuit].open


def test_everything_expires(redis, unique_name):
    paced = limits_of(redis, account=CallLimit(6, 1))
    acquire(paced, [google(unique_name)])
    paced.throttled(GOOGLE, unique_name, 0.2, named=True)
    acquire(paced, [mailbox("1", mailbox=unique_name)], lease=0.1)
    for key in (f"pace:google:{unique_name}", record_key(GOOGLE, unique_name)):
        assert 0 < redis.pttl(key) <= 400
    assert 0 < redis.pttl(f"throttle:mailbox:{unique_name}") <= 600_000


def test_calls_are_not_limited_when_the_script_fails(redis, unique_name, caplog):
    redis.set(record_key(GOOGLE, unique_name), "foreign", ex=60)
    assert acquire(limits_of(redis), [google(unique_name)]) == [GO]
    assert "calls are not limited" in caplog.text


def test_without_redis_nothing_is_paused(stores: Stores, monkeypatch, caplog):
    def away(*_args, **_more):
        raise ConnectionError("away")

    monkeypatch.setattr(stores.redis, "evalsha", away)
    assert limits_of(stores.redis).throttled(GOOGLE, "ada", 5.0, named=True) == 0
    assert "ConnectionError" in caplog.text
