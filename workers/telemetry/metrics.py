"""Counts the calls that workers make for requests: reads of calendars, and writes of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from providers.base import Failed
from store.metrics.counters import Counters
from store.sql.queries.connection_rows import SealedConnection
from workers.jobs import CalendarRead, EventWrite, Job, Reply

# Other jobs concern a grant or a channel and are not counted.
_READS, _WRITES = get_args(CalendarRead), get_args(EventWrite)


def count_job(
    counters: Counters, job: Job, row: SealedConnection | None, reply: Reply, seconds: float
) -> None:
    """Count a finished job and its duration, which includes the refresh of its token and retries."""
    if row is not None and isinstance(job, _READS):
        counters.read(row.provider, seconds)
    elif row is not None and isinstance(job, _WRITES):
        counters.write(row.provider, seconds)
    count_failures(counters, job, row, _failures(reply))


def count_failures(
    counters: Counters, job: Job, row: SealedConnection | None, failures: Iterable[Failed]
) -> None:
    """Count the reasons of a failed job, each one once, however many calendars it concerns.

    An invalid event is a mistake of the API client and not counted as a failure of the provider.
    """
    if row is not None and isinstance(job, _READS + _WRITES):
        for reason in {each.reason for each in failures if each.problem is None}:
            counters.failure(row.provider, reason.value)


def _failures(reply: Reply) -> Iterator[Failed]:
    if reply.failed is not None:
        yield reply.failed
    for outcome in (*reply.outcomes.values(), *reply.events.values()):
        if isinstance(outcome, Failed):
            yield outcome
