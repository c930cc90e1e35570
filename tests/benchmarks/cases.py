"""Questions to the engine with random calendars: the engine beside a plain sweep and beside two sorts."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np

from scheduling.intervals import Groups, Indexes
from scheduling.query import Query, Slots, slots
from scheduling.windows import DAY, MINUTE, Window
from tests.benchmarks.baseline import Pair, sweep
from tests.benchmarks.timing import Times, interleaved

START = 1_772_323_200_000  # 2026-03-01, a week before New York's clocks change
OFFICE = (Window.daily(540, 1020),)


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the calendars of some members, in the form each contender takes."""

    query: Query
    members: list[list[list[Pair]]]
    calendars: Groups
    member_of: Indexes

    @classmethod
    def random(cls, members: int, busy: int, days: int, overlaps: int) -> Case:
        """Meetings of 15 to 60 minutes at any minute, unordered; with overlaps over three calendars."""
        random = Random(f"{members} {busy} {days} {overlaps}")
        query = Query(
            start=START,
            end=START + days * DAY,
            duration=30 * MINUTE,
            padding_before=10 * MINUTE,
            padding_after=10 * MINUTE,
            max_overlaps=overlaps,
            zone="America/New_York",
            windows=OFFICE,
        )
        parts = 3 if overlaps else 1
        rows = [
            [[_meeting(random, days) for _ in range(part, busy, parts)] for part in range(parts)]
            for _ in range(members)
        ]
        flat = Groups.of(calendar for member in rows for calendar in member)
        return cls(query, rows, flat, np.repeat(np.arange(members), parts))

    def ask(self) -> Slots:
        return slots(self.query, self.calendars, self.member_of, len(self.members))

    def sweeps(self) -> list[list[int]]:
        """Each member's slots by the plain sweep, which takes the windows from the same cache."""
        within = self.query.open_intervals().pairs()
        return [sweep(self.query, member, within) for member in self.members]

    def times(self, rounds: int) -> Times:
        """Seconds of engine, sweep and sorts, after checking that engine and sweep agree."""
        expected = [(at, n) for n, starts in enumerate(self.sweeps()) for at in starts]
        found = self.ask()
        if list(zip(found.starts.tolist(), found.members.tolist(), strict=True)) != sorted(expected):
            raise AssertionError(f"engine and sweep disagree on {self.query}")
        starts, ends = self.calendars.starts, self.calendars.ends
        contenders = {
            "engine": self.ask,
            "sweep": self.sweeps,
            "sorts": lambda: (np.sort(starts), np.sort(ends)),
        }
        return interleaved(contenders, rounds)


def _meeting(random: Random, days: int) -> Pair:
    start = START + random.randrange(days * DAY // MINUTE) * MINUTE
    return start, start + random.randrange(15, 61) * MINUTE
