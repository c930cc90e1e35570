"""Shares: how much one organization may use at once of what all organizations use.

Without shares, one organization could take every place of the requests that wait for workers, every thread
that sends webhooks, or the memory of a web process. All keys that are bound to no organization count as one.
An organization may have quotas of its own instead of those of the installation (``OwnQuotas``).

A web process works on one request of a tenant at a time (``TURNS``). All its threads share one interpreter
lock: when many slow reads of one tenant end at the same moment, they would all run before requests of other
tenants. A request pauses its turn while it waits for workers or for a lock.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from types import MappingProxyType
from typing import cast

from redis import Redis

# The tenant of keys that are bound to no organization, of the dashboard, and of upkeep. Other tenants are
# internal ids of organizations.
UNBOUND = 0
# The tenant of senders without a key and a session: they cannot be distinguished.
STRANGERS = -1

# The tenant of this request or task. Tasks get it in a header (``workers.telemetry.tracing``).
current: ContextVar[int] = ContextVar("tenant", default=UNBOUND)

MIB = 1024 * 1024

# Processes report what they use every five seconds. A report that is older is of a process that has ended.
REPORT_SECONDS = 16.0
REPORTS = "shares"


# Beside 130 slow reads of one tenant, the 95th percentile of another tenant's cached slots is 2.0 to 2.5
# times that alone with one turn, 2.8 to 5.6 times with two, and 9 times with four. Of short requests of one
# tenant, 84 to 112 end in a second with one turn, and 98 to 123 with none.
TURNS = 1
# Seconds without any end of a turn, after which requests continue without one: if the database hangs, they do
# not wait for each other's timeouts. While turns end, requests wait longer than this: if a burst stopped to
# wait, all of its requests would run at once.
TURN_SECONDS = 1.0


class _Turns:
    """The turns of one tenant."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._free = TURNS
        self._changed_at = 0.0

    def acquire(self, deadline: float) -> bool:
        """Wait for a turn; returns whether the request has one."""
        with self._changed:
            while not self._free:
                left = min(deadline, self._changed_at + TURN_SECONDS) - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
            self._change(-1)
            return True

    def release(self) -> None:
        with self._changed:
            self._change(1)
            self._changed.notify()

    def _change(self, free: int) -> None:
        self._free += free
        self._changed_at = time.monotonic()


_turns: dict[int, _Turns] = {}
# The turns of which this request has one.
_taken: ContextVar[_Turns | None] = ContextVar("turn", default=None)


class Quota(StrEnum):
    """The names of the things that tenants share."""

    # Requests that wait for workers to read, and to write: over the installation, and in each web process.
    WAITING_READS = "waitingReads"
    WAITING_WRITES = "waitingWrites"
    # Users with held time, of one organization.
    HELD_USERS = "heldUsers"
    # Webhook endpoints that a worker serves at once.
    WEBHOOK_TURNS = "webhookTurns"
    # Bytes of request bodies in one web process.
    BODY_BYTES = "bodyBytes"
    # Requests of all keys of one organization: a rate, and none without a quota of its own.
    REQUESTS_PER_MINUTE = "requestsPerMinute"


# Quotas of an organization's own, by name. An absent one is the installation's.
OwnQuotas = Mapping[str, int]
OWN = tuple(each for each in Quota if each is not Quota.BODY_BYTES)
MAX_OWN = 1_000_000
NO_OWN: OwnQuotas = MappingProxyType({})

# The quotas that the organization of this request has of its own.
own_quotas: ContextVar[OwnQuotas] = ContextVar("own quotas", default=NO_OWN)


def set_tenant(tenant: int, own: OwnQuotas = NO_OWN) -> None:
    """Set the tenant of this request or task."""
    current.set(tenant)
    own_quotas.set(own)


class QuotaExceeded(Exception):
    """The tenant uses its whole share."""

    def __init__(self, quota: Quota) -> None:
        super().__init__(f"the share of {quota} is used up")
        self.quota = quota


class Exhausted(Exception):
    """All tenants together use everything."""


def share_of(total: int, percent: int) -> int:
    """The share of one tenant."""
    return max(1, total * percent // 100)


class SharedPlaces:
    """Counts what the tenants use of ``total`` in this process, at most ``share`` each; thread-safe.

    ``set_own`` gives a tenant another share.
    """

    def __init__(self, quota: Quota, total: int, share: int) -> None:
        self.quota = quota
        self.total = total
        self.share = share
        self._lock = threading.Lock()
        self._used: Counter[int] = Counter()
        self._left = total
        self._own: dict[int, int] = {}

    def set_own(self, tenant: int, share: int | None) -> None:
        """Set the share of one tenant; None is that of all."""
        with self._lock:
            if share is None:
                self._own.pop(tenant, None)
            else:
                self._own[tenant] = share

    def _share_of(self, tenant: int) -> int:
        return self._own.get(tenant, self.share)

    def take(self, tenant: int, amount: int = 1) -> None:
        """Count ``amount`` more.

        :raise QuotaExceeded: if the tenant then had more than its share; nothing is counted
        :raise Exhausted: if there is not so much left
        """
        with self._lock:
            # A share of everything is none.
            share = self._share_of(tenant)
            if share < self.total and self._used[tenant] + amount > share:
                raise QuotaExceeded(self.quota)
            if amount > self._left:
                raise Exhausted
            self._used[tenant] += amount
            self._left -= amount

    def release(self, tenant: int, amount: int = 1) -> None:
        """Count ``amount`` less."""
        with self._lock:
            self._used[tenant] -= amount
            self._left += amount
            if not self._used[tenant]:
                del self._used[tenant]

    def has_room(self, tenant: int) -> bool:
        """Whether the tenant may take one more."""
        with self._lock:
            return self._used[tenant] < self._share_of(tenant) and self._left > 0

    def used_by(self, tenant: int) -> int:
        """The amount that a tenant uses."""
        return self._used[tenant]

    @property
    def is_full(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    @property
    def largest(self) -> int:
        """The amount of the tenant that uses most."""
        with self._lock:
            return max(self._used.values(), default=0)


def take_turn(tenant: int) -> None:
    """Take a turn of a tenant for the rest of this request; without one if none ends for ``TURN_SECONDS``."""
    _take(_turns.setdefault(tenant, _Turns()))


def end_turn(_error: BaseException | None = None) -> None:
    """End the turn of this request, if it has one; Flask calls this with the error of the request."""
    if (turns := _taken.get()) is not None:
        _taken.set(None)
        turns.release()


@contextmanager
def turn_paused(deadline: float = math.inf) -> Iterator[None]:
    """Context in which this request waits for something else than the processor.

    After it, the request waits for another turn, but not past ``deadline``, a moment of ``time.monotonic()``.
    """
    turns = _taken.get()
    end_turn()
    try:
        yield
    finally:
        if turns is not None:
            _take(turns, deadline)


def _take(turns: _Turns, deadline: float = math.inf) -> None:
    if turns.acquire(deadline):
        _taken.set(turns)


def report(redis: Redis, process: str, *places: SharedPlaces) -> None:
    """Store what the largest tenants of this process use, for the metrics.

    :raise redis.RedisError: when Redis is down
    """
    seconds, _ = redis.time()
    with redis.pipeline(transaction=False) as pipe:
        for each in places:
            pipe.hset(REPORTS, f"{each.quota}:{process}", f"{seconds}:{each.largest}")
        pipe.expire(REPORTS, int(REPORT_SECONDS * 4))
        pipe.execute()


def reported(redis: Redis) -> dict[Quota, int]:
    """For each quota of processes: what one tenant uses in one process, at most. Deletes old reports.

    :raise redis.RedisError: when Redis is down
    """
    seconds, _ = redis.time()
    found: dict[Quota, int] = {}
    old = []
    for name, value in cast(dict[bytes, bytes], redis.hgetall(REPORTS)).items():
        at, amount = map(int, value.split(b":"))
        quota = Quota(name.decode().partition(":")[0])
        if seconds - at > REPORT_SECONDS:
            old.append(name)
        else:
            found[quota] = max(found.get(quota, 0), amount)
    if old:
        redis.hdel(REPORTS, *old)
    return found
