"""Answers about calendars, of which some may not have been readable."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from almanac_client.errors import Incomplete
from almanac_client.records import FailedCalendar, FailedUser

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Answer(Generic[T]):
    """What was read, and what could not be.

    ``data`` is the whole answer, and raises ``Incomplete`` when there is none: nobody is taken for free by
    oversight. ``partial`` is what there is, for those who have looked at ``failed_calendars`` and
    ``failed_users``. ``age`` is that of the oldest reading in it, in seconds.

    >>> answer = almanac.scheduling.organization("acme", start="2026-11-23", end="2026-11-24")
    >>> answer.data["availableSlots"]       # of everybody, or an error
    >>> answer.partial["availableSlots"]    # of those who could be read
    """

    partial: T
    failed_calendars: Sequence[FailedCalendar] = ()
    failed_users: Sequence[FailedUser] = ()
    age: int | None = None
    # What failed is part of what is told, as in an explanation: nothing is lacking.
    accounted_for: bool = False

    @property
    def complete(self) -> bool:
        """Whether everything could be read."""
        return not self.failed_calendars and not self.failed_users

    @property
    def data(self) -> T:
        """The whole answer.

        :raise Incomplete: when something could not be read
        """
        if self.complete or self.accounted_for:
            return self.partial
        raise Incomplete(self)

    def what_failed(self) -> str:
        """What could not be read and why, as a sentence without its full stop; empty when everything was."""
        if self.complete:
            return ""
        users = [f"{each['customId']} ({each['message']})" for each in self.failed_users]
        calendars = [
            f"{each['calendarId']} at {each['provider']} ({each['message']})"
            for each in self.failed_calendars
        ]
        return f"Could not be read: {', '.join([*users, *calendars])}"

    def __repr__(self) -> str:
        size = f" of {len(self.partial)}" if isinstance(self.partial, Sized) else ""
        if self.complete:
            return f"<Answer{size}, complete>"
        return f"<Answer{size}, INCOMPLETE. {self.what_failed()}>"
