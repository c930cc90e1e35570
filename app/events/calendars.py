"""Lists the calendars of several accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.availability.failures import Failures, connection_failure
from app.availability.selection import precheck
from app.events import worker_calls
from providers.base import Calendar
from providers.scopes import Operation
from store.sql.queries.connection_rows import ConnectionRef
from workers.jobs import Reply, ShowCalendars
from workers.queues import Queue


@dataclass(frozen=True, slots=True)
class UserCalendarList:
    """The calendars of the accounts that could be read, sorted; and the accounts that could not be read."""

    calendars: list[Calendar]
    failures: Failures


def find(refs: Sequence[ConnectionRef]) -> UserCalendarList:
    """All calendars on the lists of the accounts."""
    precheck_failures = {
        ref.id: failed for ref in refs if (failed := precheck(ref, Operation.LIST_CALENDARS))
    }
    jobs = {ref.id: ShowCalendars(ref.id) for ref in refs if ref.id not in precheck_failures}
    replies = {each: Reply(failed=failed) for each, failed in precheck_failures.items()}
    replies |= worker_calls.gather(jobs, Queue.READS, deadline=worker_calls.deadline())
    failures = Failures(
        [connection_failure(ref, failed) for ref in refs if (failed := replies[ref.id].failed)],
        something_read=any(reply.failed is None for reply in replies.values()),
    )
    return UserCalendarList(
        sorted((each for ref in refs for each in replies[ref.id].calendars), key=sort_key), failures
    )


def sort_key(calendar: Calendar) -> tuple[str | int, ...]:
    """The sort key: Google's calendars first, in each account the main calendar first, then by name."""
    return calendar.provider, not calendar.primary, calendar.subject, calendar.id
