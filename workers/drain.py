"""The worker's side of a fan-out: take jobs while there are places, push replies as they finish."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable
from functools import partial
from typing import cast

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
BROKEN = Failed(Reason.PROVIDER_ERROR, "Something went wrong on our side while reading this account")

Perform = Callable[[Runtime, Job, Credentials, float], Reply]
Done = tuple[int, Job, Reply]


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
        sealed = self._sealed({job.connection for _, job in jobs})
        for number, job in jobs:
            self._runtime.places.run(partial(self._work, number, job, sealed))
        self._in_flight += len(jobs)

    def _sealed(self, ids: set[str]) -> dict[str, OAuthConnection] | None:
        """The connections of one batch in one statement; None when they cannot be had."""
        try:
            with self._runtime.stores.database.reading() as session:
                return connections.sealed(session, ids)
        except Exception:
            # Whatever it is: these jobs have been taken, and their places with them.
            log.exception("connections could not be loaded")
            return None

    def _work(self, number: int, job: Job, sealed: dict[str, OAuthConnection] | None) -> None:
        """Runs in a place. Whatever happens, the job is answered: nobody waits for nothing."""
        reply = Reply(failed=BROKEN)
        try:
            if sealed is not None:
                reply = self._open_and_perform(job, sealed.get(job.connection))
        except Exception:
            log.exception("a job failed unexpectedly", extra={"connection": job.connection})
        finally:
            self._done.put((number, job, reply))

    def _open_and_perform(self, job: Job, row: OAuthConnection | None) -> Reply:
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
            for _, job, reply in finished:
                if reply.listed is not None:
                    calendars = CalendarList(reply.read_at, reply.listed)
                    stores.calendar_lists.store(pipe, job.connection, calendars)
                if isinstance(job, ReadBusy):
                    for calendar, busy in reply.read():
                        key = CalendarKey(job.connection, calendar)
                        stores.busy.store(pipe, key, busy, job.start, job.end, read_at=reply.read_at)
            pipe.rpush(replies, *(pack_reply(number, reply) for number, _, reply in finished))
            pipe.expire(replies, LEFTOVER_SECONDS)
            # What the cache refuses, for lack of memory say, must not cost anybody a reply.
            results = pipe.execute(raise_on_error=False)
        for refused in {str(result) for result in results if isinstance(result, RedisError)}:
            log.error("Redis refused a part of an answer: %s", refused)
