"""Single flight: of several requests that need the same read at the same time, one (the leader) has it made.
The others (followers) wait for its result.

A flight is one read that was claimed or has begun. It is a Redis hash under a random name, with the time of
its claim and its followers. It lives as long as its lease is renewed. If the reading worker dies, the flight
expires, and a follower that notices this claims the read again. A late completion of an expired flight is
ignored.

A completed flight keeps its result long enough for requests that missed the cache before it was filled. It
keeps a failure so that the next requests do not repeat it. The completion time is taken from Redis's clock
after the cache was filled, so a request that began later finds the result in the cache.

Followers wait for a read that probes an open circuit (``store.coordination.circuit_breaker``) only as long as
the probe is young. Then only its leader waits for it, and other requests claim another read.

The flight of a read is found by the read's name and its connection's generation, both looked up in one
script. So after a write no request can follow a read that began before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import cast

from redis import Redis
from redis.client import Pipeline

from store.cache.busy_cache import GENERATION_SECONDS, generation_key, new_generation
from store.coordination.circuit_breaker import YOUNG
from store.lua import Script, named

# Milliseconds. A worker that is alive renews its leases several times in this.
LEASE = 3_000
# Milliseconds for which a failure answers requests that began before it. Later ones retry the read.
RETOLD = 5_000
# Milliseconds for which a read's flight can be found by its name: longer than the longest deadline, a read's
# grace period after it, and the time that its result is kept. Every read leaves such a key.
FINDABLE = 310_000

_CLAIM = Script("coordination/scripts/flight_claim.lua")
_RENEW = Script("coordination/scripts/flight_renew.lua")
_PROBE = Script("coordination/scripts/flight_probe.lua")
_COMPLETE = Script("coordination/scripts/flight_complete.lua")


class ClaimState(IntEnum):
    """The result of a claim."""

    # The read in progress began too early for this request, which reads on its own.
    BYPASS = 0
    # This request has the read made, for itself and its followers.
    LEADER = 1
    # Another request has it made; the result will be pushed to this one's reply list.
    FOLLOWER = 2
    # The read has completed; the claim returns its result.
    COMPLETED = 3


@dataclass(frozen=True, slots=True)
class ReadKey:
    """A read of a connection. ``name`` is equal for equal reads and unique to the connection.

    ``number`` is the job's number in the request that claims it.
    """

    connection: str
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished read. ``failed``: it counts as a failure for the requests that claim it next.

    ``whole``: no part of it has failed.
    """

    flight: str
    body: bytes
    failed: bool
    whole: bool


class SingleFlight:
    """The reads in progress. ``failure_seconds``: how long a failure answers further claims.

    ``asking_seconds``: the longest time between a request's beginning and its last claim. The settings of the
    process that claims decide, not those of the worker that reads. ``young``: how many seconds followers wait
    for a probe.
    """

    def __init__(
        self, redis: Redis, *, failure_seconds: float, asking_seconds: float, young: float = YOUNG
    ) -> None:
        self._redis = redis
        self._failure = int(failure_seconds * 1000)
        self._keep = max(self._failure, int(asking_seconds * 1000))
        self._retell = max(self._failure, min(self._keep, RETOLD))
        self._young = int(young * 1000)

    def claim(
        self,
        reads: Sequence[ReadKey],
        waiter: str,
        *,
        now: int,
        began: float,
        newer_than: int | None,
        lease: float,
        waiting: Mapping[int, str] | None = None,
    ) -> list[tuple[ClaimState, bytes]]:
        """Claim each read; returns the state with the flight (leader, follower) or the result (completed).

        ``waiter`` is the request's reply list, or "" if it cannot follow. When the flight of another request
        completes, the result is pushed there under the read's number. ``waiting`` has the flights that this
        request follows already, by number; it keeps following flights that are in progress.

        ``began`` is when the request began: results completed before it are left to the cache. Reads that
        were claimed before ``newer_than`` are not used. All times are in milliseconds. ``lease``, in seconds,
        is that of a flight until a worker renews it.
        """
        following = waiting or {}
        arguments = named(
            now=now,
            newer_than=newer_than or 0,
            failure_lifetime=self._failure,
            began=began,
            lease=max(1, int(lease * 1000)),
            waiter=waiter,
            unique=new_generation(),
            generation_seconds=GENERATION_SECONDS,
            keep=self._keep,
            keep_failed=self._retell,
            findable=FINDABLE,
            reads=[
                {"name": each.name, "number": each.number, "following": following.get(each.number, "")}
                for each in reads
            ],
        )
        keys = [generation_key(each.connection) for each in reads]
        claims = cast(list[tuple[int, bytes]], _CLAIM.run(self._redis, keys, arguments))
        return [(ClaimState(state), value) for state, value in claims]

    def hold(self, pipe: Pipeline, flights: Sequence[str]) -> None:
        """Queue on ``pipe`` the renewal of these flights' leases."""
        _RENEW.queue(pipe, [_key(each) for each in flights], LEASE)

    def probe(self, pipe: Pipeline, flights: Sequence[str], waiter: str) -> None:
        """Queue on ``pipe`` that these reads are probes, for whose end only ``waiter`` waits."""
        _PROBE.queue(pipe, [_key(each) for each in flights], self._young, waiter)

    def complete(
        self, pipe: Pipeline, landings: Sequence[Completion], *, except_for: str, leftover: int
    ) -> None:
        """Queue on ``pipe`` a reply to each follower of these reads, except the reply list ``except_for``.

        The results are in the cache already, or queued on ``pipe`` before this. A reply list that is not
        fetched expires ``leftover`` seconds later.
        """
        arguments = named(
            **{"except": except_for},
            leftover=leftover,
            flights=[{"failed": each.failed, "whole": each.whole} for each in landings],
        )
        bodies = [each.body for each in landings]
        _COMPLETE.queue(pipe, [_key(each.flight) for each in landings], arguments, *bodies)

    def abandon(self, redis: Redis, flights: Sequence[str]) -> None:
        """Delete, or queue on a pipeline, flights whose reads are not made; followers find them gone."""
        if flights:
            redis.delete(*map(_key, flights))

    def leave(self, waiter: str, waiting: Mapping[int, str]) -> None:
        """Stop following these flights, by number."""
        with self._redis.pipeline(transaction=False) as pipe:
            for number, flight in waiting.items():
                pipe.hdel(_key(flight), f"{waiter}|{number}")
            pipe.execute()


def _key(flight: str) -> str:
    return f"flight:{flight}"
