"""Helpers for coalesced reads: a reader that a test controls, and requests that share reads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

from providers.base import Failed, Read
from providers.errors import Reason
from store.sql.queries.connection_rows import Credentials
from tests.waiting import until
from tests.workers.conftest import DAY, put_work, read_one, replies, run_drain
from workers.execution import reads
from workers.jobs import Job, ReadBusy, Reply
from workers.runtime import Runtime

REFUSED = Failed(Reason.PROVIDER_ERROR, "refused")
PATIENCE = 20.0


def now() -> int:
    """The current time in milliseconds."""
    return time.time_ns() // 1_000_000


class Reading:
    """Counts reads, and finishes each one when the test releases it."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.begun, self.release = threading.Semaphore(0), threading.Event()
        self.reads: Counter[tuple[str, ...]] = Counter()
        if at_once:
            self.release.set()

    def __call__(self, runtime: Runtime, job: Job, credentials: Credentials, deadline: float) -> Reply:
        self.reads[job.calendars] += 1  # type: ignore[union-attr, index]
        self.begun.release()
        assert self.release.wait(PATIENCE)
        return read_one(runtime, job, credentials, deadline)


def waiting(runtime: Runtime, count: int) -> None:
    """Wait until the jobs of this many further requests wait for each read of the process."""
    locks = runtime.pool.locks
    until(lambda: locks._waiting and min(map(len, locks._waiting.values())) >= count, PATIENCE)


def read(
    runtime: Runtime, fanout: str, connections: list[str], *, seconds: float = 10.0, week: int = 0
) -> Any:
    """Read the main calendar of each connection in one fan-out; returns its replies."""
    span = (week * 7 * DAY, (week + 1) * 7 * DAY)
    put_work(runtime, fanout, [ReadBusy(each, ("primary",), *span) for each in connections])
    run_drain(runtime, fanout, reads.perform, seconds=seconds)
    return [reply for _, reply in replies(runtime, fanout)]


def was_read(reply: Any) -> bool:
    return reply.failed is None and all(isinstance(each, Read) for each in reply.outcomes.values())
