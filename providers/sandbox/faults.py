"""Faults and latency on demand: which posted fault applies to a call, and its effect.

A fault applies to calls that match all its fields. Of several, the most specific one answers (a calendar is
more specific than an address, then an operation, then a provider; then the latest wins), and the most
specific one with latency delays. So a general latency and one account's status combine.

A part of a ``$batch`` is affected by faults that name its operation or its calendar; all others affect the
whole batch. The parts of an application's batch belong to different mailboxes, so faults that name an address
affect them too. Google's freeBusy reports single calendars inside a 200: a fault that names a calendar
becomes that calendar's error there, unless it names the operation and a status.

A delayed call reads or writes before it waits, so its answer may be outdated when it arrives. The same holds
for a fault with a body and no status: the answer to a write is damaged, but the write was executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# "pending": Google answers as if it were still creating the event's meeting. "lost" and "doubled" are for
# notifications, see ``channels``.
Body = Literal["truncated", "reset", "html", "pending", "lost", "doubled"]


@dataclass(eq=False)
class Fault:
    """One posted fault; ``times`` is how often it still applies, None without limit."""

    provider: str | None = None
    email: str | None = None
    calendar: str | None = None
    operation: str | None = None
    status: int | None = None
    reason: str | None = None
    retry_after: float | None = None
    latency: float = 0.0
    body: Body | None = None
    # A kind of ``wild.KINDS``.
    wild: str | None = None
    times: int | None = None

    @property
    def answers(self) -> bool:
        """Whether it changes the answer; otherwise it only delays it."""
        return any(each is not None for each in (self.status, self.reason, self.body, self.wild))

    @property
    def weight(self) -> int:
        """How specific it is."""
        return (
            8 * (self.calendar is not None)
            + 4 * (self.email is not None)
            + 2 * (self.operation is not None)
            + (self.provider is not None)
        )

    def fits(self, place: Place) -> bool:
        """Whether it applies to this call."""
        return (
            self.provider in (None, place.provider)
            and self.operation in (None, place.operation)
            and (self.email is None or self.email.lower() == place.email.lower())
            and (self.calendar is None or self.calendar in place.calendars)
            and (not place.part or self.names_a_part(place))
        )

    def names_a_part(self, place: Place) -> bool:
        """Whether it applies to parts of a batch, and not to the whole."""
        return (
            self.operation is not None
            or self.calendar is not None
            or (self.email is not None and place.mailbox)
        )

    @property
    def speaks_of_one_calendar(self) -> bool:
        """Whether Google's freeBusy reports it inside a 200."""
        whole = self.operation is not None and self.status is not None
        damaged = self.body is not None or self.wild is not None
        return self.calendar is not None and self.answers and not whole and not damaged

    def use(self) -> None:
        """Count one use."""
        if self.times is not None:
            self.times -= 1


@dataclass(frozen=True, slots=True)
class Place:
    """Attributes of a call: ``calendars`` are all names of its calendars, ``part`` is one of a ``$batch``."""

    provider: str
    operation: str
    email: str = ""
    calendars: frozenset[str] = frozenset()
    part: bool = False
    # The path, and not the token, names the mailbox.
    mailbox: bool = False
    # The answer reports errors of single calendars inside a 200.
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """The effect of faults on a call: the fault that answers, and a delay in seconds."""

    fault: Fault | None = None
    delay: float = 0.0


UNHARMED = Hit()


class Faults:
    """The active faults."""

    def __init__(self) -> None:
        self.posted: list[Fault] = []
        # Number of calls, parts of batches and single calendars that faults applied to.
        self.struck = 0

    def __bool__(self) -> bool:
        return bool(self.posted)

    def post(self, fault: Fault) -> None:
        """Activate a fault."""
        self.posted.insert(0, fault)
        self.posted.sort(key=lambda known: -known.weight)

    def clear(self) -> None:
        """Deactivate all faults."""
        self.posted.clear()

    def strike(self, place: Place) -> Hit:
        """The faults of this call as a whole; uses up one of the ``times`` of each."""
        if not self.posted:
            return UNHARMED
        fitting = list(self._fitting(place))
        fault = next(
            (f for f in fitting if f.answers and not (place.inside and f.speaks_of_one_calendar)), None
        )
        slow = next((f for f in fitting if f.latency), None)
        if fault is not None:
            fault.use()
        if slow is not None and slow is not fault and not (place.inside and slow.speaks_of_one_calendar):
            slow.use()
        if fault is not None or slow is not None:
            self.struck += 1
        return Hit(fault, slow.latency if slow else 0.0)

    def strike_calendar(self, place: Place) -> Fault | None:
        """The fault of one calendar, reported inside a 200."""
        for fault in self._fitting(place):
            if fault.speaks_of_one_calendar:
                fault.use()
                self.struck += 1
                return fault
        return None

    def _fitting(self, place: Place) -> Iterator[Fault]:
        return (fault for fault in self.posted if fault.times != 0 and fault.fits(place))
