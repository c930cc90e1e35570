"""Circuit breakers: when they open, refuse, probe and close, and what a process records."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from store.coordination.provider_limits import (
    GO,
    Access,
    CircuitState,
    WaitReason,
    open_accounts,
    record_key,
)
from store.stores import Stores
from tests.store.breaking import LEASE, PAUSE, START, Breakers


@pytest.fixture
def new(redis: Redis) -> Callable[..., Breakers]:
    """Breakers of a provider that no other test uses, on either Redis."""
    return lambda **changed: Breakers(redis, provider=f"provider-{secrets.token_hex(6)}", **changed)


def play(both: Breakers, history: str) -> None:
    """Steps, one a second: ``a!`` fails, ``a~`` fails and is retried, ``a-5`` fails after so long, ``a+``."""
    for second, step in enumerate(history.split()):
        account, outcome, now = step[0], step[1:], START + second
        if outcome == "+":
            both.answer(account, now=now)
        else:
            both.fail(account, given_up=outcome != "~", took=float(outcome[1:] or 0), now=now)


@pytest.mark.parametrize(
    ("history", "open_", "accounts"),
    [
        ("a! b!", False, 0),
        ("a! b! c!", True, 0),
        # An account counts once, and opens its own breaker.
        ("a! a! a! b!", False, 1),
        ("a~ b~ c~ a~ a~ a~ d~", False, 0),
        # Answers in between.
        ("a! b! z+ c! d!", False, 0),
        ("a! b! z+ c! d! e!", True, 0),
        ("a! a+ a!", False, 0),
        # Calls that began before an answer: a few accounts that hang fail last.
        ("z+ a-5 b-5 c-5 d-5", False, 0),
        ("z+ a-1 b-1 c-1 d-1 e-1", True, 0),
        # Accounts whose own breakers are open.
        ("a! a! b! b! z+ a! b! c! d!", False, 2),
        ("a! a! b! b! z+ a! b! c! d! e!", True, 2),
    ],
)
def test_which_failures_open_the_breakers(new, history, open_, accounts):
    both = new()
    play(both, history)
    state = both.state(START + 9)
    assert (state.open, state.accounts) == (open_, accounts)


@pytest.fixture
def opened(new) -> Callable[..., Breakers]:
    """The same with a provider's breaker that opened at ``START``."""

    def make(**changed) -> Breakers:
        both = new(**changed)
        for each in "abc":
            both.fail(each, now=START)
        return both

    return make


DUE = START + PAUSE


def refusals(both: Breakers, *accounts: str, now: float) -> list[float | None]:
    """The wait of each account that is refused; None for others."""
    permits = both.acquire(*accounts, now=now)
    return [round(each.wait, 3) if each.why is WaitReason.OPEN else None for each in permits]


PROBING = 1.0
REMEMBERED = 3600


def fails(both: Breakers) -> None:
    both.fail("d", given_up=False, now=DUE + 1)


def answers(both: Breakers) -> None:
    both.answer("d", now=DUE + 1)


def another_answers(both: Breakers) -> None:
    both.answer("e", took=PAUSE + 2, now=DUE + 1)


def another_fails_that_began_before(both: Breakers) -> None:
    both.fail("e", given_up=False, took=PAUSE + 2, now=DUE + 1)


def ends(both: Breakers) -> None:
    both.end_probe("d", "job")


def another_ends(both: Breakers) -> None:
    both.end_probe("d", "another job")


def answers_too_late(both: Breakers) -> None:
    both.answer("d", took=LEASE, now=DUE + LEASE)


@pytest.mark.parametrize(
    ("event", "now", "expected"),
    [
        # It refuses at once, for a second or for what is left of the lease.
        (None, DUE + 1, [PROBING, PROBING]),
        (None, DUE + LEASE - 0.5, [0.5, 0.5]),
        # The probe died: there is a next one.
        (None, DUE + LEASE, [None, PROBING]),
        # A probe that fails is not retried, and the breaker is open for another pause.
        (fails, DUE + 1, [PAUSE, PAUSE]),
        (fails, DUE + 1 + PAUSE, [None, PROBING]),
        (answers, DUE + 1, [None, None]),
        (another_answers, DUE + 2, [PROBING, PROBING]),
        (another_fails_that_began_before, DUE + 2, [PROBING, PROBING]),
        (ends, DUE + 1, [None, PROBING]),
        (another_ends, DUE + 1, [PROBING, PROBING]),
        # It is an answer to a call that began after the breaker had opened.
        (answers_too_late, DUE + LEASE, [None, None]),
    ],
)
def test_what_others_get_while_a_provider_is_probed_and_afterwards(opened, event, now, expected):
    both = opened()
    assert refusals(both, "d", now=DUE - 1) == [1.0]
    (permit,) = both.acquire("d", job="job", now=DUE)
    assert (permit.wait, permit.why) == (0.0, WaitReason.PROBE)
    # The Redis client repeats a request whose reply was lost.
    assert both.acquire("d", job="job", now=DUE)[0].why is WaitReason.PROBE
    if event:
        event(both)
    assert refusals(both, "f", "g", now=now) == expected


def test_of_several_jobs_in_one_batch_one_probes(opened):
    permits = opened().acquire("d", "e", "a", now=DUE)
    assert [each.why for each in permits] == [WaitReason.PROBE, WaitReason.OPEN, WaitReason.OPEN]


def test_open_breaker_of_one_account_refuses_only_that_account(new):
    both = new()
    play(both, "a! a!")
    assert refusals(both, "a", "b", now=START + 2) == [PAUSE - 1, None]
    assert refusals(both, "a", now=START + 1 + PAUSE) == [None]
    assert both.state(START + 12).accounts == 1
    both.answer("a", now=START + 12)
    assert both.state(START + 12) == CircuitState()


@pytest.mark.parametrize("leased", [False, True])
def test_a_probe_of_an_account_that_ends_without_a_result_leaves_its_turn_to_another(new, leased):
    both, due = new(), START + 1 + PAUSE
    both.mailbox = both.provider if leased else None
    play(both, "a! a!")
    (permit,) = both.acquire("a", job="job", now=due)
    assert permit.why is WaitReason.PROBE
    both.end_probe("a", "job")
    assert refusals(both, "a", now=due) == [None]


def test_the_state_of_a_breaker_and_its_log(opened, caplog):
    both = opened()
    assert both.state(START + 4) == CircuitState(open=True, ago=4.0, due=PAUSE - 4)
    assert both.fail("d", now=START + 5)
    both.acquire("d", now=DUE)
    assert both.state(DUE) == CircuitState(open=True, ago=PAUSE, probed=True)
    assert caplog.text.count("does not answer (reads), pause 10 s") == 1


def test_by_the_clock_of_redis(new):
    both = new(pause=0.0)
    for each in "abc":
        both.fail(each)
    state = both.state()
    assert state.open
    assert state.ago < 5
    assert both.acquire("d")[0].why is WaitReason.PROBE
    assert both.acquire("e")[0].why is WaitReason.OPEN
    both.answer("d")
    assert not any(each.wait for each in both.acquire("a", "e"))
    assert both.state() == CircuitState()


def test_writes_that_fail_open_no_breaker_of_reads(new):
    reads = new()
    writes = Breakers(reads.redis, reads.provider, access=Access.WRITES)
    for each in ("a", "a", "b", "c"):
        writes.fail(each)
    assert [each.why for each in writes.acquire("a", "d")] == [WaitReason.OPEN] * 2
    assert not any(each.wait for each in reads.acquire("a", "d"))
    reads.answer("a")
    assert writes.state().accounts == 1
    assert reads.state() == CircuitState()


def test_switched_off_nothing_opens_and_nothing_is_kept(new):
    both = new(accounts=0, failures=0)
    for each in "abcdefgh" * 3:
        assert not both.fail(each)
    both.answer("a")
    assert not both.acquire("a")[0].wait
    assert not both.redis.keys(f"*:{both.provider}*")


@pytest.mark.parametrize(("accounts", "failures", "open_"), [(0, 2, False), (2, 0, True)])
def test_either_breaker_can_be_switched_off(new, accounts, failures, open_):
    both = new(accounts=accounts, failures=failures)
    play(both, "a! a! b! b!")
    state = both.state(START + 3)
    assert (state.open, state.accounts) == (open_, 0 if open_ else 2)


def test_everything_expires(new):
    both = new()
    for each in ("a", "a", "b", "c"):
        both.fail(each)
    both.acquire("d")
    both.answer("d")
    keys = both.redis.keys(f"*:{both.provider}*")
    assert len(keys) == 6
    assert all(0 < both.redis.pttl(key) <= REMEMBERED * 1000 for key in keys)


def test_open_accounts_are_not_counted_for_longer_than_they_are_kept(new):
    both = new(accounts=0, failures=1)
    both.fail("a", now=START)
    later = START + REMEMBERED + 1
    both.fail("b", now=later)
    assert both.state(later).accounts == 1
    assert both.redis.zcard(open_accounts(both.circuit)) == 1


class Counting:
    """Counts the scripts that a process runs."""

    def __init__(self, redis: Redis, monkeypatch) -> None:
        self.count = 0
        for name in ("evalsha", "eval"):
            monkeypatch.setattr(redis, name, self._counted(getattr(redis, name)))

    def _counted(self, run):
        def counted(*args):
            result = run(*args)
            self.count += 1
            return result

        return counted


def test_a_success_is_recorded_once_a_second_or_when_it_matters(new, monkeypatch):
    both = new()
    counting = Counting(both.redis, monkeypatch)
    for n in range(20):
        both.answer(f"account-{n}", now=START + n / 10)
    assert counting.count == 2
    both.fail("a", now=START + 2)
    both.answer("b", now=START + 2.1)
    both.answer("a", now=START + 2.2)
    both.answer("a", now=START + 2.3)
    # The failure, the time of an answer, and the success of the account that had failed.
    assert counting.count == 5


def test_a_process_learns_of_an_accounts_failures_with_its_permit(new):
    here = new()
    there = Breakers(here.redis, here.provider)
    here.fail("a")
    there.answer("z")
    # Not known to this process, and too soon after the last record.
    there.answer("a")
    assert here.redis.exists(record_key(here.circuit, "a"))
    assert there.acquire("a")[0] == GO
    there.answer("a")
    assert not here.redis.exists(record_key(here.circuit, "a"))


def test_unrecorded_answer_counts_against_own_failures(new):
    both = new()
    both.answer("z", now=START)
    both.answer("z", now=START + 0.9)
    for each in "abcd":
        both.fail(each, took=0.5, now=START + 1)
    assert not both.state(START + 1).open


@pytest.fixture
def cut_off(stores: Stores, monkeypatch) -> Breakers:
    """Breakers whose Redis is down until the test restores it."""
    both = Breakers(stores.redis, provider=f"provider-{secrets.token_hex(6)}")

    def away(*_args, **_more):
        raise ConnectionError("away")

    monkeypatch.setattr(stores.redis.connection_pool, "get_connection", away)
    return both


def test_what_happens_while_redis_is_down_opens_and_closes_nothing(cut_off, monkeypatch, caplog):
    cut_off.answer("a")
    for each in "abcd":
        assert not cut_off.fail(each)
    assert caplog.text.count("ConnectionError") == 5
    monkeypatch.undo()
    for each in "ab":
        cut_off.fail(each)
    assert not cut_off.state().open
    assert cut_off.fail("c")


def test_a_redis_that_came_back_empty_lets_all_call(opened):
    both = opened()
    both.acquire("d", now=DUE)
    both.redis.delete(*both.redis.keys(f"pause:{both.provider}*"))
    # The answer of a probe that Redis has forgotten.
    both.answer("d", now=DUE)
    assert refusals(both, "a", "d", now=DUE) == [None, None]
