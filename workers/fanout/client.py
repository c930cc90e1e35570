"""The web tier's side of a fan-out: enqueue the jobs, send a few tasks, and collect the replies.

The jobs of one request are on a Redis list of its own. A few identical tasks take jobs from it until it is
empty, and push replies to the request's reply list. The request reads that list with a blocking pop until its
deadline. A job without a reply by then has failed; the replies that did arrive count.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import cast

from redis import Redis

from providers.base import Failed
from providers.errors import Reason
from store.coordination.single_flight import ClaimState, SingleFlight
from store.metrics.counters import Counters
from store.stores import MAX_POP
from workers.celery_app import Almanac
from workers.failures import BROKEN
from workers.fanout import bundles
from workers.fanout.admission import Admission
from workers.fanout.codec import (
    LEFTOVER_SECONDS,
    NUMBER,
    DecodeError,
    Packed,
    addresses,
    numbered,
    unpack_reply,
)
from workers.fanout.named_results import NamedResults
from workers.fanout.request import CoalescingPolicy, PendingRequest
from workers.jobs import Job, Reply
from workers.queues import DRAIN, Queue
from workers.telemetry import tracing

log = logging.getLogger(__name__)

# One task keeps this many elements of the work list in flight; more elements are spread over more tasks.
ELEMENTS_PER_TASK = 16

# The share of the time that workers may use, so that the failures that they report at their deadline still
# arrive.
WORKERS_FRACTION = 0.97

# Redis before version 7 rounds a pop's timeout to milliseconds, and 0 means no timeout.
MIN_POP = 0.01

TIMED_OUT = Failed(Reason.PROVIDER_ERROR, "The provider did not answer in time")


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
        request = _request(jobs, queue, deadline, coalescing)
        if bypass_admission:
            return self._gather(request)
        with self._admission.admit_in_process(queue):
            self._admission.enter(queue, request.name, request.seconds_left)
            return self._gather(request)

    def refresh(
        self, jobs: Sequence[Job], *, queue: Queue, deadline: float, coalescing: CoalescingPolicy
    ) -> None:
        """Send the jobs that are not in flight, and do not wait for replies; raises like ``gather``."""
        if jobs:
            request = _request(jobs, queue, deadline, coalescing)
            self._admission.check(queue)
            self._claim(request, request.jobs, coalescing, waiter="")
            if self._counters is not None:
                self._counters.jobs("asked", len(request.sent))

    def _gather(self, request: PendingRequest) -> list[Reply]:
        try:
            with tracing.span("fan-out", "producer", {"almanac.jobs": len(request.jobs)}) as span:
                self._begin(request)
                self._await_replies(request)
                if span is not None:
                    span.set_attributes(request.span_attributes())
        finally:
            self._clean_up(request)
            self._count(request)
        late = Reply(failed=TIMED_OUT)
        return [request.replies.get(number, late) for number in request.jobs]

    def _begin(self, request: PendingRequest) -> None:
        """Send the jobs that no other request has in flight."""
        if request.coalescing is None:
            request.sent.update(request.jobs)
            self._send(request, [Packed(*each) for each in request.jobs.items()])
        else:
            self._claim(request, request.jobs, request.coalescing, request.reply_list)

    def _claim(
        self, request: PendingRequest, jobs: Mapping[int, Job], coalescing: CoalescingPolicy, waiter: str
    ) -> None:
        """Join or lead the flights of these jobs, and send the jobs that this request leads."""
        claims = self._flights.claim(
            [request.key(number) for number in jobs],
            waiter,
            claimed_at=time.time_ns() // 1_000_000,
            began=coalescing.began,
            newer_than=coalescing.newer_than,
            lease_seconds=request.seconds_left,
            current_flights=request.flights,
        )
        led = [value.decode() for state, value in claims if state is ClaimState.LEADER]
        sending: list[Packed] = []
        try:
            for (number, job), (state, value) in zip(jobs.items(), claims, strict=True):
                if state is ClaimState.COMPLETED:
                    request.replies |= [_decoded(numbered(number, value))]
                elif state is ClaimState.BYPASS:
                    request.flights.pop(number, None)
                    request.sent.add(number)
                    sending.append(Packed(number, job))
                else:
                    flight = request.flights[number] = value.decode()
                    if state is ClaimState.LEADER:
                        request.sent.add(number)
                        sending.append(Packed(number, job, flight))
            self._send(request, sending)
        except BaseException:
            # Followers must not wait for jobs that were not sent.
            self._flights.abandon(led)
            raise

    def _send(self, request: PendingRequest, jobs: Sequence[Packed]) -> None:
        if not jobs:
            return
        elements = bundles.elements(jobs)
        left = request.seconds_left
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.rpush(request.work_list, *elements)
            pipe.expire(request.work_list, int(left) + LEFTOVER_SECONDS)
            pipe.execute()
        tasks = min(self._tasks, -(-len(elements) // ELEMENTS_PER_TASK))
        arguments = {
            "fanout": request.name,
            "deadline": time.time() + left * WORKERS_FRACTION,
            # An equal share for each task, so that the first one leaves jobs to processes with free threads.
            "most": -(-len(elements) // tasks),
        }
        name = DRAIN[request.queue]
        with self._celery.producer_pool.acquire(block=True) as producer:
            for _ in range(tasks):
                self._celery.send_task(name, kwargs=arguments, expires=left, producer=producer)

    def _await_replies(self, request: PendingRequest) -> None:
        """Collect replies until all have arrived or the deadline has passed."""
        checked_at = time.monotonic()
        while request.unanswered and (left := request.seconds_left) > 0:
            check_at = checked_at + request.check_interval()
            timeout = min(left, MAX_POP, max(0.0, check_at - time.monotonic()))
            self._collect(request, max(timeout, MIN_POP))
            if request.coalescing is not None and time.monotonic() >= check_at and request.seconds_left > 0:
                # A flight whose lease has expired, as its worker died, can be claimed again by any request.
                if unanswered := request.unanswered_flights():
                    jobs = {number: request.jobs[number] for number in unanswered}
                    self._claim(request, jobs, request.coalescing, request.reply_list)
                checked_at = time.monotonic()

    def _collect(self, request: PendingRequest, timeout: float) -> None:
        """Wait for a reply, and take the others that have arrived by then."""
        first = self._redis.blpop([request.reply_list], timeout=timeout)
        if first is None:
            return
        more = self._redis.lpop(request.reply_list, len(request.jobs)) or []
        for number, reply in map(_decoded, cast(list[bytes], [first[1], *more])):
            # Two workers that perform the same job both reply: a failure never replaces a result.
            if reply.whole() or number not in request.replies:
                request.replies[number] = reply

    def _clean_up(self, request: PendingRequest) -> None:
        """Delete the lists of a request, end its admission, and leave the flights that have not replied."""
        with self._redis.pipeline() as pipe:
            results = NamedResults(pipe)
            pipe.lrange(request.work_list, 0, -1)
            results.name("dropped")
            pipe.delete(request.work_list, request.reply_list)
            self._admission.leave(pipe, request.queue, request.name)
            dropped = results.by_name(pipe.execute())["dropped"]
        # Other requests may follow jobs that no worker has taken.
        untaken = [each for data in dropped for each in addresses(data)]
        self._flights.abandon([each.flight for each in untaken if each.flight])
        if unanswered := request.unanswered_flights():
            self._flights.leave(request.reply_list, unanswered)

    def _count(self, request: PendingRequest) -> None:
        if self._counters is not None:
            self._counters.jobs("asked", len(request.sent))
            self._counters.jobs("followed", len(request.jobs) - len(request.sent))
            self._counters.jobs("late", request.unanswered)


def _request(
    jobs: Sequence[Job], queue: Queue, deadline: float, coalescing: CoalescingPolicy | None
) -> PendingRequest:
    return PendingRequest(secrets.token_hex(12), dict(enumerate(jobs)), queue, deadline, coalescing)


def _decoded(data: bytes) -> tuple[int, Reply]:
    """A reply and its number; a failed one if it cannot be decoded, as from a worker of another version."""
    try:
        return unpack_reply(data)
    except DecodeError:
        log.exception("a reply cannot be decoded")
        return NUMBER.unpack_from(data)[0], Reply(failed=BROKEN)
