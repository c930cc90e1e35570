"""Single flight: of several jobs that need the same read at the same time, one reads and the others wait.

A worker takes the lock of a read before it calls the provider. A job that finds the lock taken waits for the
end, and then looks at the result that was recorded for it. Only if there is none does it read itself. A lock
expires unless its worker renews it, so the read of a worker that died is taken by another job.

The last result of a read is kept long enough for requests that missed the cache before it was filled. A
failure is kept so that the next requests do not repeat it. The time of the end is taken from Redis's clock
after the cache was filled, so a request that began later finds the result in the cache.

Lock and result carry the generation of the connection. So after a write no request can use or join a read
that began before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from redis import Redis
from redis.client import Pipeline

from store.cache.busy_cache import GENERATION_SECONDS, generation_key, new_generation
from store.lua import Script, json_argument

# Milliseconds. A worker that is alive renews its locks several times in this.
LEASE = 3_000
# Milliseconds for which a failed or partial result is kept for requests that began before it ended. A failed
# read answers later ones too, for ``ReadTerms.failure_lifetime``.
FAILURE_KEPT = 5_000
# Milliseconds in which a background refresh is sent once: longer than a worker needs to take it.
REFRESH_CLAIMED = 1_000
# The number of reads in one script. More would block Redis for long.
READS_AT_ONCE = 256

_TAKE = Script("coordination/scripts/read_take.lua")
_END = Script("coordination/scripts/read_end.lua")
_RENEW = Script("coordination/scripts/read_renew.lua")


class SharedRead(NamedTuple):
    """A read of a connection. ``name`` is equal for equal reads, and for no other reads."""

    connection: str
    name: str


class ReadLock(NamedTuple):
    """The lock of a read, as the job ``holder`` has it."""

    read: SharedRead
    holder: str


class ReadTerms(NamedTuple):
    """Which results of other requests a request uses, and how long its own are kept; in milliseconds.

    ``sent`` is when it sent its jobs, by its own clock. ``began`` is when it looked into the cache, or
    earlier: results that ended before are left to the cache. Reads that were sent before ``newer_than`` are
    not used. ``failure_lifetime`` is how long a failure answers later requests. ``keep`` is how long a result
    is kept.
    """

    sent: int
    began: float
    newer_than: int
    failure_lifetime: int
    keep: int

    def lifetime(self, *, whole: bool) -> int:
        """How long a result is kept; ``whole``: no part of it has failed."""
        return self.keep if whole else max(self.failure_lifetime, min(self.keep, FAILURE_KEPT))


class Waiting(NamedTuple):
    """The read is under way; ``holder`` is the job that reads."""

    holder: str


class Locked(NamedTuple):
    """The job has the lock, under this generation of its connection."""

    generation: str


class Recorded(NamedTuple):
    """The read has ended; this is its encoded result."""

    body: bytes


class Wanted(NamedTuple):
    """A job, named ``holder``, that wants to read. It already waits for the job ``waits_for``, if any."""

    read: SharedRead
    holder: str
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """A read that has ended. ``lifetime`` is how long its result is kept, in milliseconds; 0: it has none.

    ``failure_counts``: it is a failure for later requests.
    """

    lock: ReadLock
    generation: str
    sent: int
    body: bytes = b""
    failure_counts: bool = False
    lifetime: int = 0


class SingleFlight:
    """The reads under way. ``failure_seconds``: how long a failure answers further requests.

    ``keep_seconds``: the longest time between a request's beginning and its last look at a result. The
    settings of the process that asks decide, not those of the worker that reads.
    """

    def __init__(self, redis: Redis, *, failure_seconds: float, keep_seconds: float) -> None:
        self._redis = redis
        self._failure = int(failure_seconds * 1000)
        self._keep = max(self._failure, int(keep_seconds * 1000))

    def terms(self, sent: float, began: float, newer_than: int | None) -> ReadTerms:
        """The terms of a request of this process; times in milliseconds."""
        return ReadTerms(int(sent), began, newer_than or 0, self._failure, self._keep)

    def take(self, wanted: Sequence[Wanted], terms: ReadTerms) -> list[Waiting | Locked | Recorded]:
        """Take the lock of each read; for a read that has one, its holder, or the recorded result."""
        found: list[Waiting | Locked | Recorded] = []
        for first in range(0, len(wanted), READS_AT_ONCE):
            some = wanted[first : first + READS_AT_ONCE]
            keys = [key for each in some for key in (generation_key(each.read.connection), *_keys(each.read))]
            arguments = json_argument(
                sent=terms.sent,
                newer_than=terms.newer_than,
                began=terms.began,
                failure_lifetime=terms.failure_lifetime,
                lease=LEASE,
                unique=new_generation(),
                generation_seconds=GENERATION_SECONDS,
                reads=[{"holder": each.holder, "following": each.waits_for} for each in some],
            )
            replies = cast(list[tuple[int, bytes]], _TAKE.run(self._redis, keys, arguments))
            found += [_state(state, value) for state, value in replies]
        return found

    @staticmethod
    def end(pipe: Pipeline, ended: Sequence[Ended]) -> None:
        """Queue on ``pipe`` the results of reads, and the release of their locks.

        The results are in the cache already, or queued on ``pipe`` before this.
        """
        for first in range(0, len(ended), READS_AT_ONCE):
            some = ended[first : first + READS_AT_ONCE]
            names = ("generation", "sent", "lifetime")
            reads = [
                {"holder": each.lock.holder, "failed": each.failure_counts}
                | {name: getattr(each, name) for name in names}
                for each in some
            ]
            keys = [key for each in some for key in _keys(each.lock.read)]
            _END.queue(pipe, keys, json_argument(reads=reads), *(each.body for each in some))

    def renew(self, locks: Sequence[ReadLock]) -> None:
        """Renew the locks of reads that are under way, unless another job has taken them over."""
        for first in range(0, len(locks), READS_AT_ONCE):
            some = locks[first : first + READS_AT_ONCE]
            keys = [lock_key(each.read) for each in some]
            _RENEW.run(self._redis, keys, LEASE, *(each.holder for each in some))

    def under_way(self, reads: Sequence[SharedRead]) -> list[bool]:
        """Whether each read is under way."""
        return [value is not None for value in self._redis.mget([lock_key(each) for each in reads])]

    def claim_refreshes(self, reads: Sequence[SharedRead]) -> list[bool]:
        """Whether to send each background read: it is not under way, and was not sent just now."""
        with self._redis.pipeline(transaction=False) as pipe:
            for each in reads:
                pipe.set(f"read-sent:{each.name}", 1, nx=True, px=REFRESH_CLAIMED)
            claimed = pipe.execute()
        return [bool(free) and not busy for free, busy in zip(claimed, self.under_way(reads), strict=True)]


def _state(state: int, value: bytes) -> Waiting | Locked | Recorded:
    if state == 2:
        return Recorded(value)
    return Locked(value.decode()) if state else Waiting(value.decode())


def lock_key(read: SharedRead) -> str:
    """The Redis key of the lock of a read."""
    return f"read-lock:{read.name}"


def result_key(read: SharedRead) -> str:
    """The Redis key of the last result of a read."""
    return f"read-result:{read.name}"


def _keys(read: SharedRead) -> tuple[str, str]:
    return lock_key(read), result_key(read)
