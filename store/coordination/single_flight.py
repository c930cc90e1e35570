"""Single flight: of several requests that need the same read at the same time, one (the leader) sends it to
a worker. The others (followers) wait for its result.

A flight is one read that was claimed or has begun. Redis keeps it as long as its lease is renewed. If the
reading worker dies, the flight expires, and a follower that notices this claims the read again. A late
completion of an expired flight reaches only the leader.

A completed flight keeps its result long enough for requests that missed the cache before it was filled. It
keeps a failure so that the next requests do not repeat it. The completion time is taken from Redis's clock
after the cache was filled, so a request that began later finds the result in the cache.

The key of a flight contains the read's name and its connection's generation, which the same script looks up.
So after a write no request can follow a read that began before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar, cast

from redis import Redis
from redis.client import Pipeline

from store.cache.busy_buckets import generation_key
from store.cache.busy_cache import GENERATION_SECONDS, new_generation
from store.lua import Script, json_argument

# Milliseconds. A worker that is alive renews its leases several times in this.
LEASE = 3_000
# Milliseconds for which a failed or partial result is kept for requests that began before it ended. A failed
# read answers later ones too, for ``failure_seconds``.
FAILURE_KEPT = 5_000
# Milliseconds for which the followers of a flight are kept: longer than the longest deadline, and a read's
# grace period after it.
FOLLOWED = 310_000
# The number of flights that one script changes. More would block Redis for long, and Lua unpacks no more than
# 8 000 keys.
FLIGHTS_AT_ONCE = 256

Item = TypeVar("Item")

_CLAIM = Script("coordination/scripts/flight_claim.lua")
_RENEW = Script("coordination/scripts/flight_renew.lua")
_COMPLETE = Script("coordination/scripts/flight_complete.lua")


class ClaimState(IntEnum):
    """The result of a claim."""

    # The read in progress was claimed too early for this request, which reads on its own.
    BYPASS = 0
    # This request sends the read to a worker, for itself and its followers.
    LEADER = 1
    # Another request has sent it; the result will be pushed to this one's reply list.
    FOLLOWER = 2
    # The read has completed; the claim returns its result.
    COMPLETED = 3


@dataclass(frozen=True, slots=True)
class ReadKey:
    """A read of a connection. ``name`` is equal for equal reads of the connection, and for no other reads.

    ``number`` is the job's number in the request that claims it.
    """

    connection: str
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished read. ``failed``: it counts as a failure for the requests that claim it next.

    ``whole``: no part of it has failed. ``number``: its number in the leader's request; None if the leader
    was answered before, because its request timed out.
    """

    flight: str
    body: bytes
    failed: bool
    whole: bool
    number: int | None = None


class SingleFlight:
    """The reads in progress. ``failure_seconds``: how long a failure answers further claims.

    ``claim_seconds``: the longest time between a request's beginning and its last claim; a result is kept for
    so long. The settings of the process that claims decide, not those of the worker that reads.
    """

    def __init__(self, redis: Redis, *, failure_seconds: float, claim_seconds: float) -> None:
        self._redis = redis
        self._failure = int(failure_seconds * 1000)
        self._keep = max(self._failure, int(claim_seconds * 1000))
        self._keep_failed = max(self._failure, min(self._keep, FAILURE_KEPT))

    def claim(
        self,
        reads: Sequence[ReadKey],
        waiter: str,
        *,
        claimed_at: int,
        began: float,
        newer_than: int | None,
        lease_seconds: float,
        current_flights: Mapping[int, str] | None = None,
    ) -> list[tuple[ClaimState, bytes]]:
        """Claim each read; returns the state with the flight (leader, follower) or the result (completed).

        ``waiter`` is the request's reply list, or "" if it cannot follow. When the flight of another request
        completes, the result is pushed there under the read's number. ``current_flights`` has the flights
        that this request leads or follows already, by number. Those in progress are kept.

        ``claimed_at`` is the time of this call, by the clock of the caller. ``began`` is when the request
        looked into the cache, or earlier: results completed before it are left to the cache. Reads that were
        claimed before ``newer_than`` are not used. All three are in milliseconds. ``lease_seconds`` is the
        lease of a flight until a worker renews it.
        """
        following = current_flights or {}
        claims: list[tuple[int, bytes]] = []
        for some in _in_parts(reads):
            arguments = json_argument(
                claimed_at=claimed_at,
                newer_than=newer_than or 0,
                failure_lifetime=self._failure,
                began=began,
                lease=max(1, int(lease_seconds * 1000)),
                waiter=waiter,
                unique=new_generation(),
                generation_seconds=GENERATION_SECONDS,
                keep=self._keep,
                keep_failed=self._keep_failed,
                followed=FOLLOWED,
                reads=[
                    {"name": each.name, "number": each.number, "following": following.get(each.number, "")}
                    for each in some
                ],
            )
            keys = [generation_key(each.connection) for each in some]
            claims += cast(list[tuple[int, bytes]], _CLAIM.run(self._redis, keys, arguments))
        return [(ClaimState(state), value) for state, value in claims]

    def renew(self, pipe: Pipeline, flights: Sequence[str]) -> None:
        """Queue on ``pipe`` the renewal of these flights' leases."""
        _set_leases(pipe, flights, LEASE)

    def complete(
        self, pipe: Pipeline, completions: Sequence[Completion], *, replies: str, leftover: int
    ) -> None:
        """Queue on ``pipe`` a reply to the leader, whose list is ``replies``, and to each follower.

        The results are in the cache already, or queued on ``pipe`` before this. A reply list that is not
        fetched expires ``leftover`` seconds later.
        """
        flights = []
        for each in completions:
            flight: dict[str, Any] = {"id": each.flight, "failed": each.failed, "whole": each.whole}
            flights.append(flight if each.number is None else {**flight, "number": each.number})
        keys = [flight_key(each.flight) for each in completions]
        followers = [_followers_key(each.flight) for each in completions]
        bodies = [each.body for each in completions]
        arguments = json_argument(replies=replies, leftover=leftover, flights=flights)
        _COMPLETE.queue(pipe, [*keys, *followers], arguments, *bodies)

    def abandon(self, flights: Sequence[str], pipe: Pipeline | None = None) -> None:
        """Delete, or queue on ``pipe``, flights that end without a result; followers claim again."""
        if pipe is not None:
            _set_leases(pipe, flights, 0)
        elif flights:
            with self._redis.pipeline(transaction=False) as own_pipe:
                _set_leases(own_pipe, flights, 0)
                own_pipe.execute()

    def leave(self, waiter: str, waiting: Mapping[int, str]) -> None:
        """Stop following these flights, by number."""
        with self._redis.pipeline(transaction=False) as pipe:
            for number, flight in waiting.items():
                pipe.srem(_followers_key(flight), f"{waiter}|{number}")
            pipe.execute()


def _set_leases(pipe: Pipeline, flights: Sequence[str], milliseconds: int) -> None:
    """Queue new leases for these flights; 0 ends them."""
    for some in _in_parts(flights):
        _RENEW.queue(pipe, [flight_key(each) for each in some], milliseconds, *some)


def _in_parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + FLIGHTS_AT_ONCE] for start in range(0, len(items), FLIGHTS_AT_ONCE))


def flight_key(flight: str) -> str:
    """The Redis key of a flight: without its last part, which is unique to each claim."""
    return f"flight:{flight.rpartition(':')[0]}"


def _followers_key(flight: str) -> str:
    return f"flight-followers:{flight}"
