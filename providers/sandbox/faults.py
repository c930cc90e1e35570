"""Faults and latency on demand: which of those posted strikes a call, and how.

A fault strikes the calls that fit everything it names. Of several, the most specific answers (a calendar
says more than an address, that more than an operation, that more than a provider; then the latest), and the
most specific with latency delays; so a general latency and one account's status go together.

A part of a ``$batch`` is struck by faults that name its operation or its calendar; all others strike the
batch as a whole. Google's freeBusy speaks of single calendars inside a 200: a fault that names a calendar
becomes that calendar's error there, unless it names the operation and a status.

A delayed call has read or written before it waits: what it tells may be old when it arrives. So has a call
whose fault has a body and no status: the answer to a write is spoilt, and the write was done.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# "pending": Google answers as if it were still making the event's meeting. "lost" and "doubled" are for
# notifications, see ``channels``.
Body = Literal["truncated", "reset", "html", "pending", "lost", "doubled"]


@dataclass(eq=False)
class Fault:
    """One fault as it was posted; ``times`` is what is left of it, None without end."""

    provider: str | None = None
    email: str | None = None
    calendar: str | None = None
    operation: str | None = None
    status: int | None = None
    reason: str | None = None
    retry_after: float | None = None
    latency: float = 0.0
    body: Body | None = None
    times: int | None = None

    @property
    def answers(self) -> bool:
        """Whether it changes the answer, or only delays it."""
        return self.status is not None or self.reason is not None or self.body is not None

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
        """Whether it strikes this call."""
        return (
            self.provider in (None, place.provider)
            and self.operation in (None, place.operation)
            and (self.email is None or self.email.lower() == place.email.lower())
            and (self.calendar is None or self.calendar in place.calendars)
            and (not place.part or self.operation is not None or self.calendar is not None)
        )

    @property
    def speaks_of_one_calendar(self) -> bool:
        """Whether Google's freeBusy tells it inside a 200."""
        whole = self.operation is not None and self.status is not None
        return self.calendar is not None and self.answers and not whole and self.body is None

    def use(self) -> None:
        """Count one strike."""
        if self.times is not None:
            self.times -= 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call is: ``calendars`` are all names of those it touches, ``part`` is one of a ``$batch``."""

    provider: str
    operation: str
    email: str = ""
    calendars: frozenset[str] = frozenset()
    part: bool = False
    # Errors of one calendar are told inside the answer.
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """What strikes a call: the fault that answers, and a delay in seconds."""

    fault: Fault | None = None
    delay: float = 0.0


UNHARMED = Hit()


class Faults:
    """The faults in force."""

    def __init__(self) -> None:
        self.posted: list[Fault] = []
        # Calls, parts of batches and single calendars that were struck.
        self.struck = 0

    def __bool__(self) -> bool:
        return bool(self.posted)

    def post(self, fault: Fault) -> None:
        """Put a fault in force."""
        self.posted.insert(0, fault)
        self.posted.sort(key=lambda known: -known.weight)

    def clear(self) -> None:
        """Lift all."""
        self.posted.clear()

    def strike(self, place: Place) -> Hit:
        """What happens to this call as a whole; uses up one of the ``times`` of what strikes."""
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
        """The fault of one calendar that is told inside a 200."""
        for fault in self._fitting(place):
            if fault.speaks_of_one_calendar:
                fault.use()
                self.struck += 1
                return fault
        return None

    def _fitting(self, place: Place) -> Iterator[Fault]:
        return (fault for fault in self.posted if fault.times != 0 and fault.fits(place))
