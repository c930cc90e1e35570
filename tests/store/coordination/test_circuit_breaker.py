"""Circuit breakers: when they open, how a probe closes them, and which failures do not count."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable

import fakeredis
import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from store.coordination import circuit_breaker
from store.coordination.circuit_breaker import Family
from store.coordination.provider_rate_limiter import ASK_AGAIN, WaitReason
from store.stores import Stores
from tests.store.breaking import FAILURES, LEASE, PAUSE, START, Both

# Seconds for which other jobs wait for a probe, in tests where it is less than the probe's lease.
YOUNG = 2.0


@pytest.fixture
def new(redis: Redis) -> Callable[..., Both]:
    """Breakers of a provider that no other test uses, on either Redis."""
    return lambda **changed: Both(redis, provider=f"provider-{secrets.token_hex(6)}", **changed)


def test_a_provider_opens_once_so_many_accounts_have_failed_and_says_so_once(new, caplog):
    both = new()
    assert [both.fail(each) for each in ("ada", "bob")] == [False, False]
    assert both.standing() == circuit_breaker.CircuitState()
    assert both.fail("cid")
    assert both.fail("dan")
    answer = both.ask("eve")
    assert answer.why is WaitReason.OPEN
    assert PAUSE - 5 < answer.wait <= PAUSE
    standing = both.standing()
    assert (standing.open, standing.probed, standing.accounts) == (True, False, 0)
    assert 0 <= standing.ago < 5
    assert PAUSE - 5 < standing.due <= PAUSE
    assert caplog.text.count("does not answer (busy), pause 10 s") == 1


def test_accounts_that_go_on_failing_while_others_are_answered_never_open_it(new):
    both = new(failures=0)
    for _ in range(5):
        for each in ("ada", "bob"):
            both.fail(each)
        both.answer("well")
    for each in ("ada", "bob", "cid", "dan"):
        assert not both.fail(each)
    assert not both.standing().open
    # One more account, which was answered before, fails, and no account is answered since.
    assert both.fail("well")


def test_an_answer_counts_from_when_it_was_given_and_not_from_when_it_was_told(new, monkeypatch):
    both = new(failures=0)
    both.circuit_breakers.answered(both.guarded, "well")
    later = time.monotonic() + 3
    monkeypatch.setattr(circuit_breaker.time, "monotonic", lambda: later)
    assert [both.fail(each, took=2) for each in "abc"] == [False, False, True]


def test_who_began_before_another_was_answered_stands_for_nobody_else(new):
    both, now = new(failures=0), START
    both.answer("well", now=now + 2)
    for each in "abcdef":
        assert not both.fail(each, took=5, now=now + 6)
    assert not both.standing(now).open
    # Their failures count when they are called again and no account is answered since.
    assert [both.fail(each, took=3, now=now + 9) for each in "abc"] == [False, False, True]


def test_many_failures_of_one_account_open_its_own_and_nobody_elses(new):
    both = new(accounts=2)
    assert [both.fail("ada") for _ in range(FAILURES + 1)] == [False, True, True]
    assert both.ask("ada").why is WaitReason.OPEN
    assert not both.ask("bob").wait
    assert both.standing() == circuit_breaker.CircuitState(accounts=1)


def test_a_call_that_is_to_be_made_again_does_not_count(new):
    both = new()
    for each in "abcdefgh" * 3:
        assert not both.fail(each, given_up=False)
    assert not both.ask("ada").wait


def test_of_all_who_ask_after_the_pause_one_probes_and_its_answer_closes(new):
    both = new(pause=0.0)
    for each in ("ada", "bob", "cid"):
        both.fail(each)
    asked = [both.ask(f"new-{n}") for n in range(5)]
    assert [each.why is WaitReason.PROBE for each in asked] == [True] + [False] * 4
    # The others are not refused: they can wait for the probe.
    assert all((each.why, each.wait) == (WaitReason.PROBED, ASK_AGAIN / 1000) for each in asked[1:])
    assert both.standing().probed
    # Another account's answer is from before the breaker opened.
    both.answer("dan")
    assert both.standing().open
    both.answer("new-0")
    assert both.standing() == circuit_breaker.CircuitState()
    assert not any(both.ask(each).wait for each in ("ada", "bob", "new-1"))
    # No failure is still counted.
    assert not both.redis.keys(f"breaker:{both.provider}*")


def test_who_asks_waits_for_a_probe_while_it_is_young_and_no_longer():
    both, now = Both(fakeredis.FakeRedis(), young=YOUNG), START
    for each in ("ada", "bob", "cid"):
        both.fail(each, now=now)
    began = now + PAUSE
    assert both.ask("dan", by="job", now=began).why is WaitReason.PROBE
    last = began + YOUNG - 0.1
    # Other jobs retry when the probe is no longer young, or earlier; so do accounts that have failed.
    for each, moment, wait in (("eve", began, ASK_AGAIN / 1000), ("eve", last, 0.1), ("ada", last, 0.1)):
        told = both.ask(each, now=moment)
        assert (told.why, round(told.wait, 3)) == (WaitReason.PROBED, wait)
    told = both.ask_all(["eve", "ada"], now=began + YOUNG)
    assert [(each.why, round(each.wait, 3)) for each in told] == [(WaitReason.OPEN, LEASE - YOUNG)] * 2
    # The probe continues, and the next probe is young again.
    assert both.ask("dan", by="job", now=began + YOUNG).why is WaitReason.PROBE
    both.leave("dan", "job")
    assert both.ask("eve", now=began + YOUNG).why is WaitReason.PROBE
    assert both.ask("fay", now=began + YOUNG).why is WaitReason.PROBED


def test_who_asks_while_a_probe_takes_too_long_is_refused_by_the_clock_of_redis(new):
    both = new(pause=0.0, young=0.0)
    for each in ("ada", "bob", "cid"):
        both.fail(each)
    asked = both.ask_all(["dan", "eve"], lease=60.0)
    assert [each.why for each in asked] == [WaitReason.PROBE, WaitReason.OPEN]
    assert 50 < asked[1].wait <= 60
    both.answer("dan")
    assert not both.ask("eve").wait


def test_a_probe_that_fails_begins_the_pause_anew_and_is_not_tried_again(new):
    both = new(pause=0.0)
    for each in ("ada", "bob", "cid"):
        both.fail(each)
    assert both.ask("dan").why is WaitReason.PROBE
    both.circuit_breakers.pause = 60.0
    assert both.fail("dan", given_up=False)
    assert both.standing().due > 50
    assert both.ask("eve").why is WaitReason.OPEN


def test_a_probe_keeps_its_turn_when_redis_is_asked_twice_and_loses_it_with_its_lease(new):
    both = new(pause=0.0)
    for each in ("ada", "bob", "cid"):
        both.fail(each)
    assert both.ask("dan", by="job").why is WaitReason.PROBE
    assert both.ask("dan", by="job").why is WaitReason.PROBE
    assert both.ask("eve").why is WaitReason.PROBED
    both.leave("dan", "somebody else's")
    assert both.ask("eve").why is WaitReason.PROBED
    # It had no occasion to call.
    both.leave("dan", "job")
    assert both.ask("eve", lease=0.0).why is WaitReason.PROBE
    # The next one died.
    assert both.ask("fay").why is WaitReason.PROBE


def test_who_has_failed_lets_others_probe_first():
    both, now = Both(fakeredis.FakeRedis()), START
    for each in ("ada", "bob", "cid"):
        both.fail(each, now=now)
    now += PAUSE
    assert both.ask("ada", now=now).wait == PAUSE
    assert both.ask("dan", by="job", now=now).why is WaitReason.PROBE
    both.leave("dan", "job")
    assert both.ask("ada", now=now + PAUSE).why is WaitReason.PROBE


def test_who_has_failed_waits_for_the_probe_of_another_even_one_that_asks_after_it():
    both, now = Both(fakeredis.FakeRedis()), START
    for each in ("ada", "bob", "cid"):
        both.fail(each, now=now)
    asked = both.ask_all(["ada", "dan", "bob", "eve"], now=now + PAUSE)
    assert [each.why for each in asked] == [
        WaitReason.PROBED,
        WaitReason.PROBE,
        WaitReason.PROBED,
        WaitReason.PROBED,
    ]
    both.fail("dan", now=now + PAUSE)
    asked = both.ask_all(["ada", "eve"], now=now + PAUSE)
    assert [(each.why, each.wait) for each in asked] == [(WaitReason.OPEN, PAUSE)] * 2


def test_an_answer_that_another_pipeline_carries_closes_with_the_end_of_its_probe(new):
    both = new(pause=0.0)
    for each in ("ada", "bob", "cid"):
        both.fail(each)
    assert both.ask("dan", by="job").why is WaitReason.PROBE
    both.circuit_breakers.probes(both.guarded, "dan")
    both.circuit_breakers.answered(both.guarded, "dan")
    with both.redis.pipeline(transaction=False) as late:
        both.circuit_breakers.tell(late)
        both.leave("dan", "job")
        assert not both.standing().open
        late.execute()
    assert both.standing() == circuit_breaker.CircuitState()


def test_a_probe_that_was_answered_and_then_failed_closes_nothing_at_its_end(new):
    both = new(pause=0.0, accounts=0, failures=1)
    both.fail("ada")
    assert both.ask("ada", by="job").why is WaitReason.PROBE
    both.circuit_breakers.probes(both.guarded, "ada")
    both.circuit_breakers.answered(both.guarded, "ada")
    assert both.fail("ada")
    both.leave("ada", "job")
    assert both.standing().accounts == 1


def test_one_family_of_calls_that_fails_opens_no_other(new):
    busy = new()
    events = Both(busy.redis, busy.provider, family=Family.EVENTS)
    for each in ("ada", "ada", "bob", "cid"):
        events.fail(each)
    assert [events.ask(each).why for each in ("ada", "dan")] == [WaitReason.OPEN] * 2
    assert not any(busy.ask(each).wait for each in ("ada", "dan"))
    # Nor does the answer to one close another.
    busy.answer("ada")
    assert events.standing().accounts == 1
    assert events.standing().open
    assert busy.standing() == circuit_breaker.CircuitState()


def test_accounts_that_nobody_asks_for_again_are_not_kept(new):
    both, now = new(accounts=0, failures=1), START
    both.fail("ada", now=now)
    both.fail("bob", now=now + circuit_breaker.REMEMBERED / 1000 + 1)
    kept = both.redis.zrange(f"{circuit_breaker.provider_key(both.guarded)}:open", 0, -1)
    assert kept == [circuit_breaker.account_key(both.guarded, "bob").encode()]


def test_switched_off_nothing_opens_and_nothing_is_kept(new):
    both = new(accounts=0, failures=0)
    for each in "abcdefgh" * 3:
        assert not both.fail(each)
    both.answer("a")
    assert not both.ask("a").wait
    assert not both.redis.keys(f"*:{both.provider}*")


def test_everything_is_forgotten_in_time(new):
    both = new()
    for each in ("ada", "ada", "bob", "cid"):
        both.fail(each)
    both.ask("dan")
    both.circuit_breakers.answered(circuit_breaker.CircuitKey(both.provider, Family.EVENTS), "ada")
    with both.redis.pipeline(transaction=False) as pipe:
        both.circuit_breakers.tell(pipe)
        pipe.execute()
    keys = both.redis.keys(f"*:{both.provider}*")
    assert len(keys) == 7
    assert all(0 < both.redis.pttl(key) <= circuit_breaker.REMEMBERED for key in keys)


@pytest.fixture
def cut_off(stores: Stores, monkeypatch) -> Both:
    """Breakers whose Redis is down until the test restores it."""
    both = Both(stores.redis, provider=f"provider-{secrets.token_hex(6)}")

    def away(*_args, **_more):
        raise ConnectionError("away")

    monkeypatch.setattr(stores.redis.connection_pool, "get_connection", away)
    return both


def test_what_happens_while_redis_is_away_opens_nothing_and_closes_nothing(cut_off, monkeypatch, caplog):
    cut_off.circuit_breakers.answered(cut_off.guarded, "ada")
    for each in ("ada", "bob", "cid", "dan"):
        assert not cut_off.fail(each)
    assert "ConnectionError" in caplog.text
    monkeypatch.undo()
    for each in ("ada", "bob"):
        cut_off.fail(each)
    with cut_off.redis.pipeline(transaction=False) as pipe:
        cut_off.circuit_breakers.tell(pipe)
        assert not pipe.command_stack
    assert cut_off.fail("cid")


def test_an_answer_that_was_long_noted_proves_nothing(stores, monkeypatch):
    both = Both(stores.redis, provider=f"provider-{secrets.token_hex(6)}")
    for each in ("ada", "bob"):
        both.fail(each)
    both.circuit_breakers.answered(both.guarded, "dan")
    monkeypatch.setattr(circuit_breaker, "STALE", -1.0)
    assert both.fail("cid")


def test_what_was_answered_before_a_failure_is_told_before_it(new):
    both = new()
    for each in ("ada", "bob"):
        both.fail(each)
    both.circuit_breakers.answered(both.guarded, "dan")
    assert not both.fail("cid")
    assert not both.standing().open


def test_a_redis_that_came_back_empty_asks_everybody(new, caplog):
    caplog.set_level(logging.INFO)
    both = new()
    for each in ("ada", "ada", "bob", "cid"):
        both.fail(each)
    assert both.ask("dan").why is WaitReason.OPEN
    both.redis.delete(*both.redis.keys(f"breaker:{both.provider}*"))
    # The answer of a probe that Redis has forgotten.
    both.answer("eve")
    assert not any(both.ask(each).wait for each in ("ada", "dan"))
