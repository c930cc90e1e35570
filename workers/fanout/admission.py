"""Admission: limits how many requests wait for workers at once. Further requests are refused immediately.

A waiting request occupies a thread of its web process. So each process reserves threads for requests that
need no worker, and all processes together admit no more requests than the workers can serve. Reads and writes
are limited separately: a provider that hangs does not block writes at the other. One tenant has at most its
share of both limits, so that its slow requests leave places to others (``store.coordination.shares``); an
organization may have a share of its own.

An admitted request has a lease in Redis until its deadline. The lease of a process that was killed expires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from redis import Redis
from redis.client import Pipeline

from store.coordination import shares
from store.coordination.heartbeats import AWAY_SECONDS, WORKERS
from store.coordination.shares import Exhausted, Quota, QuotaExceeded, SharedPlaces, share_of
from store.lua import Script, json_argument
from workers.queues import Queue

# Limits for one web process; its other threads serve requests that need no worker.
MAX_PER_PROCESS = {Queue.READS: 128, Queue.WRITES: 64}
# Limits for all processes.
MAX_TOTAL = {Queue.READS: 256, Queue.WRITES: 128}
# The share of one tenant of both, in percent.
SHARE = 50

QUOTAS = {Queue.READS: Quota.WAITING_READS, Queue.WRITES: Quota.WAITING_WRITES}

# Seconds for which a lease outlasts the deadline, while the request collects its last replies.
MARGIN = 1.0

_ENTER = Script("coordination/scripts/admission.lua")


class Overloaded(Exception):
    """The request was refused before any job was sent. ``retry_after`` is in seconds."""

    retry_after = 1


class QueueFull(Overloaded):
    """The limit of waiting requests is reached."""

    retry_after = 2


class TenantQueueFull(Overloaded):
    """The share of the request's tenant is used up."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(f"the tenant's share of waiting {queue} is used up")
        self.quota = QUOTAS[queue]


class NoWorker(Overloaded):
    """There were workers, but none has sent a heartbeat for a while."""

    retry_after = 5


class Admission:
    """Admits at most ``most`` requests at once for each queue, over all processes.

    A tenant has at most ``share`` percent of them, and of the places of this process.
    """

    def __init__(self, redis: Redis, most: Mapping[Queue, int] = MAX_TOTAL, *, share: int = SHARE) -> None:
        self._redis = redis
        self._most = most
        self._share = share
        self._here = {
            queue: SharedPlaces(QUOTAS[queue], limit, share_of(limit, share))
            for queue, limit in MAX_PER_PROCESS.items()
        }

    @contextmanager
    def admit_in_process(self, queue: Queue) -> Iterator[None]:
        """Admit a request of the current tenant to this process.

        :raise Overloaded: if the share of the tenant in this process is used up, or its limit is reached
        """
        tenant, here = shares.current.get(), self._here[queue]
        own = shares.own_quotas.get().get(QUOTAS[queue])
        if own is not None:
            # Of this process the same part as of all, and not less than another tenant has.
            own = min(own, max(here.share, here.total * own // max(1, self._most[queue])))
        here.set_own(tenant, own)
        try:
            here.take(tenant)
        except QuotaExceeded:
            raise TenantQueueFull(queue) from None
        except Exhausted:
            raise QueueFull(f"the limit of waiting {queue} in this process is reached") from None
        try:
            yield
        finally:
            here.release(tenant)

    def enter(self, queue: Queue, name: str, seconds: float) -> None:
        """Admit a request of the current tenant to all processes, until ``leave`` or for this time.

        :raise Overloaded: if the share of the tenant is used up, the limit is reached, or no worker is alive
        :raise redis.RedisError: when Redis is down
        """
        self._run(queue, name, int((seconds + MARGIN) * 1000))

    def check(self, queue: Queue) -> None:
        """Check without admitting; raises like ``enter``. For optional work, which can be skipped."""
        self._run(queue, "", 0)

    def _run(self, queue: Queue, name: str, lease: int) -> None:
        limit = self._most[queue]
        arguments = json_argument(
            tenant=str(shares.current.get()),
            name=name,
            lease=lease,
            limit=limit,
            share=shares.own_quotas.get().get(QUOTAS[queue], share_of(limit, self._share)),
            away=AWAY_SECONDS,
        )
        match _ENTER.run(self._redis, [admitted_key(queue), WORKERS], arguments):
            case -1:
                raise NoWorker(f"no worker for {AWAY_SECONDS:.0f} seconds")
            case -2:
                raise TenantQueueFull(queue)
            case 0:
                raise QueueFull(f"the limit of waiting {queue} is reached")

    def leave(self, pipe: Pipeline, queue: Queue, name: str) -> None:
        """Queue on ``pipe`` that a request of the current tenant has ended."""
        pipe.zrem(admitted_key(queue), f"{shares.current.get()}:{name}")


def admitted_key(queue: Queue) -> str:
    """The Redis key of the admitted requests, scored by the end of their leases."""
    return f"waiting:{queue}"


def most_waiting(redis: Redis, queue: Queue) -> int:
    """How many requests of one tenant wait, at most.

    :raise redis.RedisError: when Redis is down
    """
    seconds, _ = redis.time()
    waiting = cast(list[bytes], redis.zrangebyscore(admitted_key(queue), seconds * 1000, "+inf"))
    return max(Counter(each.partition(b":")[0] for each in waiting).values(), default=0)
