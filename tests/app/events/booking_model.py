"""A slow and obvious model of free time: the minutes of each mailbox, counted one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

# In minutes of a day.
Period = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Margin:
    """What counts as free: minutes before and after busy periods, and how many of them may overlap."""

    before: int = 0
    after: int = 0
    overlaps: int = 0

    def query(self) -> dict[str, int]:
        return {"paddingBefore": self.before, "paddingAfter": self.after, "maxOverlaps": self.overlaps}


@dataclass
class Mailbox:
    """The events of one main calendar, by id."""

    events: dict[str, Period] = field(default_factory=dict)

    def busy(self, but: str | None = None) -> list[Period]:
        """The events, except one. Events that overlap or touch are one busy period."""
        events = [period for event, period in self.events.items() if event != but]
        minutes = sorted({at for start, end in events for at in range(start, end)})
        found: list[Period] = []
        for at in minutes:
            if found and found[-1][1] == at:
                found[-1] = (found[-1][0], at + 1)
            else:
                found.append((at, at + 1))
        return found


@dataclass(frozen=True, slots=True)
class Held:
    """The time of a hold, and the mailboxes of its users, by name."""

    period: Period
    mailboxes: frozenset[str]


@dataclass
class Model:
    """``connected`` has the names of each user's mailboxes; ``holds`` are by id."""

    connected: dict[str, list[str]]
    mailboxes: dict[str, Mailbox] = field(default_factory=dict)
    holds: dict[str, Held] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mailboxes = {name: Mailbox() for names in self.connected.values() for name in names}

    def hold(self, hold: str, users: Collection[str], period: Period) -> None:
        names = frozenset(name for user in users for name in self.connected[user])
        self.holds[hold] = Held(period, names)

    def depth(self, user: str, at: int, margin: Margin, but: str | None = None) -> int:
        """How many busy periods cover a minute of a user; each hold of the user's mailboxes is one."""
        own = self.connected[user]
        periods = [period for name in own for period in self.mailboxes[name].busy(but)]
        periods += [held.period for held in self.holds.values() if held.mailboxes.intersection(own)]
        return sum(start - margin.before <= at < end + margin.after for start, end in periods)

    def is_free(self, user: str, period: Period, margin: Margin, but: str | None = None) -> bool:
        """Whether a user is free for the whole of a time; ``but`` is the event that is moved there."""
        return all(self.depth(user, at, margin, but) <= margin.overlaps for at in range(*period))

    def slots(self, user: str, period: Period, duration: int, margin: Margin) -> Iterator[Period]:
        """The slots of a user, cut from the start of each free stretch."""
        run = 0
        for at in range(*period):
            run = run + 1 if self.depth(user, at, margin) <= margin.overlaps else 0
            if run == duration:
                yield at + 1 - run, at + 1
                run = 0
