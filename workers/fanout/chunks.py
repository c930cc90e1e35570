"""Prepares the jobs of a chunk together: one statement for their connections, one script each for locks and
permits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from providers.base import Failed
from providers.errors import Reason
from store.coordination.provider_limits import AcquireRequest, Permit, WaitReason
from store.coordination.single_flight import Locked, ReadLock, Recorded, SharedRead, Waiting, Wanted
from store.sql.queries import connection_rows
from workers.execution import call_policy, reads
from workers.failures import BROKEN
from workers.fanout import reports
from workers.fanout.codec import DecodeError, addresses, pack_reply, read_digest, unpack_jobs
from workers.fanout.reports import Report
from workers.fanout.work import FanoutRequest, TakenJob, Work, divide_waiting, separate, without_probes
from workers.jobs import ReadBusy, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Seconds for which a lease outlasts the last moment of its call.
LEASE_MARGIN = 1.0

GONE = Failed(Reason.NOT_FOUND, "The connection was removed")


@dataclass(slots=True)
class Admitted:
    """The jobs of a chunk by what they do next.

    ``ready`` jobs may begin. Each of ``waiting`` tries again at its moment. ``following`` jobs wait for the
    read of another job, and ``recorded`` ones have its encoded result.
    """

    ready: list[Work] = field(default_factory=list)
    waiting: list[tuple[float, Work]] = field(default_factory=list)
    following: list[tuple[ReadLock, TakenJob]] = field(default_factory=list)
    recorded: list[tuple[TakenJob, bytes]] = field(default_factory=list)
    failed: list[tuple[TakenJob, Failed]] = field(default_factory=list)


def decode(request: FanoutRequest, messages: Sequence[bytes]) -> tuple[list[Work], Report]:
    """The jobs in elements of the list, and failures for jobs that this version cannot decode."""
    works: list[Work] = []
    rejected = reports.new(request)
    for data in messages:
        try:
            packed = unpack_jobs(data)
        except DecodeError:
            log.exception("a job cannot be decoded")
            rejected.replies += [pack_reply(each.number, Reply(failed=BROKEN)) for each in addresses(data)]
            continue
        work = []
        for each in packed:
            taken = TakenJob(each.number, each.job, f"{request.name}:{each.number}", flight=each.flight)
            if request.terms is not None and each.job.connection is not None:
                taken.read = SharedRead(each.job.connection, read_digest(each.job))
            work.append(taken)
        works.append(work)
    return works, rejected


def load(runtime: Runtime, jobs: Sequence[TakenJob]) -> None:
    """Load the connections of these jobs in one statement; they say which permits the jobs need."""
    ids = {each.job.connection for each in jobs if each.job.connection is not None}
    if not ids:
        return
    with runtime.stores.database.engine.connect() as connection:
        rows = connection_rows.sealed(connection, ids)
    for each in jobs:
        each.row = rows.get(each.job.connection or "")
        if each.row is not None:
            each.permit.request = call_policy.acquire_request(each.job, each.row, each.name)


def admit(runtime: Runtime, request: FanoutRequest, works: Sequence[Work]) -> Admitted:
    """Take the locks of these jobs, begin their reads in the cache, and acquire their permits."""
    admitted = Admitted()
    present = [[each for each in work if not _is_gone(each, admitted)] for work in works]
    own = _take_locks(runtime, request, [work for work in present if work], admitted)
    _begin_reads(runtime, [each for work in own for each in work])
    _acquire(runtime, request, own, admitted)
    return admitted


def _is_gone(taken: TakenJob, admitted: Admitted) -> bool:
    if taken.job.connection is None or taken.row is not None:
        return False
    admitted.failed.append((taken, GONE))
    return True


def _take_locks(
    runtime: Runtime, request: FanoutRequest, works: Sequence[Work], admitted: Admitted
) -> list[Work]:
    """The jobs that have their locks or need none."""
    wanted = [
        (each, Wanted(each.read, each.name, each.waits_for))
        for work in works
        for each in work
        if each.read is not None and not each.lock_generation
    ]
    if not wanted or request.terms is None:
        return list(works)
    found = runtime.stores.single_flight.take([each for _, each in wanted], request.terms)
    locked, ended = [], []
    absent: set[int] = set()
    for (taken, each), state in zip(wanted, found, strict=True):
        match state:
            case Locked(generation):
                if each.waits_for:
                    # The read that it waited for has left no result: the others wait for this one.
                    ended.append(ReadLock(each.read, each.waits_for))
                taken.lock_generation, taken.waits_for = generation, ""
                locked.append(ReadLock(each.read, each.holder))
                continue
            case Recorded(body):
                admitted.recorded.append((taken, body))
                ended.append(ReadLock(each.read, each.waits_for))
            case Waiting(holder):
                taken.waits_for = holder
                separate(taken)
                admitted.following.append((ReadLock(each.read, holder), taken))
        absent.add(id(taken))
    runtime.pool.locks.hold(locked, request.deadline + runtime.grace + LEASE_MARGIN)
    runtime.pool.locks.drop(ended)
    if admitted.recorded:
        runtime.stores.counters.jobs("followed", len(admitted.recorded))
    left = ([each for each in work if id(each) not in absent] for work in works)
    return [work for work in left if work]


def _begin_reads(runtime: Runtime, jobs: Sequence[TakenJob]) -> None:
    """Begin the reads of busy periods in the cache, in one round trip."""
    beginning = [each for each in jobs if each.cache_generation is None]
    busy = [
        (each.job, each.row) for each in beginning if isinstance(each.job, ReadBusy) and each.row is not None
    ]
    generations = reads.begin_reads(runtime.stores, busy) if busy else {}
    for each in beginning:
        each.cache_generation = generations.get(each.job.connection or "", b"")


def _acquire(runtime: Runtime, request: FanoutRequest, works: Sequence[Work], admitted: Admitted) -> None:
    """Acquire the permits of these jobs, in one round trip."""
    # The jobs of a bundle may share a request.
    requests = list(
        dict.fromkeys(each.permit.wanted for work in works for each in work if each.permit.wanted is not None)
    )
    left = request.seconds_left
    permits: dict[AcquireRequest, Permit] = {}
    if requests:
        lease_seconds = left + runtime.grace + LEASE_MARGIN
        granted = runtime.stores.provider_limits.acquire(requests, left=left, lease_seconds=lease_seconds)
        permits = dict(zip(requests, granted, strict=True))
    now = time.monotonic()
    for work in works:
        later: dict[float, Work] = {}
        for each in work:
            _settle(runtime, request, each, permits, now, later, admitted)
        delayed = {id(each) for some in later.values() for each in some}
        failed = {id(each) for each, _ in admitted.failed}
        ready = [each for each in work if id(each) not in delayed | failed]
        admitted.ready += without_probes(ready)
        for when, some in later.items():
            admitted.waiting += [(when, part) for part in divide_waiting(some)]


def _settle(
    runtime: Runtime,
    request: FanoutRequest,
    taken: TakenJob,
    permits: Mapping[AcquireRequest, Permit],
    now: float,
    later: dict[float, Work],
    admitted: Admitted,
) -> None:
    """Note the permit of a job: it may begin, waits until a moment in ``later``, or has failed."""
    wanted, row = taken.permit.wanted, taken.row
    if wanted is None or row is None:
        return
    permit = permits[wanted]
    taken.permit.answered(wanted, permit, now)
    if taken.permit.granted:
        return
    if permit.why is WaitReason.OPEN:
        admitted.failed.append((taken, call_policy.circuit_open_failure(row, permit)))
        return
    # A wait for the mailbox does not replace the failure of an earlier wait.
    if taken.if_late is BROKEN or permit.why is not WaitReason.MAILBOX:
        taken.if_late = call_policy.rate_limited_failure(row, permit)
    if taken.permit.at < request.deadline:
        later.setdefault(taken.permit.at, []).append(taken)
    else:
        admitted.failed.append((taken, taken.if_late))
