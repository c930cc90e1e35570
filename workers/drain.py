"""The worker's side of a fan-out: take jobs while there are places, push replies as they finish."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

from redis.client import Pipeline
from redis.exceptions import RedisError

from providers.base import Failed
from providers.errors import Reason
from store.busy_cache import CalendarKey
from store.calendar_lists import CalendarList
from store.models import OAuthConnection
from store.queries import connections
from store.queries.connections import Credentials
from workers.fanout import LEFTOVER_SECONDS, reply_list, work_list
from workers.jobs import Job, ReadBusy, Reply, pack_reply, unpack_job
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Jobs taken at once: their credentials come in one statement, their replies in few round trips.
BATCH = 32

GONE = Failed(Reason.NOT_FOUND, "The connection was removed")
BROKEN = Failed(Reason.PROVIDER_ERROR, "Something went wrong on our side while asking this account")

# Does one job by a deadline; without credentials where no connection is there yet.
Perform = Callable[[Runtime, Job, Credentials | None, float], Reply]


class Done(NamedTuple):
    """A job that is over. ``generation`` is that of its connection's cache, noted before it began."""

    number: int
    job: Job
    reply: Reply
    generation: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """What the jobs taken at once need: their connections, None when those could not be had."""

    sealed: Mapping[str, OAuthConnection] | None
    generations: Mapping[str, bytes]


class Drain:
    """One task's share of one fan-out. ``deadline`` is a moment of ``time.monotonic()``."""

    def __init__(self, runtime: Runtime, fanout: str, deadline: float, perform: Perform) -> None:
        self._runtime = runtime
        self._fanout = fanout
        self._deadline = deadline
        self._perform = perform
        self._done: queue.SimpleQueue[Done] = queue.SimpleQueue()
        self._in_flight = 0
        self._exhausted = False

    def run(self) -> None:
        """Work until the list is empty or the deadline has passed, and every job taken is answered."""
        while True:
            self._fill()
            if not self._in_flight:
                return
            self._answer(self._finished())

    def _fill(self) -> None:
        """Start jobs until no place is free, nothing is left, or the deadline has passed."""
        places = self._runtime.places
        while not self._exhausted and time.monotonic() < self._deadline:
            # With jobs of our own in flight, one of them frees a place: no need to wait for others' here.
            claimed = places.claim(BATCH, until=0.0 if self._in_flight else self._deadline)
            if not claimed:
                return
            jobs: list[tuple[int, Job]] = []
            try:
                taken = self._runtime.stores.redis.lpop(work_list(self._fanout), claimed) or []
                jobs = [unpack_job(data) for data in cast(list[bytes], taken)]
            finally:
                places.give_back(claimed - len(jobs))
            self._exhausted = len(jobs) < claimed
            if jobs:
                self._start(jobs)

    def _start(self, jobs: list[tuple[int, Job]]) -> None:
        batch = self._batch({job.connection for _, job in jobs if job.connection is not None})
        for number, job in jobs:
            self._runtime.places.run(partial(self._work, number, job, batch))
        self._in_flight += len(jobs)

    def _batch(self, ids: set[str]) -> Batch:
        """The connections of these jobs in one statement, their generations in one round trip."""
        stores = self._runtime.stores
        try:
            generations = stores.busy.generations(ids)
            with stores.database.reading() as session:
                return Batch(connections.sealed(session, ids), generations)
        except Exception:
            # Whatever it is: these jobs have been taken, and their places with them.
            log.exception("connections could not be loaded")
            return Batch(None, {})

    def _work(self, number: int, job: Job, batch: Batch) -> None:
        """Runs in a place. Whatever happens, the job is answered: nobody waits for nothing."""
        reply = Reply(failed=BROKEN)
        try:
            if batch.sealed is not None:
                reply = self._open_and_perform(job, batch.sealed)
        except Exception:
            log.exception("a job failed unexpectedly", extra={"connection": job.connection})
        finally:
            generation = batch.generations.get(job.connection or "", b"")
            self._done.put(Done(number, job, reply, generation))

    def _open_and_perform(self, job: Job, sealed: Mapping[str, OAuthConnection]) -> Reply:
        if job.connection is None:
            return self._perform(self._runtime, job, None, self._deadline)
        row = sealed.get(job.connection)
        if row is None:
            return Reply(failed=GONE)
        credentials = connections.open_credentials(row, self._runtime.stores.keyring)
        return self._perform(self._runtime, job, credentials, self._deadline)

    def _finished(self) -> list[Done]:
        """At least one finished job, and every other that is finished by now."""
        finished = [self._done.get()]
        while not self._done.empty():
            finished.append(self._done.get())
        return finished

    def _answer(self, finished: list[Done]) -> None:
        """Fill the cache and push the replies, in one round trip."""
        self._in_flight -= len(finished)
        stores = self._runtime.stores
        replies = reply_list(self._fanout)
        with stores.redis.pipeline(transaction=False) as pipe:
            for each in finished:
                self._keep(pipe, each)
            pipe.rpush(replies, *(pack_reply(each.number, each.reply) for each in finished))
            pipe.expire(replies, LEFTOVER_SECONDS)
            # What the cache refuses, for lack of memory say, must not cost anybody a reply.
            results = pipe.execute(raise_on_error=False)
        for refused in {str(result) for result in results if isinstance(result, RedisError)}:
            log.error("Redis refused a part of an answer: %s", refused)

    def _keep(self, pipe: Pipeline, done: Done) -> None:
        """Queue what a job has read for the caches."""
        stores = self._runtime.stores
        job, reply = done.job, done.reply
        if reply.listed is not None and job.connection is not None:
            calendars = CalendarList(reply.read_at, reply.listed)
            stores.calendar_lists.store(pipe, job.connection, calendars)
        if isinstance(job, ReadBusy):
            for calendar, busy in reply.read():
                stores.busy.store(
                    pipe,
                    CalendarKey(job.connection, calendar),
                    busy,
                    job.start,
                    job.end,
                    read_at=reply.read_at,
                    generation=done.generation,
                )
