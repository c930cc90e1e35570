"""The web tier's side of a fan-out: put the jobs on a list, send a few tasks, join what comes back.

The jobs of one request are a Redis list of its own; each of a handful of identical tasks pulls from it
until it is empty, and pushes replies to the request's reply list. The join is a blocking pop on that
list under one deadline: what has not arrived by then has failed, what did arrive counts.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from redis import Redis

from providers.base import Failed
from providers.errors import Reason
from store.coordination.single_flight import ClaimState, ReadKey, SingleFlight
from store.metrics.counters import Counters
from store.stores import LONGEST_POP
from workers.celery_app import Almanac
from workers.fanout.admission import Admission
from workers.fanout.codec import (
    LEFTOVER_SECONDS,
    NUMBER,
    DecodeError,
    address,
    numbered,
    pack_job,
    reply_list,
    same_read,
    unpack_reply,
    work_list,
)
from workers.fanout.failures import BROKEN
from workers.fanout.jobs import Job, Reply
from workers.queues import DRAIN, Queue
from workers.telemetry import tracing

log = logging.getLogger(__name__)

# One task keeps this many reads in flight before a second process is worth a message of its own.
JOBS_PER_TASK = 16

# How much of the time workers may use: what they give up on themselves still arrives, with its reason.
WORKERS_SHARE = 0.97

# Redis before 7 counts a pop's time in milliseconds, and takes 0 for ever.
SHORTEST_POP = 0.01

# Seconds after which a request looks whether those are alive who read for it, and more for each job that is
# not done.
LOOK = 1.0
LOOK_FOR_EACH = 0.001

LATE = Failed(Reason.PROVIDER_ERROR, "The provider did not answer in time")


@dataclass(frozen=True, slots=True)
class CoalescingPolicy:
    """That other requests' reads of the same will do; moments in milliseconds.

    ``began`` is when the request looked into the cache or before: what was read until then is found there.
    None that was claimed before ``newer_than`` will do.
    """

    began: float
    newer_than: int | None = None


class Fanout:
    """Hands jobs to the workers and waits for them."""

    def __init__(
        self,
        celery: Almanac,
        redis: Redis,
        flights: SingleFlight,
        *,
        tasks: int,
        activity: Counters | None = None,
        room: Admission | None = None,
    ) -> None:
        self._celery = celery
        self._redis = redis
        self._flights = flights
        self._tasks = tasks
        self._activity = activity
        self._room = room or Admission(redis)

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
        shared: CoalescingPolicy | None = None,
        finishing: bool = False,
    ) -> list[Reply]:
        """A reply for each job, in order. ``deadline`` is a moment of ``time.monotonic()``.

        ``shared``: of all requests that have a job in common, one has it done. ``finishing``: the jobs belong
        to what has been begun, and are not turned away.

        :raise Overloaded: when too many wait already, or no worker is there; nothing was sent
        :raise redis.RedisError, kombu.exceptions.OperationalError: when Redis or the broker is down
        """
        if not jobs:
            return []
        request = _Request(secrets.token_hex(12), dict(enumerate(jobs)), queue, deadline, shared)
        if finishing:
            return self._gather(request)
        with self._room.here(queue):
            self._room.enter(queue, request.name, request.left)
            return self._gather(request)

    def _gather(self, request: _Request) -> list[Reply]:
        try:
            with tracing.span("fan-out", "producer", {"almanac.jobs": len(request.jobs)}) as span:
                self._begin(request)
                self._join(request)
                if span is not None:
                    span.set_attributes(request.outcome())
        finally:
            with self._redis.pipeline() as pipe:
                pipe.lrange(request.work, 0, -1)
                pipe.delete(request.work, request.reply_list)
                self._room.leave(pipe, request.queue, request.name)
                dropped, *_ = pipe.execute()
            # Others may wait for what nobody begins any more.
            addresses = [address(data) for data in dropped]
            self._flights.abandon(self._redis, [each.flight for each in addresses if each and each.flight])
            if given_up := {number: request.waiting[number] for number in request.lacking()}:
                self._flights.leave(request.reply_list, given_up)
            self._count(request)
        late = Reply(failed=LATE)
        return [request.replies.get(number, late) for number in request.jobs]

    def refresh(
        self, jobs: Sequence[Job], *, queue: Queue, deadline: float, shared: CoalescingPolicy
    ) -> None:
        """Have jobs done that nobody waits for, unless somebody has them done already; as ``gather``."""
        if jobs:
            request = _Request(secrets.token_hex(12), dict(enumerate(jobs)), queue, deadline, shared)
            self._room.look(queue)
            self._claim(request, request.jobs, shared, waiter="")
            if self._activity is not None:
                self._activity.jobs("asked", len(request.asked))

    def _count(self, request: _Request) -> None:
        if self._activity is not None:
            self._activity.jobs("asked", len(request.asked))
            self._activity.jobs("followed", len(request.jobs) - len(request.asked))
            self._activity.jobs("late", len(request.jobs) - len(request.replies))

    def _begin(self, request: _Request) -> None:
        """Have done what nobody else has done already."""
        if request.shared is None:
            request.asked.update(request.jobs)
            self._send(request, [pack_job(*numbered) for numbered in request.jobs.items()])
        else:
            self._claim(request, request.jobs, request.shared, request.reply_list)

    def _claim(
        self, request: _Request, jobs: Mapping[int, Job], shared: CoalescingPolicy, waiter: str
    ) -> None:
        turns = self._flights.claim(
            [request.wish(number) for number in jobs],
            waiter,
            now=time.time_ns() // 1_000_000,
            began=shared.began,
            newer_than=shared.newer_than,
            lease=request.left,
            waiting=request.waiting,
        )
        led = [value.decode() for turn, value in turns if turn is ClaimState.LEADER]
        mine: list[bytes] = []
        try:
            for (number, job), (turn, value) in zip(jobs.items(), turns, strict=True):
                if turn is ClaimState.COMPLETED:
                    request.replies |= [_understood(numbered(number, value))]
                elif turn is ClaimState.BYPASS:
                    request.waiting.pop(number, None)
                    request.asked.add(number)
                    mine.append(pack_job(number, job))
                else:
                    flight = request.waiting[number] = value.decode()
                    if turn is ClaimState.LEADER:
                        request.asked.add(number)
                        mine.append(pack_job(number, job, flight))
            self._send(request, mine)
        except BaseException:
            # Nobody must wait for what nobody does.
            self._flights.abandon(self._redis, led)
            raise

    def _send(self, request: _Request, jobs: Sequence[bytes]) -> None:
        if not jobs:
            return
        left = request.left
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.rpush(request.work, *jobs)
            pipe.expire(request.work, int(left) + LEFTOVER_SECONDS)
            pipe.execute()
        tasks = min(self._tasks, -(-len(jobs) // JOBS_PER_TASK))
        arguments = {
            "fanout": request.name,
            "deadline": time.time() + left * WORKERS_SHARE,
            # As many for each: who begins first must not take what another process has places for.
            "most": -(-len(jobs) // tasks),
        }
        name = DRAIN[request.queue]
        with self._celery.producer_pool.acquire(block=True) as producer:
            for _ in range(tasks):
                self._celery.send_task(name, kwargs=arguments, expires=left, producer=producer)

    def _join(self, request: _Request) -> None:
        """Take replies until all are there or the deadline has passed."""
        name, replies = request.reply_list, request.replies
        looked = time.monotonic()
        while len(replies) < len(request.jobs) and (left := request.left) > 0:
            look = looked + request.patience()
            pause = min(left, LONGEST_POP, max(0.0, look - time.monotonic()))
            first = self._redis.blpop([name], timeout=max(pause, SHORTEST_POP))
            if first is not None:
                more = self._redis.lpop(name, len(request.jobs)) or []
                for number, reply in map(_understood, cast(list[bytes], [first[1], *more])):
                    # A job that two workers do is answered twice: a failure never replaces what was read.
                    if reply.whole() or number not in replies:
                        replies[number] = reply
            if request.shared is not None and time.monotonic() >= look and request.left > 0:
                # A reader that died leaves its flight to whoever asks next.
                if lacking := request.lacking():
                    self._claim(request, lacking, request.shared, name)
                looked = time.monotonic()


def _understood(data: bytes) -> tuple[int, Reply]:
    """A reply under its number; one that cannot be read, as of a worker of another version, has failed."""
    try:
        return unpack_reply(data)
    except DecodeError:
        log.exception("a reply cannot be read")
        return NUMBER.unpack_from(data)[0], Reply(failed=BROKEN)


@dataclass(slots=True)
class _Request:
    """What one request waits for: its jobs by number, and the replies to them so far.

    ``waiting`` has the flights that make the replies, by number, but for what it has done for itself alone.
    ``asked`` are the numbers of those that it has done by workers, for itself or for others too.
    """

    name: str
    jobs: Mapping[int, Job]
    queue: Queue
    deadline: float
    shared: CoalescingPolicy | None
    replies: dict[int, Reply] = field(default_factory=dict)
    waiting: dict[int, str] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)
    _wishes: dict[int, ReadKey] = field(default_factory=dict)

    @property
    def work(self) -> str:
        return work_list(self.name)

    @property
    def reply_list(self) -> str:
        return reply_list(self.name)

    @property
    def left(self) -> float:
        """Seconds until the deadline, 0 after it."""
        return max(0.0, self.deadline - time.monotonic())

    def lacking(self) -> dict[int, Job]:
        """What it waits for that others may wait for too."""
        return {number: self.jobs[number] for number in self.waiting if number not in self.replies}

    def wish(self, number: int) -> ReadKey:
        """A job as it is claimed."""
        if number not in self._wishes:
            job = self.jobs[number]
            self._wishes[number] = ReadKey(_connection(job), same_read(job), number)
        return self._wishes[number]

    def outcome(self) -> dict[str, int]:
        """What a trace tells of it."""
        return {"almanac.asked": len(self.asked), "almanac.late": len(self.jobs) - len(self.replies)}

    def patience(self) -> float:
        """Seconds until it looks whether its readers are alive; many that are missing are many questions."""
        if self.shared is None:
            return math.inf
        return LOOK + (len(self.jobs) - len(self.replies)) * LOOK_FOR_EACH


def _connection(job: Job) -> str:
    if job.connection is None:
        raise TypeError(f"{job!r} is nobody's read")
    return job.connection
