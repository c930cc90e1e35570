"""Single flight: of all who want the same read at the same time, one has it made and the others wait for it.

A flight is one read that somebody has begun or is about to begin: a Redis hash under a name that nobody else
has ever had, with the moment of its claim and who waits for it. It exists for as long as its lease is
renewed, so that a reader that dies hands over: whoever notices that the flight is gone may claim another.
What a reader says of a flight that is gone reaches nobody. Once landed, a flight keeps what was read for as
long as somebody may ask for it who looked into the cache before that was there, and failures for those who
would only fail again. The moment of landing is Redis's own, after the cache was filled: whoever began later
finds in the cache what is to be found.

A read that probes an open circuit (``store.coordination.circuit_breaker``) is waited for as long as it is
young. Then it is left to the request it is made for, and who else wants the same claims another.

Which flight makes a read stands under the read's name and its connection's generation, looked up in the
same step. After a write nobody can join a read that began before it.
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

# Milliseconds: a reader that is alive renews its lease several times in this.
LEASE = 3_000
# Milliseconds for which what has failed is told to who began before: who has more time may find it mended.
RETOLD = 5_000
# Milliseconds for which a read's flight can be found: longer than the longest deadline, what a read may have
# beyond it, and for how long what was read stays. Every read leaves such a key.
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
    """What a claim comes to."""

    # The read under way began too early for who asks now: it reads for itself.
    BYPASS = 0
    # It has the read made, for all.
    LEADER = 1
    # Somebody else has; the reply will come.
    FOLLOWER = 2
    # It has been made.
    COMPLETED = 3


@dataclass(frozen=True, slots=True)
class ReadKey:
    """A read of a connection; ``name`` is the same for all reads that ask for the same, of it alone."""

    connection: str
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Completion:
    """A read that is over; ``failed`` when it counts as a failure for those who come next.

    ``whole`` when nothing of it has failed.
    """

    flight: str
    body: bytes
    failed: bool
    whole: bool


class SingleFlight:
    """The reads under way. ``failure_seconds``: for how long a failure answers who asks again.

    ``asking_seconds``: the longest time between a request's beginning and its last claim. Both are those of
    who claims, whatever is set for who reads. ``young``: for how many seconds others wait for a probe.
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
        """Whose turn each read is: with its flight for who leads or waits, with the reply when it has landed.

        To ``waiter``, the name of a list or "" for nobody, a reply is pushed under the wish's number when
        somebody else's flight lands. ``waiting`` has the flights that it waits for already, by number: it
        stays with those that are under way. ``began`` is when the request did: what landed before is left to
        the cache. ``newer_than``: no read that was claimed before will do. All moments in milliseconds;
        ``lease``, until a worker holds it, in seconds.
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
        """Queue on ``pipe`` that these reads go on."""
        pipe.eval(HOLD, len(flights), *map(_key, flights), LEASE)

    def probe(self, pipe: Pipeline, flights: Sequence[str], waiter: str) -> None:
        """Queue on ``pipe`` that these reads are probes, which only ``waiter`` waits for to their end."""
        pipe.eval(PROBE, len(flights), *map(_key, flights), self._young, waiter)

    def complete(self, pipe: Pipeline, landings: Sequence[Completion], *, told: str, leftover: int) -> None:
        """Queue on ``pipe`` a reply to each who waits for these reads, but for the list ``told``.

        What was read is in the cache, or before this on ``pipe``. A list of replies ends by itself
        ``leftover`` seconds later.
        """
        arguments: list[int | str | bytes] = [leftover, told]
        for each in landings:
            arguments += int(each.failed), int(each.whole), each.body
        keys = [_key(each.flight) for each in landings]
        pipe.eval(LAND, len(keys), *keys, *arguments)

    def abandon(self, redis: Redis, flights: Sequence[str]) -> None:
        """Say, or queue on a pipeline, that these reads are not made: who waits for one finds it gone."""
        if flights:
            redis.delete(*map(_key, flights))

    def leave(self, waiter: str, waiting: Mapping[int, str]) -> None:
        """Wait no longer for these flights, by number."""
        with self._redis.pipeline(transaction=False) as pipe:
            for number, flight in waiting.items():
                pipe.hdel(_key(flight), f"{waiter}|{number}")
            pipe.execute()


def _key(flight: str) -> str:
    return f"flight:{flight}"
