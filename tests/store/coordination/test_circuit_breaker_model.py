"""Breakers do what a slow and obvious model does, and what pybreaker does where that can be compared."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import fakeredis
import pybreaker
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.coordination.provider_rate_limiter import WaitReason
from tests.store.breaking import ACCOUNTS, FAILURES, LEASE, PAUSE, START, Both

# Seconds for which the model waits for a probe.
YOUNG = 2.0


@dataclass
class State:
    """One breaker of the model: open when it has ``until``; ``probe`` is an account, and when it began."""

    failures: int = 0
    counted: bool = False
    until: float | None = None
    probe: tuple[str, float] | None = None


@dataclass
class Model:
    """What breakers are to do, with objects in the place of scripts."""

    provider: State = field(default_factory=State)
    of: dict[str, State] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    last_answer: float = 0.0

    def ask(self, account: str, now: float) -> str:
        own = self.of.get(account, State())
        concerned = [state for state in (self.provider, own) if state.until is not None]
        told = {self._told(state, account, now) for state in concerned}
        for word in ("open", "probed"):
            if word in told:
                return word
        for state in concerned:
            state.probe = account, now
        return "probe" if concerned else "go"

    def _told(self, state: State, account: str, now: float) -> str:
        assert state.until is not None
        if now < state.until:
            return "open"
        if state.probe is not None and now < state.probe[1] + LEASE:
            return "probed" if now < state.probe[1] + YOUNG else "open"
        patience = PAUSE if state is self.provider and account in self.failing else 0.0
        return "open" if now < state.until + patience else "probe"

    def fail(self, account: str, now: float, *, began: float, given_up: bool) -> None:
        own = self.of.setdefault(account, State())
        probed = [
            state
            for state in (self.provider, own)
            if state.probe is not None and state.probe[0] == account and now < state.probe[1] + LEASE
        ]
        if given_up or probed:
            own.failures += 1
            if self.last_answer <= began and not own.counted:
                own.counted = True
                self.failing.add(account)
            if own.until is None and own.failures >= FAILURES:
                own.until = now + PAUSE
            if self.provider.until is None and len(self.failing) >= ACCOUNTS:
                self.provider.until = now + PAUSE
        for state in probed:
            state.until, state.probe = now + PAUSE, None

    def answer(self, account: str, now: float) -> None:
        self.last_answer = now
        self.of.pop(account, None)
        if self.provider.until is None:
            self.failing.clear()
        elif self.provider.probe is not None and self.provider.probe[0] == account:
            for each in self.failing:
                self.of.pop(each, None)
            self.failing.clear()
            self.provider = State()

    def open_accounts(self) -> int:
        return sum(state.until is not None for state in self.of.values())


STEPS = st.lists(
    st.tuples(
        # Seconds that pass, about as long as a pause, a lease, or nothing.
        st.sampled_from([0.0, 0.0, 0.0, 1.0, 3.0, 7.0, 10.0, 11.0]),
        st.sampled_from(["ask", "ask", "fail", "fail", "try", "answer"]),
        st.sampled_from("abcde"),
        # Seconds that a call has taken when it fails.
        st.sampled_from([0.0, 0.0, 2.0, 8.0]),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_they_do_what_the_model_does(steps):
    both, model, now = Both(fakeredis.FakeRedis(), young=YOUNG), Model(), START
    for passed, deed, account, took in steps:
        now += passed
        match deed:
            case "ask":
                answer = both.ask(account, now=now)
                told = answer.why.value if answer.wait or answer.why is WaitReason.PROBE else "go"
                assert told == model.ask(account, now)
                assert bool(answer.wait) == (told in ("open", "probed"))
            case "answer":
                both.answer(account, now=now)
                model.answer(account, now)
            case _:
                both.fail(account, given_up=deed == "fail", took=took, now=now)
                model.fail(account, now, began=now - took, given_up=deed == "fail")
        standing = both.standing(now)
        assert standing.open == (model.provider.until is not None)
        assert standing.accounts == model.open_accounts()


class Clock(datetime):
    """What pybreaker takes for the time."""

    moment = datetime.fromtimestamp(START, UTC)

    @classmethod
    def now(cls, tz=None) -> datetime:
        return cls.moment


@given(steps=st.lists(st.tuples(st.sampled_from([0, 1, 5, 10, 11]), st.booleans()), max_size=25))
def test_one_account_after_another_call_is_treated_as_pybreaker_does(steps):
    """Where it can be compared: one caller at a time, who learns what came of a call before the next one."""
    both = Both(fakeredis.FakeRedis(), accounts=0)
    theirs = pybreaker.CircuitBreaker(fail_max=FAILURES, reset_timeout=PAUSE)
    elapsed = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pybreaker, "datetime", Clock)
        for passed, good in steps:
            elapsed += passed
            now = START + elapsed
            Clock.moment = datetime.fromtimestamp(START, UTC) + timedelta(seconds=elapsed)
            called = []

            def call(good: bool = good, called: list[bool] = called) -> None:
                called.append(good)
                if not good:
                    raise OSError

            with suppress(OSError, pybreaker.CircuitBreakerError):
                theirs.call(call)
            goes = not both.ask("ada", now=now).wait
            assert goes == bool(called)
            if goes and good:
                both.answer("ada")
            elif goes:
                both.fail("ada", now=now)
            open_ = theirs.current_state != pybreaker.STATE_CLOSED
            assert both.standing(now).accounts == open_
