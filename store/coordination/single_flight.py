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

from store.cache.busy_cache import GENERATION, generation_key, new_generation
from store.coordination.circuit_breaker import YOUNG
from store.coordination.redis_clock import MOMENT

# Milliseconds. A worker that is alive renews its leases several times in this.
LEASE = 3_000
# Milliseconds for which a failure answers requests that began before it. Later ones retry the read.
RETOLD = 5_000
# Milliseconds for which a read's flight can be found by its name: longer than the longest deadline, a read's
# grace period after it, and the time that its result is kept. Every read leaves such a key.
FINDABLE = 310_000

# KEYS: the generations. ARGV: now, newer than, milliseconds a failure counts for, when the request began,
# milliseconds of the lease, who waits or "", what nobody has used as a name, milliseconds to keep what was
# read and what was not, then for each read its name, the number of the job, and the flight that is waited for
# already or "".
CLAIM = (
    GENERATION
    + MOMENT
    + """
local now, newer, failing, began = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local function old(young) return young and tonumber(young) <= moment() end
local answers = {}
for n, of in ipairs(KEYS) do
    local name, number, before = ARGV[7 + 3 * n], ARGV[8 + 3 * n], ARGV[9 + 3 * n]
    local waiter = ARGV[6] .. '|' .. number
    local found = redis.call('HMGET', 'flight:' .. before, waiter, 'landed', 'young', 'for')
    if found[1] and not found[2] and (found[4] == ARGV[6] or not old(found[3])) then
        answers[n] = {2, before}
    else
        -- The one that is waited for is to be left.
        if found[1] then redis.call('HDEL', 'flight:' .. before, waiter) end
        local place = 'flight-of:' .. name .. ':' .. generation(of, ARGV[7])
        local flight = redis.call('GET', place) or ''
        local kept = redis.call('HMGET', 'flight:' .. flight, 'at', 'landed', 'failed', 'young')
        local at, landed = tonumber(kept[1]), tonumber(kept[2])
        local refused = kept[3] == '1' and moment() - landed < failing
        if landed and at >= newer and (landed >= began or refused) then
            answers[n] = {3, redis.call('HGET', 'flight:' .. flight, 'body')}
        elseif at and not landed and at < newer then
            answers[n] = {0, ''}
        else
            if landed or not at or old(kept[4]) then
                flight = ARGV[7] .. '-' .. n
                redis.call('SET', place, flight, 'PX', FINDABLE)
                redis.call('HSET', 'flight:' .. flight, 'at', now, 'keep', ARGV[8], 'retell', ARGV[9])
                redis.call('PEXPIRE', 'flight:' .. flight, ARGV[5])
                answers[n] = {1, flight}
            else
                answers[n] = {2, flight}
            end
            if ARGV[6] ~= '' then redis.call('HSET', 'flight:' .. flight, waiter, number) end
        end
    end
end
return answers
""".replace("FINDABLE", str(FINDABLE))
)

# KEYS: flights. ARGV: milliseconds of the lease.
HOLD = """
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
"""

# KEYS: flights. ARGV: milliseconds for which others wait for them, who does for longer.
PROBE = (
    MOMENT
    + """
local young = moment() + ARGV[1]
for _, key in ipairs(KEYS) do
    if redis.call('EXISTS', key) == 1 then redis.call('HSET', key, 'young', young, 'for', ARGV[2]) end
end
"""
)

# KEYS: flights. ARGV: seconds to keep a reply that nobody fetches, who has been answered already, then for
# each flight whether it has failed, whether it is whole, and what was read.
LAND = (
    MOMENT
    + """
local landed = moment()
for n, key in ipairs(KEYS) do
    local failed, whole, body = ARGV[3 * n], ARGV[1 + 3 * n], ARGV[2 + 3 * n]
    local kept = redis.call('HGETALL', key)
    local at, keep, retell
    for i = 1, #kept, 2 do
        local split = string.find(kept[i], '|', 1, true)
        if kept[i] == 'at' then
            at = kept[i + 1]
        elseif kept[i] == 'keep' then
            keep = kept[i + 1]
        elseif kept[i] == 'retell' then
            retell = kept[i + 1]
        elseif split and string.sub(kept[i], 1, split - 1) ~= ARGV[2] then
            local replies = string.sub(kept[i], 1, split - 1)
            redis.call('RPUSH', replies, struct.pack('<I4', tonumber(kept[i + 1])) .. body)
            redis.call('EXPIRE', replies, ARGV[1])
        end
    end
    if keep then
        redis.call('DEL', key)
        redis.call('HSET', key, 'at', at, 'landed', landed, 'failed', failed, 'body', body)
        redis.call('PEXPIRE', key, whole == '1' and keep or retell)
    end
end
"""
)


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
        self._claim = redis.register_script(CLAIM)
        self._failure = int(failure_seconds * 1000)
        self._keep = max(self._failure, int(asking_seconds * 1000))
        self._retell = max(self._failure, min(self._keep, RETOLD))
        self._young = int(young * 1000)

    def claim(
        self,
        wishes: Sequence[ReadKey],
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
        arguments: list[float | str] = [
            now,
            newer_than or 0,
            self._failure,
            began,
            max(1, int(lease * 1000)),
            waiter,
            new_generation(),
            self._keep,
            self._retell,
        ]
        for wish in wishes:
            arguments += wish.name, wish.number, (waiting or {}).get(wish.number, "")
        keys = [generation_key(wish.connection) for wish in wishes]
        answers = cast(list[tuple[int, bytes]], self._claim(keys=keys, args=arguments))
        return [(ClaimState(turn), value) for turn, value in answers]

    def hold(self, pipe: Pipeline, flights: Sequence[str]) -> None:
        """Queue on ``pipe`` the renewal of these flights' leases."""
        pipe.eval(HOLD, len(flights), *map(_key, flights), LEASE)

    def probe(self, pipe: Pipeline, flights: Sequence[str], waiter: str) -> None:
        """Queue on ``pipe`` that these reads are probes, for whose end only ``waiter`` waits."""
        pipe.eval(PROBE, len(flights), *map(_key, flights), self._young, waiter)

    def complete(self, pipe: Pipeline, landings: Sequence[Completion], *, told: str, leftover: int) -> None:
        """Queue on ``pipe`` a reply to each follower of these reads, except the reply list ``told``.

        The results are in the cache already, or queued on ``pipe`` before this. A reply list that is not
        fetched expires ``leftover`` seconds later.
        """
        arguments: list[int | str | bytes] = [leftover, told]
        for each in landings:
            arguments += int(each.failed), int(each.whole), each.body
        keys = [_key(each.flight) for each in landings]
        pipe.eval(LAND, len(keys), *keys, *arguments)

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
