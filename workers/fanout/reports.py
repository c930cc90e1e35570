"""Makes reports of the results of jobs, for the reporter of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from providers.base import Failed
from providers.errors import Reason
from store.cache.busy_cache import BusyRead, CalendarKey
from store.cache.calendar_lists import CalendarList
from store.coordination.provider_rate_limiter import AcquireRequest
from store.coordination.single_flight import Ended
from store.stores import Stores
from workers import failures
from workers.fanout.codec import numbered, pack_body, reply_list
from workers.fanout.reporter import Report
from workers.fanout.taken import FinishedJob, Request, TakenJob
from workers.jobs import ReadBusy, Reply
from workers.telemetry import metrics


def new(request: Request) -> Report:
    """An empty report."""
    return Report(reply_list(request.name))


def finished(request: Request, jobs: Sequence[FinishedJob]) -> tuple[Report, list[tuple[str, CalendarKey]]]:
    """The results of jobs, and the calendars that were read, each with its provider."""
    report, read = new(request), []
    for done in jobs:
        taken, reply = done.taken, done.reply
        read += _cache(report, done)
        report.released += permits(taken)
        elsewhere = reply.failed is not None and reply.failed.elsewhere
        if reply.whole() or (request.seconds_left and not elsewhere):
            _end(report, request, taken, done.body, reply)
        else:
            # Too little time, or this worker, may be the cause of the failure. Another job reads again.
            _end(report, request, taken)
        _reply(report, taken, done.body)
    return report, read


def failed(stores: Stores, request: Request, taken: TakenJob, failure: Failed) -> Report:
    """The failure of a job that was not begun."""
    if not failures.is_internal(failure):
        metrics.count_failures(stores.counters, taken.job, taken.row, [failure])
    report = new(request)
    report.released += permits(taken)
    reply = Reply(failed=failure)
    body = pack_body(reply)
    if failure.reason is Reason.RATE_LIMITED or not failure.called:
        # Jobs that wait for this read would get the same refusal, one after the other.
        _end(report, request, taken, body, reply, counts=False)
    else:
        # Another job reads: it may have more time, or the outage may be over.
        _end(report, request, taken)
    _reply(report, taken, body)
    return report


def answered(
    request: Request, jobs: Iterable[TakenJob], failure: Callable[[TakenJob], Failed], *, ends: bool = True
) -> Report:
    """Failures of jobs that continue for the cache alone. ``ends``: another job may read in the meantime."""
    report = new(request)
    for taken in jobs:
        _reply(report, taken, pack_body(Reply(failed=failure(taken))))
        if ends:
            _end(report, request, taken)
    return report


def recorded(request: Request, jobs: Iterable[tuple[TakenJob, bytes]]) -> Report:
    """The results of other jobs that have read the same."""
    report = new(request)
    for taken, body in jobs:
        _reply(report, taken, body)
    return report


def dropped(request: Request, jobs: Iterable[TakenJob]) -> Report:
    """The end of jobs that get no reply."""
    report = new(request)
    for taken in jobs:
        report.released += permits(taken)
        _end(report, request, taken)
    return report


def permits(taken: TakenJob) -> list[tuple[AcquireRequest, bool]]:
    """The permit of a job, to be released, and whether it was a probe."""
    if taken.acquire_request is None or not taken.permitted:
        return []
    released = (taken.acquire_request, taken.probes)
    taken.permitted = taken.probes = False
    return [released]


def _cache(report: Report, done: FinishedJob) -> list[tuple[str, CalendarKey]]:
    reply, job, taken = done.reply, done.taken.job, done.taken
    read: list[tuple[str, CalendarKey]] = []
    if reply.listed is not None and job.connection is not None:
        report.lists.append((job.connection, CalendarList(reply.read_at, reply.listed)))
    if isinstance(job, ReadBusy):
        for calendar, busy in reply.read():
            key = CalendarKey(job.connection, calendar)
            if taken.row is not None:
                read.append((taken.row.provider, key))
            generation = taken.generation or b""
            report.reads.append(BusyRead(key, busy, job.start, job.end, reply.read_at, generation))
    return read


def _end(
    report: Report,
    request: Request,
    taken: TakenJob,
    body: bytes = b"",
    reply: Reply | None = None,
    *,
    counts: bool = True,
) -> None:
    """End the read of a job that has its lock, with a result or without.

    ``counts``: a failure answers later requests too.
    """
    if taken.flight is not None:
        # Requests that follow the flight at a web server of an earlier release claim it again.
        report.stale_keys.append(f"flight:{taken.flight.rpartition(':')[0]}")
        taken.flight = None
    if taken.read is None or not taken.locked or request.terms is None:
        return
    ended = Ended(taken.read, taken.name, taken.locked, request.terms.sent)
    if reply is not None:
        repeatable = reply.failed_without_retry_time() and not failures.is_internal(reply.failed)
        lifetime = request.terms.lifetime(whole=reply.whole())
        ended = replace(ended, body=body, failed=counts and repeatable, lifetime=lifetime)
    report.ended.append(ended)
    taken.locked = ""


def _reply(report: Report, taken: TakenJob, body: bytes) -> None:
    if not taken.answered:
        report.replies.append(numbered(taken.number, body))
        taken.answered = True
