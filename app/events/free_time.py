"""Whether time of users is free, by a new read past the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from app.availability.failures import Failures
from app.availability.freshness import Freshness, now_ms
from app.availability.lookup import look_up
from app.availability.parameters import RangeTooLarge, not_before
from app.availability.selection import CalendarRequest
from app.http.authentication import Authentication
from app.http.error_codes import Code
from app.http.errors import ApiError, Conflict, Invalid
from app.http.provider_failures import most_telling
from app.services import services
from scheduling.intervals import Groups, Intervals, free_parts
from scheduling.json_render import timestamp
from scheduling.query import Query, free
from scheduling.windows import DAY, MINUTE
from store.sql.queries.holds import ActiveTime


class Overlap(NamedTuple):
    """A part of the wanted time in which a user is not free."""

    user: str
    starts: int
    ends: int


class Time(NamedTuple):
    """The time that a request wants, and what counts as free, as for slots; in milliseconds.

    Busy periods and held time count from ``padding_before`` before their start to ``padding_after`` after
    their end.
    """

    start: int
    end: int
    padding_before: int = 0
    padding_after: int = 0
    max_overlaps: int = 0
    not_before: int | None = None

    @classmethod
    def of(cls, start: int, end: int, options: Mapping[str, Any]) -> Time:
        """With the options of a request, which are in minutes.

        :raise ApiError: for time without length, or longer than a range may be
        """
        if start >= end:
            raise Invalid("end must be after start", param="end")
        longest = services().settings.max_range_days
        if end - start > longest * DAY:
            raise RangeTooLarge(f"The time from start to end must not be longer than {longest} days")
        padding = options["padding"]
        return cls(
            start,
            end,
            options.get("paddingBefore", padding) * MINUTE,
            options.get("paddingAfter", padding) * MINUTE,
            options["maxOverlaps"],
            not_before(options),
        )

    def query(self) -> Query:
        """The search for one slot, which is this time."""
        return Query(
            self.start,
            self.end,
            self.end - self.start,
            padding_before=self.padding_before,
            padding_after=self.padding_after,
            max_overlaps=self.max_overlaps,
            not_before=self.not_before,
        )

    def taken_by(self, user: str, held: Sequence[ActiveTime]) -> list[Overlap]:
        """The parts of this time that held time takes from a user, with the padding."""
        return [
            Overlap(
                user,
                max(self.start, each.starts - self.padding_before),
                min(self.end, each.ends + self.padding_after),
            )
            for each in held
        ]


def slot_taken(conflicts: Sequence[Overlap], sentence: str = "The time is taken") -> Conflict:
    """The error of a request whose time is taken; it shows when, and not by what."""
    shown = [
        {"userId": each.user, "start": timestamp(each.starts), "end": timestamp(each.ends)}
        for each in conflicts
    ]
    return Conflict(sentence, Code.SLOT_TAKEN, extra_fields={"conflicts": shown})


def busy(
    authentication: Authentication,
    calendar_requests: Mapping[str, CalendarRequest],
    time: Time,
    held: Mapping[str, Sequence[ActiveTime]] | None = None,
    known: Intervals | None = None,
) -> list[Overlap]:
    """The parts of the time in which each user is busy, by a new read of the calendars; empty if free.

    ``held`` is the held time of others that the caller found when it locked the time: each counts as one busy
    period.

    ``known`` are the busy periods of one more calendar of the only user.

    :raise ApiError: when a calendar of one of them could not be read
    """
    query = time.query()
    freshness = Freshness(newer_than=now_ms())
    users = list(calendar_requests)
    result = look_up(
        authentication, list(calendar_requests.values()), *query.busy_range(), freshness, with_held=False
    )
    failures = {users[n]: Failures.of(result, n) for n in sorted(result.failing())}
    if failures:
        raise unread(failures)
    if known is not None:
        assert result.user_count == 1, "a calendar of the only user"
        together = Groups.concat([result.busy, Groups.pack([known])])
        result = replace(result, busy=together, user_of=np.append(result.user_of, 0))
    # Of what is held, only what the caller found: the hold of the request itself does not count.
    of_others = {n: held[user] for n, user in enumerate(users) if held and user in held}
    free_time = free(query, *replace(result, held=of_others).of_users(np.arange(len(users))))
    whole = Intervals(np.array([time.start]), np.array([time.end]))
    return [
        Overlap(user, start, end)
        for n, user in enumerate(users)
        for start, end in free_parts(free_time.group(n), whole).pairs()
    ]


def unread(failures: Mapping[str, Failures]) -> ApiError:
    """The error for the most telling failure, which names the users that could not be read."""
    decisive = most_telling(each.failed for user_failures in failures.values() for each in user_failures)
    error = next(
        user_failures.error()
        for user_failures in failures.values()
        if any(each.failed is decisive for each in user_failures)
    )
    if "reason" in error.extra_fields:
        error.extra_fields["failedUsers"] = [
            user_failures.as_failed_user(user) for user, user_failures in failures.items()
        ]
    return error
