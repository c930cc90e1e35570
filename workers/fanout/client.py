"""The web tier's side of a fan-out: send the jobs and a few tasks, and collect the replies.

The jobs of one request are on a Redis list of its own. A few identical tasks take jobs from it until it is
empty, and push replies to the request's reply list. The request reads that list with a blocking pop until its
deadline. A job without a reply by then has failed; the replies that did arrive count.

A request sends a job again when the worker that took it cannot reach the provider, or seems to have died.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from redis import Redis

from store.coordination import shares
from store.coordination.single_flight import ReadTerms, SharedRead, SingleFlight
from store.metrics.counters import Counters
from store.stores import MAX_POP
from workers.celery_app import Almanac
from workers.failures import BROKEN, TIMED_OUT
from workers.fanout.admission import Admission
from workers.fanout.codec import (
    LEFTOVER_SECONDS,
    NUMBER,
    DecodeError,
    Packed,
    addresses,
    elements,
    read_digest,
    reply_list,
    unpack_reply,
    work_list,
)
from workers.jobs import Job, Reply
from workers.queues import DRAIN, TERMS, Queue
from workers.telemetry import tracing

log = logging.getLogger(__name__)

# Seconds after which a request checks whether its reads are still under way, plus a share for each job
# without a reply.
CHECK_SECONDS = 1.0
CHECK_SECONDS_PER_JOB = 0.001


@dataclass(frozen=True, slots=True)
class CoalescingPolicy:
    """Lets a request use reads of other requests; times in milliseconds.

    ``began`` is when the request looked into the cache, or earlier: reads that finished before are cached.
    Reads that were sent before ``newer_than`` are not used.
    """

    began: float
    newer_than: int | None = None


@dataclass(slots=True)
class PendingRequest:
    """The jobs of one request by number, and the replies so far.

    ``sent`` has the numbers of the jobs that were sent to workers. ``again`` are the moments at which jobs
    are sent again that a worker could not perform, ``attempts`` how often each was.
    """

    name: str
    jobs: Mapping[int, Job]
    queue: Queue
    deadline: float
    terms: ReadTerms | None = None
    replies: dict[int, Reply] = field(default_factory=dict)
    sent: set[int] = field(default_factory=set)
    again: dict[int, float] = field(default_factory=dict)
    attempts: dict[int, int] = field(default_factory=dict)
    # When the request last checked: the jobs that were taken from the list and that no worker had under way,
    # and whether all jobs without a reply were still on the list.
    idle: set[int] = field(default_factory=set)
    none_taken: bool = False
    # Tasks were sent for jobs that were on the list already.
    tasks_sent_again: bool = False
    _reads: dict[int, SharedRead] = field(default_factory=dict)

    @property
    def work_list(self) -> str:
        """The Redis list of its jobs."""
        return work_list(self.name)

    @property
    def reply_list(self) -> str:
        """The Redis list of its replies."""
        return reply_list(self.name)

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, 0 after it."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def unanswered(self) -> list[int]:
        """The numbers of the jobs without a reply."""
        return [number for number in self.jobs if number not in self.replies]

    @property
    def missing(self) -> int:
        """How many jobs have no reply."""
        return len(self.jobs) - len(self.replies)

    def read(self, number: int) -> SharedRead:
        """The read of a job, which other requests may share."""
        if number not in self._reads:
            job = self.jobs[number]
            if job.connection is None:
                raise TypeError(f"{job!r} is not a read and cannot be shared")
            self._reads[number] = SharedRead(job.connection, read_digest(job))
        return self._reads[number]

    def next_check(self, checked_at: float) -> float:
        """The moment of the next check; later with many missing replies, which cost more."""
        if self.terms is None:
            return self.deadline
        return checked_at + CHECK_SECONDS + self.missing * CHECK_SECONDS_PER_JOB


# One task performs this many elements of the list; more elements are spread over more tasks.
ELEMENTS_PER_TASK = 16

# The share of the time that workers may use, so that the failures that they report at their deadline still
# arrive.
WORKERS_FRACTION = 0.97

# Redis before version 7 rounds a pop's timeout to milliseconds, and 0 means no timeout.
MIN_POP = 0.01

# Seconds after which a job is sent again that a worker without a way to the provider had taken. Until that
# worker has stopped taking tasks, it may take the job again. The last pause is longer than workers need to
# learn that none of them has a way, from when on they perform the jobs themselves.
RESEND_SECONDS = (0.02, 0.2, 0.5, 1.5)


class Fanout:
    """Sends jobs to the workers and waits for the replies."""

    def __init__(
        self,
        celery: Almanac,
        redis: Redis,
        flights: SingleFlight,
        *,
        tasks: int,
        counters: Counters | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._celery = celery
        self._redis = redis
        self._flights = flights
        self._tasks = tasks
        self._counters = counters
        self._admission = admission or Admission(redis)

    def prepare(self) -> None:
        """Connect to the broker.

        :raise kombu.exceptions.OperationalError: when it is down
        """
        with self._celery.producer_pool.acquire(block=True) as producer:
            producer.connection.ensure_connection(max_retries=1)
            # Opening the channel is a round trip of its own.
            _ = producer.channel

    def gather(
        self,
        jobs: Sequence[Job],
        *,
        queue: Queue,
        deadline: float,
        coalescing: CoalescingPolicy | None = None,
        bypass_admission: bool = False,
    ) -> list[Reply]:
        """A reply for each job, in order. ``deadline`` is a moment of ``time.monotonic()``.

        ``coalescing``: equal jobs of several requests are performed once. ``bypass_admission``: for jobs that
        finish work that has begun.

        :raise Overloaded: when too many requests wait, of all or of this tenant, or no worker is alive;
          nothing was sent
        :raise redis.RedisError, kombu.exceptions.OperationalError: when Redis or the broker is down
        """
        if not jobs:
            return []
        request = self._request(jobs, queue, deadline, coalescing)
        if bypass_admission:
            return self._gather(request)
        with self._admission.admit_in_process(queue):
            self._admission.enter(queue, request.name, request.seconds_left)
            return self._gather(request)

    def refresh(
        self, jobs: Sequence[Job], *, queue: Queue, deadline: float, coalescing: CoalescingPolicy
    ) -> None:
        """Send the jobs that are not under way, and do not wait for replies; raises like ``gather``."""
        if jobs:
            request = self._request(jobs, queue, deadline, coalescing)
            self._admission.check(queue)
            claimed = self._flights.claim_refreshes([request.read(number) for number in request.jobs])
            self._send(request, [number for number, mine in zip(request.jobs, claimed, strict=True) if mine])
            self._count("asked", len(request.sent))

    def _request(
        self, jobs: Sequence[Job], queue: Queue, deadline: float, coalescing: CoalescingPolicy | None
    ) -> PendingRequest:
        terms = None
        if coalescing is not None:
            terms = self._flights.terms(time.time() * 1000, coalescing.began, coalescing.newer_than)
        return PendingRequest(secrets.token_hex(12), dict(enumerate(jobs)), queue, deadline, terms)

    def _gather(self, request: PendingRequest) -> list[Reply]:
        try:
            with tracing.span("fan-out", "producer", {"almanac.jobs": len(request.jobs)}) as span:
                self._send(request, request.jobs)
                self._await_replies(request)
                if span is not None:
                    span.set_attribute("almanac.late", request.missing)
        finally:
            self._clean_up(request)
            self._count("asked", len(request.sent))
            self._count("late", request.missing)
        late = Reply(failed=TIMED_OUT)
        return [request.replies.get(number, late) for number in request.jobs]

    def _send(self, request: PendingRequest, numbers: Iterable[int], *, on_list: bool = False) -> None:
        """Put jobs on the list and send tasks for them; only tasks for jobs that are ``on_list`` already."""
        packed = elements(Packed(number, request.jobs[number]) for number in numbers)
        if not packed:
            return
        left = request.seconds_left
        if not on_list:
            request.sent.update(numbers)
            with self._redis.pipeline(transaction=False) as pipe:
                pipe.rpush(request.work_list, *packed)
                pipe.expire(request.work_list, int(left) + LEFTOVER_SECONDS)
                pipe.execute()
        tasks = min(self._tasks, -(-len(packed) // ELEMENTS_PER_TASK))
        arguments = {
            "fanout": request.name,
            "deadline": time.time() + left * WORKERS_FRACTION,
            # An equal share for each task, so that the first one leaves jobs to processes with free threads.
            "most": -(-len(packed) // tasks),
        }
        headers = {} if request.terms is None else {TERMS: list(request.terms)}
        with self._celery.producer_pool.acquire(block=True) as producer:
            for _ in range(tasks):
                self._celery.send_task(
                    DRAIN[request.queue], kwargs=arguments, expires=left, headers=headers, producer=producer
                )

    def _await_replies(self, request: PendingRequest) -> None:
        """Collect replies until all have arrived or the deadline has passed."""
        checked_at = time.monotonic()
        while request.missing and (left := request.seconds_left) > 0:
            check_at = request.next_check(checked_at)
            wake_at = min([check_at, *request.again.values()])
            self._collect(request, max(min(left, MAX_POP, wake_at - time.monotonic()), MIN_POP))
            now = time.monotonic()
            if due := [number for number, moment in request.again.items() if moment <= now]:
                for number in due:
                    del request.again[number]
                self._send(request, due)
            if now >= check_at and request.seconds_left > 0:
                self._send_lost_again(request)
                checked_at = time.monotonic()

    def _collect(self, request: PendingRequest, timeout: float) -> None:
        """Wait for a reply, and take the others that have arrived by then."""
        with shares.turn_paused(request.deadline):
            first = self._redis.blpop([request.reply_list], timeout=timeout)
        # Others may have arrived while the request waited for its turn.
        more = self._redis.lpop(request.reply_list, request.missing) or []
        messages = more if first is None else [first[1], *more]
        for number, reply in map(_decoded, cast(list[bytes], messages)):
            attempt = request.attempts.get(number, 0)
            elsewhere = reply.failed is not None and reply.failed.elsewhere
            if elsewhere and attempt < len(RESEND_SECONDS) and number not in request.replies:
                request.attempts[number] = attempt + 1
                request.again.setdefault(number, time.monotonic() + RESEND_SECONDS[attempt])
            # Two workers that perform the same job both reply: a failure never replaces a result.
            elif reply.whole() or number not in request.replies:
                request.replies[number] = reply
                request.again.pop(number, None)

    def _send_lost_again(self, request: PendingRequest) -> None:
        """Send the reads again that were neither on the list nor under way at this check and the one before.

        The worker that took them has died. Jobs that are all still on the list may need new tasks instead.
        """
        unanswered = {number for number in request.unanswered if number not in request.again}
        # The list first: between the two, a worker may take a job from it and lock its read.
        listed = cast(list[bytes], self._redis.lrange(request.work_list, 0, -1))
        taken = sorted(unanswered - {each.number for data in listed for each in addresses(data)})
        under_way = self._flights.under_way([request.read(number) for number in taken]) if taken else []
        idle = {number for number, busy in zip(taken, under_way, strict=True) if not busy}
        lost, none_taken = idle & request.idle, bool(unanswered) and not taken
        if lost:
            self._send(request, sorted(lost))
        elif none_taken and request.none_taken and not request.tasks_sent_again:
            # Once: on busy workers, further tasks would only queue behind the first ones.
            request.tasks_sent_again = True
            self._send(request, sorted(unanswered), on_list=True)
        request.idle, request.none_taken = idle - lost, none_taken

    def _clean_up(self, request: PendingRequest) -> None:
        """Delete the lists of a request, and end its admission."""
        with self._redis.pipeline() as pipe:
            pipe.delete(request.work_list, request.reply_list)
            self._admission.leave(pipe, request.queue, request.name)
            pipe.execute()

    def _count(self, how: Literal["asked", "late"], number: int) -> None:
        if self._counters is not None:
            self._counters.jobs(how, number)


def _decoded(data: bytes) -> tuple[int, Reply]:
    """A reply and its number; a failed one if it cannot be decoded, as from a worker of another version."""
    try:
        return unpack_reply(data)
    except DecodeError:
        log.exception("a reply cannot be decoded")
        return NUMBER.unpack_from(data)[0], Reply(failed=BROKEN)
