"""The true busy times: notes every change when it is made, and what an answer may still show after it.

One client owns each person, so that nothing of a person changes while their answer is on its way. Two people
who share a mailbox have the same ``Calendar``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from providers.sandbox.client import SandboxAccount

Period = tuple[int, int]
State = frozenset[Period]

MINUTE = 60_000
HOUR = 60 * MINUTE
# Thursday 2026-12-03, where a week of the cache begins: each request then needs one bucket of a calendar.
START = 1_796_256_000_000
END = START + 7 * 24 * HOUR


@dataclass
class Calendar:
    """The main calendar of an account.

    ``events`` are the existing ones, by id. ``earlier`` are the states that a cache may still show, each
    with the moment from which it is wrong.
    """

    account: SandboxAccount
    events: dict[str, Period] = field(default_factory=dict)
    earlier: list[tuple[float, State]] = field(default_factory=list)
    # Until then a write with an unclear answer may still succeed.
    in_doubt: float = 0.0

    @property
    def now(self) -> State:
        return frozenset(self.events.values())

    def changed_elsewhere(self, before: State, patience: float) -> None:
        """Note a change outside the service: it may show the earlier state for ``patience`` seconds."""
        self.earlier.append((time.monotonic() + patience, before))

    def written(self) -> None:
        """After the service's own write, or a fresh read, only the current state is right."""
        self.earlier.clear()

    def states(self, asked_at: float) -> list[State]:
        """The states that an answer to a request of that moment may show, the current one first."""
        self.earlier = [each for each in self.earlier if each[0] > asked_at]
        return list(dict.fromkeys([self.now, *(state for _, state in reversed(self.earlier))]))


@dataclass
class Person:
    """A user with one account, or with one of each provider."""

    user: str
    calendars: list[Calendar]

    def in_doubt(self) -> bool:
        return any(each.in_doubt > 0 for each in self.calendars)


def combinations(calendars: Sequence[Calendar], asked_at: float) -> Iterator[tuple[State, ...]]:
    """Every combination of the states of several calendars."""
    return itertools.product(*(each.states(asked_at) for each in calendars))


def merged(periods: Sequence[Period] | State, start: int, end: int) -> list[Period]:
    """The union, within a range: minute by minute, which is easy to verify."""
    minutes = sorted({at for a, b in periods for at in range(max(a, start), min(b, end), MINUTE)})
    found: list[Period] = []
    for at in minutes:
        if found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + MINUTE)
        else:
            found.append((at, at + MINUTE))
    return found


@dataclass(frozen=True)
class Question:
    """The parameters of slots; all in milliseconds, windows in minutes of the UTC day."""

    start: int
    end: int
    duration: int
    padding: int
    overlaps: int
    window: tuple[int, int] | None

    def query(self) -> dict[str, str]:
        """As a client writes it."""
        asked = {
            "start": text(self.start),
            "end": text(self.end),
            "slotDuration": str(self.duration // MINUTE),
            "padding": str(self.padding // MINUTE),
            "maxOverlaps": str(self.overlaps),
        }
        if self.window is not None:
            asked["earliestTimeEachDay"], asked["latestTimeEachDay"] = (
                f"{at // 60:02}:{at % 60:02}" for at in self.window
            )
        return asked

    def slots(self, calendars: Sequence[State], held: Sequence[Period] = ()) -> list[Period]:
        """The slots of one person, found by checking and counting each minute; each hold counts."""
        depth = dict.fromkeys(range(self.start, self.end, MINUTE), 0)
        periods = [
            *(
                each
                for state in calendars
                for each in merged(state, self.start - 2 * HOUR, self.end + 2 * HOUR)
            ),
            *held,
        ]
        for a, b in periods:
            for at in range(max(a - self.padding, self.start), min(b + self.padding, self.end), MINUTE):
                depth[at] += 1
        found: list[Period] = []
        run = 0
        for at, count in depth.items():
            run = run + MINUTE if count <= self.overlaps and self._allowed(at) else 0
            if run == self.duration:
                found.append((at + MINUTE - run, at + MINUTE))
                run = 0
        return found

    def _allowed(self, at: int) -> bool:
        if self.window is None:
            return True
        return self.window[0] <= at // MINUTE % 1440 < self.window[1]


@dataclass(frozen=True)
class Held:
    """A hold of people with these calendars; it expires at that moment, or a little earlier or later."""

    period: Period
    calendars: Sequence[Calendar]
    expires_at: float

    def counts_for(self, person: Person) -> bool:
        """Whether the hold takes time of a person, also when it was taken for another user of the mailbox."""
        return any(own is each for own in person.calendars for each in self.calendars)


# How exactly a client knows when a hold expires, in seconds.
EXACT = 2.0


@dataclass
class Circle:
    """The people of one client, and their holds by id."""

    people: Sequence[Person]
    held: dict[str, Held] = field(default_factory=dict)

    def is_sure(self, person: Person, patience: float) -> bool:
        """Whether everything is known that a request of ``patience`` seconds may find of a person."""
        now = time.monotonic()
        self.held = {hold: each for hold, each in self.held.items() if now < each.expires_at + EXACT}
        soon = now + patience + EXACT
        expiring = any(each.counts_for(person) and each.expires_at < soon for each in self.held.values())
        return not expiring and not person.in_doubt()

    def held_of(self, person: Person) -> list[Period]:
        return [each.period for each in self.held.values() if each.counts_for(person)]

    def is_free(self, person: Person, wanted: Question, but: str | None = None) -> bool:
        """Whether a person is free for the whole of a time; ``but`` is the event that is moved there."""
        states = [
            frozenset(period for event, period in each.events.items() if event != but)
            for each in person.calendars
        ]
        return bool(wanted.slots(states, self.held_of(person)))


def text(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at // 1000))
