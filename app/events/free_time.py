"""Whether time of users is free, by a new read past the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.availability.failures import Failures
from app.availability.freshness import Freshness, now_ms
from app.availability.lookup import look_up
from app.availability.parameters import RangeTooLarge
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
from store.sql.queries.holds import Overlap


class Time(NamedTuple):
    """The time that a request wants, and what counts as free; in milliseconds."""

    start: int
    end: int
    padding: int = 0
    max_overlaps: int = 0

    @classmethod
    def of(cls, start: int, end: int, options: Mapping[str, int]) -> Time:
        """With the options of a request, which are in minutes.

        :raise ApiError: for time without length, or longer than a range may be
        """
        if start >= end:
            raise Invalid("end must be after start", param="end")
        longest = services().settings.max_range_days
        if end - start > longest * DAY:
            raise RangeTooLarge(f"The time from start to end must not be longer than {longest} days")
        return cls(start, end, options["padding"] * MINUTE, options["maxOverlaps"])

    def query(self) -> Query:
        """The search for one slot, which is this time."""
        return Query(
            self.start,
            self.end,
            self.end - self.start,
            padding_before=self.padding,
            padding_after=self.padding,
            max_overlaps=self.max_overlaps,
        )

    def taken_by(self, overlaps: Sequence[Overlap]) -> list[Overlap]:
        """The parts of this time that held time takes, with the padding."""
        return [
            Overlap(
                each.user,
                max(self.start, each.starts - self.padding),
                min(self.end, each.ends + self.padding),
            )
            for each in overlaps
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
    known: Intervals | None = None,
) -> list[Overlap]:
    """The parts of the time in which the calendars of each user are busy, read from now on; empty if free.

    ``known`` are the busy periods of one more calendar of the only user.

    :raise ApiError: when a calendar of one of them could not be read
    """
    query = time.query()
    freshness = Freshness(newer_than=now_ms())
    users = list(calendar_requests)
    result = look_up(authentication, list(calendar_requests.values()), *query.busy_range(), freshness)
    failures = {users[n]: Failures.of(result, n) for n in sorted(result.failing())}
    if failures:
        raise _unread(failures)
    if known is not None:
        assert result.user_count == 1, "a calendar of the only user"
        together = Groups.concat([result.busy, Groups.pack([known])])
        result = replace(result, busy=together, user_of=np.append(result.user_of, 0))
    # Without held time: the caller has locked the time in the database.
    free_time = free(query, result.busy, result.user_of, result.user_count)
    whole = Intervals(np.array([time.start]), np.array([time.end]))
    return [
        Overlap(user, start, end)
        for n, user in enumerate(users)
        for start, end in free_parts(free_time.group(n), whole).pairs()
    ]


def _unread(failures: Mapping[str, Failures]) -> ApiError:
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
