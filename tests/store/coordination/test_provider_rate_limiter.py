"""The provider rate limiter: compared with a simple oracle, backoff for all workers, expiring leases."""

from __future__ import annotations

import secrets
import time

import fakeredis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.exceptions import ConnectionError

from store.coordination.circuit_breaker import Access
from store.coordination.provider_rate_limiter import (
    CALLS_AT_ONCE,
    GO,
    HORIZON,
    LEASES_KEPT,
    AcquireRequest,
    Limit,
    Permit,
    ProviderRateLimiter,
    WaitReason,
)
from store.stores import Stores

LOOSE = Limit(10**6, 60)


def limiter_of(redis, project: Limit = LOOSE, account: Limit = LOOSE) -> ProviderRateLimiter:
    return ProviderRateLimiter(
        redis, {"google": project, "microsoft": project}, {"google": account, "microsoft": account}
    )


def acquire(
    redis, limiter: ProviderRateLimiter, requests: list[AcquireRequest], *, left=60.0, lease=5.0, now=None
) -> list[Permit]:
    with redis.pipeline(transaction=False) as pipe:
        limiter.acquire(pipe, requests, left=left, lease_seconds=lease, now=now)
        (result,) = pipe.execute(raise_on_error=False)
    return limiter.permits(result, requests)


def google(account="ada", calls=1) -> AcquireRequest:
    return AcquireRequest("google", account, calls, None, "", Access.READS)


def mailbox(lease, *, mailbox="ada@contoso.example", calls=0) -> AcquireRequest:
    return AcquireRequest("microsoft", f"connection-{lease}", calls, mailbox, lease, Access.READS)


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
    paced = limiter_of(redis, project=Limit(limit, seconds))
    now, starts = 1_800_000_000_000, []
    for passed, count in steps:
        now += passed
        for answer in acquire(redis, paced, [google()] * count, now=now / 1000):
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
    paced = limiter_of(redis, account=Limit(limit, seconds))
    interval, room = 2000 * seconds / limit, limit / 2
    level, now = 0.0, 1_800_000_000_000
    for passed in steps:
        now += passed
        level = max(0.0, level - passed / interval)
        (answer,) = acquire(redis, paced, [google()], now=now / 1000)
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
    paced = limiter_of(redis, project=Limit(8, 3600), account=Limit(4, 3600))
    paced._projects = {unique_name: Limit(8, 3600)}
    paced._accounts = {unique_name: Limit(4, 3600)}

    def go(*accounts):
        requests = [AcquireRequest(unique_name, account, 1, None, "", Access.READS) for account in accounts]
        return [not each.wait for each in acquire(redis, paced, requests)]

    assert go("ada", "ada", "ada") == [True, True, False]
    assert go("bob", "bob", "cid") == [True, True, False]


def test_a_job_with_more_calls_than_the_limit_gets_a_permit():
    redis = fakeredis.FakeRedis()
    paced = limiter_of(redis, account=Limit(4, 10))
    assert acquire(redis, paced, [google(calls=50)]) == [GO]
    assert acquire(redis, paced, [google()])[0].wait > 0


def test_no_permit_is_reserved_beyond_the_deadline():
    redis = fakeredis.FakeRedis()
    paced = limiter_of(redis, account=Limit(10, 1))
    assert [each.paid for each in acquire(redis, paced, [google()] * 5)] == [True] * 5
    (refused,) = acquire(redis, paced, [google()], left=0.01)
    assert not refused.paid
    assert refused.wait > 0.01
    (given,) = acquire(redis, paced, [google()], left=1)
    assert given.paid
    assert given.wait <= 0.2


def test_a_job_whose_calls_are_counted_is_not_paced_again():
    redis = fakeredis.FakeRedis()
    paced = limiter_of(redis, account=Limit(4, 60))
    acquire(redis, paced, [google()] * 2)
    assert [each.wait > 0 for each in acquire(redis, paced, [google(calls=1), google(calls=0)])] == [
        True,
        False,
    ]


def test_a_mailbox_has_four_leases(redis, unique_name):
    paced = limiter_of(redis)
    requests = [mailbox(str(n), mailbox=unique_name) for n in range(7)]
    answers = acquire(redis, paced, requests)
    assert [each.wait == 0 for each in answers] == [True] * CALLS_AT_ONCE + [False] * 3
    assert {each.why for each in answers[CALLS_AT_ONCE:]} == {WaitReason.MAILBOX}
    with redis.pipeline(transaction=False) as pipe:
        for request in requests[:2]:
            paced.release(pipe, request)
        pipe.execute()
    assert [each.wait == 0 for each in acquire(redis, paced, requests[4:])] == [True, True, False]
    (other,) = acquire(redis, paced, [mailbox("x", mailbox=f"other-{unique_name}")])
    assert other == GO


def test_the_lease_of_a_dead_worker_expires(redis, unique_name):
    paced = limiter_of(redis)
    requests = [mailbox(str(n), mailbox=unique_name) for n in range(5)]
    assert [each.wait == 0 for each in acquire(redis, paced, requests[:4], lease=0.2)] == [True] * 4
    assert acquire(redis, paced, requests[4:])[0].wait > 0
    time.sleep(0.25)
    assert acquire(redis, paced, requests[4:]) == [GO]


def test_a_short_lease_does_not_end_a_long_one(redis, unique_name):
    paced = limiter_of(redis)
    requests = [mailbox(str(n), mailbox=unique_name) for n in range(5)]
    acquire(redis, paced, requests[:3], lease=30)
    acquire(redis, paced, requests[3:4], lease=0.05)
    time.sleep(0.1)
    assert redis.zcard(f"throttle:mailbox:{unique_name}") == 4
    assert acquire(redis, paced, requests[4:]) == [GO]
    assert acquire(redis, paced, [mailbox("last", mailbox=unique_name)])[0].why is WaitReason.MAILBOX


def test_a_named_time_holds_the_account_for_all_workers(redis, unique_name):
    paced = limiter_of(redis)
    assert paced.pause_calls("google", unique_name, 5.0) == pytest.approx(5.0, abs=0.1)
    again = limiter_of(redis)
    (held,) = acquire(redis, again, [google(unique_name)])
    assert (held.why, held.paid) == (WaitReason.NAMED, False)
    assert 4 < held.wait <= 5
    assert acquire(redis, again, [google(f"other-{unique_name}")]) == [GO]
    # A shorter hold later does not replace it.
    assert 4 < again.pause_calls("google", unique_name, 0.5) <= 5
    assert again.pause_calls("google", f"other-{unique_name}", 0.0) == 0


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
def test_a_shorter_hold_does_not_replace_a_longer_one(redis, unique_name, project, first, second, reason):
    limits = {unique_name: LOOSE}
    paced = ProviderRateLimiter(redis, limits, limits)
    paced.pause_calls(unique_name, "ada", 5.0, named=first, project=project)
    paced.pause_calls(unique_name, "ada", 0.05, named=second, project=project)
    scope = f"rate:{unique_name}" if project else f"rate:{unique_name}:ada"
    assert redis.pttl(scope) > 4_000

    (answer,) = acquire(redis, paced, [AcquireRequest(unique_name, "ada", 1, None, "", Access.READS)])

    assert (answer.why, answer.paid) == (reason, False)
    assert 4 < answer.wait <= 5


def test_a_backoff_holds_new_calls_but_not_retries(redis, unique_name):
    paced = limiter_of(redis)
    assert paced.pause_calls("google", unique_name, 5.0, named=False) == 0
    (held,) = acquire(redis, paced, [google(unique_name)])
    assert (held.why, held.wait > 4) == (WaitReason.BACKOFF, True)


def test_a_hold_of_the_project_holds_every_account():
    redis = fakeredis.FakeRedis()
    paced = limiter_of(redis)
    paced.pause_calls("google", "ada", 5.0, project=True)
    requests = [google("ada"), google("bob"), mailbox("1")]
    assert [each.wait > 0 for each in acquire(redis, paced, requests)] == [True, True, False]


def test_no_hold_is_longer_than_an_hour():
    redis = fakeredis.FakeRedis()
    assert limiter_of(redis).pause_calls("google", "ada", 1e9) == pytest.approx(3600, abs=1)


def test_everything_expires(redis, unique_name):
    paced = limiter_of(redis, account=Limit(600, 1))
    acquire(redis, paced, [google(unique_name)])
    paced.pause_calls("google", unique_name, 0.2)
    acquire(redis, paced, [mailbox("1", mailbox=unique_name)], lease=0.1)
    assert 0 < redis.pttl(f"rate:google:{unique_name}") <= 300
    assert 0 < redis.pttl(f"throttle:mailbox:{unique_name}") <= LEASES_KEPT


def test_calls_are_not_limited_when_the_script_fails(redis, unique_name, caplog):
    redis.set(f"rate:google:{unique_name}", "foreign", ex=60)
    assert acquire(redis, limiter_of(redis), [google(unique_name)]) == [GO]
    assert "calls are not limited" in caplog.text


def test_without_redis_nothing_is_held(stores: Stores, monkeypatch, caplog):
    def away(*_args, **_more):
        raise ConnectionError("away")

    monkeypatch.setattr(stores.redis, "evalsha", away)
    assert limiter_of(stores.redis).pause_calls("google", "ada", 5.0) == 0
    assert "ConnectionError" in caplog.text
