"""Bounds of what is read of one calendar, and the error of a calendar that cannot be read."""

from __future__ import annotations

import time
from dataclasses import dataclass

from providers.errors import ProviderError, Unavailable

# Steps between two looks at the clock.
_BETWEEN_LOOKS = 2_000


class InvalidCalendar(ProviderError):
    """The text is no calendar, or a part that may make time busy cannot be read. A retry does not help."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one calendar: its bytes, its components and their nesting.

    ``steps`` are those of the expansion of all series in a range, about one for each occurrence, and
    ``rule_steps`` those of one rule.
    """

    size: int = 10 * 1024 * 1024
    components: int = 50_000
    depth: int = 8
    steps: int = 1_000_000
    rule_steps: int = 100_000


class Budget:
    """The steps and the time that are left for one operation; ``deadline`` is of ``time.monotonic()``."""

    def __init__(self, limits: Limits, deadline: float) -> None:
        self._left = limits.steps
        self._rule_steps = limits.rule_steps
        # No limit outside of a rule.
        self._left_of_rule = limits.steps
        self._deadline = deadline
        self._next_look = self._left

    def begin_rule(self) -> None:
        """Begin the steps of another rule."""
        self._left_of_rule = self._rule_steps

    def spend(self, steps: int = 1) -> None:
        """Count steps.

        :raise InvalidCalendar: when more were made than the limits allow
        :raise Unavailable: when the deadline has passed
        """
        self._left -= steps
        self._left_of_rule -= steps
        if self._left < 0 or self._left_of_rule < 0:
            raise InvalidCalendar("The calendar has an event that recurs more often than is read")
        if self._left < self._next_look:
            self._next_look = self._left - _BETWEEN_LOOKS
            self.look()

    def look(self) -> None:
        """Check the deadline.

        :raise Unavailable: when it has passed
        """
        if time.monotonic() > self._deadline:
            raise Unavailable("The calendar could not be read in time")
