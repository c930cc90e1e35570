"""Reports the results of all jobs of a process: one thread stores them, replies and releases what they held.

This is a group commit: whatever ends while one pipeline is under way goes into the next one.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from redis.client import Pipeline
from redis.exceptions import RedisError

from store.cache.busy_cache import BusyRead
from store.cache.calendar_lists import CalendarList
from store.coordination.provider_rate_limiter import AcquireRequest
from store.coordination.single_flight import Ended
from store.stores import Stores
from workers.fanout.codec import LEFTOVER_SECONDS
from workers.fanout.read_locks import ReadLocks

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Report:
    """What one or several jobs of a request leave behind.

    ``released`` are permits, each with whether it was a circuit breaker's probe. ``stale_keys`` are deleted.
    """

    reply_list: str
    lists: list[tuple[str, CalendarList]] = field(default_factory=list)
    reads: list[BusyRead] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    replies: list[bytes] = field(default_factory=list)
    released: list[tuple[AcquireRequest, bool]] = field(default_factory=list)
    stale_keys: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(
            self.lists or self.reads or self.ended or self.replies or self.released or self.stale_keys
        )


class Reporter:
    """Sends reports in the order of their arrival."""

    def __init__(self, stores: Stores, locks: ReadLocks) -> None:
        self._stores = stores
        self._locks = locks
        self._queue: SimpleQueue[Report | None] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def report(self, report: Report) -> None:
        """Send a report soon, without waiting for it."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
                self._thread.start()
        self._queue.put(report)

    def stop(self) -> None:
        """End the thread once everything that was reported before is sent."""
        self._queue.put(None)

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        running = True
        while running:
            found = [self._queue.get()]
            try:
                while True:
                    found.append(self._queue.get_nowait())
            except Empty:
                reports = [each for each in found if each is not None]
            running = len(reports) == len(found)
            try:
                self._send(reports)
            except Exception:
                # If this thread ended, no job would be answered any more. Locks and leases expire.
                log.exception("results of jobs could not be reported")
            try:
                self._locks.drop(ended.read for each in reports for ended in each.ended)
            except Exception:
                log.exception("waiting jobs could not be resumed")

    def _send(self, reports: Sequence[Report]) -> None:
        """Fill the caches, then end the reads, then reply: who sees an end or a reply finds a full cache."""
        with self._stores.redis.pipeline(transaction=False) as pipe:
            self._store(pipe, reports)
            if ended := [each for report in reports for each in report.ended]:
                self._stores.single_flight.end(pipe, ended)
            self._reply(pipe, reports)
            for report in reports:
                self._release(pipe, report)
            # A command that Redis refuses, for lack of memory for example, must not cost other jobs a reply.
            results = pipe.execute(raise_on_error=False)
        for refused in {str(result) for result in results if isinstance(result, RedisError)}:
            log.error("Redis rejected a command of a reply: %s", refused)

    def _store(self, pipe: Pipeline, reports: Sequence[Report]) -> None:
        for report in reports:
            for connection, calendars in report.lists:
                self._stores.calendar_lists.store(pipe, connection, calendars)
        self._stores.busy.store(pipe, [each for report in reports for each in report.reads])

    def _reply(self, pipe: Pipeline, reports: Sequence[Report]) -> None:
        replies: dict[str, list[bytes]] = {}
        for report in reports:
            replies.setdefault(report.reply_list, []).extend(report.replies)
        for name, messages in replies.items():
            if messages:
                pipe.rpush(name, *messages)
                pipe.expire(name, LEFTOVER_SECONDS)

    def _release(self, pipe: Pipeline, report: Report) -> None:
        for request, probes in report.released:
            self._stores.provider_rate_limiter.release(pipe, request)
            if probes:
                self._stores.circuit_breakers.end_probe(
                    pipe, request.circuit, request.account, request.lease_name
                )
        if report.stale_keys:
            pipe.delete(*report.stale_keys)
