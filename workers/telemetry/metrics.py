"""What is counted of the calls that workers make for requests: reads of calendars, and writes of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from providers.base import Failed
from store.metrics.counters import Counters
from store.sql.queries.connections import SealedConnection
from workers.fanout.jobs import CalendarRead, EventWrite, Job, Reply

# Whatever else is asked of a provider concerns a grant or a channel, and no calendar.
_READS, _WRITES = get_args(CalendarRead), get_args(EventWrite)


def done(activity: Counters, job: Job, row: SealedConnection | None, reply: Reply, seconds: float) -> None:
    """Count a job that took so long, with the refresh of its token and all that was sent again."""
    if row is not None and isinstance(job, _READS):
        activity.read(row.provider, seconds)
    elif row is not None and isinstance(job, _WRITES):
        activity.write(row.provider, seconds)
    failed(activity, job, row, _failures(reply))


def failed(activity: Counters, job: Job, row: SealedConnection | None, failures: Iterable[Failed]) -> None:
    """Count why a job has failed, each reason once, however many calendars it concerns.

    What is wrong with an event is its writer's affair and no failure of the provider.
    """
    if row is not None and isinstance(job, _READS + _WRITES):
        for reason in {each.reason for each in failures if each.problem is None}:
            activity.failure(row.provider, reason.value)


def _failures(reply: Reply) -> Iterator[Failed]:
    if reply.failed is not None:
        yield reply.failed
    for outcome in (*reply.outcomes.values(), *reply.events.values()):
        if isinstance(outcome, Failed):
            yield outcome
