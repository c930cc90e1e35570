"""Answers from calendars, some of which may have been unreadable."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from almanac_client.errors import Incomplete
from almanac_client.records import FailedCalendar, FailedUser

T = TypeVar("T")


@dataclass(frozen=True, repr=False)
class Answer(Generic[T]):
    """The data of an answer, and the calendars and users that could not be read.

    ``data`` returns the complete answer, and raises ``Incomplete`` when something is missing: an unreadable
    calendar is never mistaken for a free one. ``partial`` returns what could be read; check
    ``failed_calendars`` and ``failed_users`` with it. ``age`` is that of the oldest provider data in it, in
    seconds.

    >>> answer = almanac.scheduling.organization("acme", start="2026-11-23", end="2026-11-24")
    >>> answer.data.available_slots       # of all members, or an error
    >>> answer.partial.available_slots    # of the members who could be read
    """

    partial: T
    failed_calendars: Sequence[FailedCalendar] = ()
    failed_users: Sequence[FailedUser] = ()
    age: int | None = None
    # True when the data itself reports failures, as an explanation does, so it counts as complete.
    accounted_for: bool = False

    @property
    def complete(self) -> bool:
        """Whether every calendar could be read."""
        return not self.failed_calendars and not self.failed_users

    @property
    def data(self) -> T:
        """The complete answer.

        :raise Incomplete: when a calendar could not be read
        """
        if self.complete or self.accounted_for:
            return self.partial
        raise Incomplete(self)

    def what_failed(self) -> str:
        """The failures and their reasons, as a sentence without its full stop; empty without failures."""
        if self.complete:
            return ""
        users = [f"{each.custom_id} ({each.message})" for each in self.failed_users]
        calendars = [
            f"{each.calendar_id} at {each.provider} ({each.message})" for each in self.failed_calendars
        ]
        return f"Could not be read: {', '.join([*users, *calendars])}"

    def __repr__(self) -> str:
        size = f" of {len(self.partial)}" if isinstance(self.partial, Sized) else ""
        if self.complete:
            return f"<Answer{size}, complete>"
        return f"<Answer{size}, INCOMPLETE. {self.what_failed()}>"
