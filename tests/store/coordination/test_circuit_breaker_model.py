"""Breakers do what a slow and obvious model does."""

from __future__ import annotations

from dataclasses import dataclass, field

import fakeredis
from hypothesis import given
from hypothesis import strategies as st

from store.coordination.provider_limits import WaitReason
from tests.store.breaking import ACCOUNTS, FAILURES, LEASE, PAUSE, START, Breakers


@dataclass
class State:
    """A breaker of the model: open since ``since``, until ``until`` if it is not probed for longer."""

    since: float | None = None
    until: float = 0.0
    probed: bool = False

    def refuses(self, now: float) -> bool:
        return self.since is not None and now < self.until

    def open(self, now: float) -> None:
        self.since = now if self.since is None else self.since
        self.until, self.probed = now + PAUSE, False


@dataclass
class Account(State):
    """The breaker of an account: ``failures`` in a row."""

    failures: int = 0


@dataclass
class Model:
    """The rules of the breakers, with objects in place of scripts."""

    provider: State = field(default_factory=State)
    accounts: dict[str, Account] = field(default_factory=dict)
    # The accounts that failed since the last answer.
    failing: set[str] = field(default_factory=set)
    last_answer: float = 0.0

    def acquire(self, account: str, now: float) -> str:
        both = [self.provider, self.accounts.get(account, Account())]
        if any(each.refuses(now) for each in both):
            return "open"
        opened = [each for each in both if each.since is not None]
        for each in opened:
            each.until, each.probed = now + LEASE, True
        return "probe" if opened else "go"

    def fail(self, account: str, now: float, *, began: float, given_up: bool) -> None:
        own = self.accounts.setdefault(account, Account())
        tested = [each for each in (self.provider, own) if each.probed and began >= each.since]
        if not given_up and not tested:
            return
        if self.last_answer <= began and own.since is None and self.provider.since is None:
            self.failing.add(account)
            if len(self.failing) >= ACCOUNTS:
                self.provider.open(now)
        own.failures += 1
        if own.since is None and own.failures >= FAILURES:
            own.open(now)
        for each in tested:
            each.open(now)

    def answer(self, account: str, now: float, *, began: float) -> None:
        self.last_answer = now
        self.failing.clear()
        if self.provider.since is not None and began >= self.provider.since:
            self.provider = State()
        own = self.accounts.get(account, Account())
        if own.since is None or began >= own.since:
            self.accounts.pop(account, None)

    def open_accounts(self) -> int:
        return sum(each.since is not None for each in self.accounts.values())


STEPS = st.lists(
    st.tuples(
        # Seconds that pass, about as long as a pause, a lease, or very little.
        st.sampled_from([0.001, 0.001, 0.001, 1.0, 3.0, 7.0, 10.0, 11.0]),
        st.sampled_from(["acquire", "acquire", "fail", "fail", "try", "answer"]),
        st.sampled_from("abcde"),
        # Seconds that a call has taken when it ends.
        st.sampled_from([0.0, 0.0, 2.0, 8.0]),
    ),
    max_size=60,
)


@given(steps=STEPS)
def test_they_do_what_the_model_does(steps):
    both, model, now = Breakers(fakeredis.FakeRedis()), Model(), START
    for passed, step, account, took in steps:
        now = round(now + passed, 3)
        # A process records an answer of an account without failures once a second.
        both.limits._recorded.clear()
        match step:
            case "acquire":
                (permit,) = both.acquire(account, now=now)
                outcome = permit.why.value if permit.wait or permit.why is WaitReason.PROBE else "go"
                assert outcome == model.acquire(account, now)
                assert bool(permit.wait) == (outcome == "open")
            case "answer":
                both.answer(account, took=took, now=now)
                model.answer(account, now, began=now - took)
            case _:
                both.fail(account, given_up=step == "fail", took=took, now=now)
                model.fail(account, now, began=now - took, given_up=step == "fail")
        state = both.state(now)
        assert state.open == (model.provider.since is not None)
        assert state.accounts == model.open_accounts()
