"""Circuit breakers for providers and accounts that do not answer, shared by all workers through Redis.

A breaker is closed while its calls are answered. It opens when they fail, and then refuses calls. After a
pause one job may call as a probe: an answer closes the breaker, a failure restarts the pause. While the probe
is young, other jobs wait for it; when it takes longer, they are refused.

Each account has a breaker, which opens after a number of failures in a row. Each provider has one, which
opens when a number of accounts in a row have failed and no account was answered in between. Three rules keep
a few bad accounts from opening their provider's breaker:

- A failure does not count there when any account was answered after its call began. A few accounts that hang
  are reported last, when all others have been answered.
- An account counts once until it is answered again.
- An account that has failed waits for one more pause before it may probe the provider.

Each family of calls has its own breakers, so that a failing operation does not stop another.

A failure is sent to Redis as soon as it happens. Answers are collected in the process and sent with its next
message to Redis. Events during an outage of Redis are dropped, so that they open or close no breaker later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, cast

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from store.coordination.redis_clock import MOMENT

log = logging.getLogger(__name__)

# Milliseconds after which the last failure expires if no other follows, and likewise the last answer.
REMEMBERED = 3_600_000

# Seconds after which an answer that was noted is too old to close a breaker.
STALE = 5.0

# Seconds for which other jobs wait for a probe: nearly all calls of a healthy provider take less, including a
# token refresh. If the deadline is short, they wait for this share of it.
YOUNG = 1.0
YOUNG_SHARE = 0.25

# For scripts that ask whether calls may begin. "key" is a breaker, "account" that of who asks.
#
# shut: milliseconds until it may be asked again, none or less when it may now; and for which who probes may
# be waited for, none or less when nobody is to wait. A probe that is no longer young ends with its lease.
# try: note who probes what is open, for how long its lease lasts and how long it is young; whether it does.
LOOK = """
local function breaker(key)
    local kept = redis.call('HMGET', key, 'until', 'trying', 'by', 'young')
    return {
        key = key, due = tonumber(kept[1]), trying = tonumber(kept[2]) or 0, by = kept[3],
        young = tonumber(kept[4]) or 0
    }
end
local function shut(breaker, account, id, now, pause)
    if not breaker.due or (breaker.by == id and breaker.trying > now) then return 0, 0 end
    local rest = breaker.due - now
    if rest <= 0 and breaker.trying > now then
        if breaker.young > now then return 0, breaker.young - now end
        return breaker.trying - now, 0
    end
    if rest <= 0 and redis.call('SISMEMBER', breaker.key .. ':failing', account) == 1 then
        rest = breaker.due + pause - now
    end
    return rest, 0
end
local function try(breaker, account, id, now, lease, young)
    if breaker.due then
        breaker.trying, breaker.by, breaker.young = now + lease, id, now + young
        redis.call('HSET', breaker.key, 'trying', breaker.trying, 'by', id, 'account', account,
            'young', breaker.young)
    end
    return breaker.due
end
"""

# Whole milliseconds: what is stored of them loses no digit.
NOW = MOMENT + "local now = tonumber(ARGV[1]) or math.floor(moment())\n"

# KEYS: the breakers of a provider and of an account, when the provider has last answered. ARGV: now or "",
# whether the call is given up, after how many accounts and after how many failures they open (0: never),
# milliseconds of the pause, for which to remember, and since the call began. Returns for both whether
# they are open, and whether they have just been opened.
FAILED = (
    NOW
    + """
local provider, account = KEYS[1], KEYS[2]
local breakers = {provider, account}
local limits, pause, remembered = {tonumber(ARGV[3]), tonumber(ARGV[4])}, tonumber(ARGV[5]), tonumber(ARGV[6])
local probed = {}
for n, key in ipairs(breakers) do
    local kept = redis.call('HMGET', key, 'trying', 'account')
    probed[n] = kept[2] == account and tonumber(kept[1]) > now
end
local counts = {0, 0}
if ARGV[2] == '1' or probed[1] or probed[2] then
    counts[2] = redis.call('HINCRBY', account, 'failures', 1)
    local overtaken = tonumber(redis.call('GET', KEYS[3]) or 0) > now - ARGV[7]
    if not overtaken and redis.call('HSETNX', account, 'counted', 1) == 1 then
        redis.call('SADD', provider .. ':failing', account)
    end
    counts[1] = redis.call('SCARD', provider .. ':failing')
    for _, key in ipairs({account, provider, provider .. ':failing'}) do
        redis.call('PEXPIRE', key, remembered)
    end
end
local answer = {}
for n, key in ipairs(breakers) do
    local open = redis.call('HEXISTS', key, 'until')
    local opens = open == 0 and limits[n] > 0 and counts[n] >= limits[n]
    if opens or probed[n] then
        redis.call('HSETNX', key, 'since', now)
        redis.call('HSET', key, 'until', now + pause)
        redis.call('HDEL', key, 'trying', 'by', 'account', 'young')
        redis.call('PEXPIRE', key, remembered)
        if n == 2 then
            redis.call('ZREMRANGEBYSCORE', provider .. ':open', '-inf', now)
            redis.call('ZADD', provider .. ':open', now + remembered, account)
            redis.call('PEXPIRE', provider .. ':open', remembered)
        end
    end
    answer[n] = (open == 1 or opens) and 1 or 0
    answer[n + 2] = opens and 1 or 0
end
return answer
"""
)

# KEYS: the breaker of a provider, when it has last answered, then the breakers of the accounts that it has
# answered. ARGV: now or "", milliseconds for which to keep the moment, and since it.
ANSWERED = (
    NOW
    + """
local provider, failing, open = KEYS[1], KEYS[1] .. ':failing', KEYS[1] .. ':open'
local kept = redis.call('HMGET', provider, 'until', 'account')
local last = math.max(now - ARGV[3], tonumber(redis.call('GET', KEYS[2])) or 0)
redis.call('SET', KEYS[2], last, 'PX', ARGV[2])
for n = 3, #KEYS do
    if redis.call('DEL', KEYS[n]) == 1 then redis.call('ZREM', open, KEYS[n]) end
    if kept[1] and kept[2] == KEYS[n] then
        -- What was held against accounts meanwhile was the provider's.
        for _, each in ipairs(redis.call('SMEMBERS', failing)) do
            redis.call('DEL', each)
            redis.call('ZREM', open, each)
        end
        redis.call('DEL', provider)
        kept = {}
    end
end
if not kept[1] then redis.call('DEL', failing) end
"""
)

# KEYS: breakers. ARGV: who probed and has learnt nothing.
LEAVE = """
for _, key in ipairs(KEYS) do
    if redis.call('HGET', key, 'by') == ARGV[1] then
        redis.call('HDEL', key, 'trying', 'by', 'account', 'young')
    end
end
"""

# KEYS: breakers of providers. ARGV: now or "". Returns for each for how long it has been open and in how long
# it is due, in milliseconds, whether it is open, whether it is probed, and how many accounts' are open.
STANDING = (
    NOW
    + """
local answer = {}
for _, key in ipairs(KEYS) do
    local kept = redis.call('HMGET', key, 'since', 'until', 'trying')
    answer[#answer + 1] = kept[2] and now - kept[1] or 0
    answer[#answer + 1] = kept[2] and math.max(0, kept[2] - now) or 0
    answer[#answer + 1] = kept[2] and 1 or 0
    answer[#answer + 1] = (tonumber(kept[3]) or 0) > now and 1 or 0
    answer[#answer + 1] = redis.call('ZCOUNT', key .. ':open', now, '+inf')
end
return answer
"""
)


class Family(StrEnum):
    """Calls that a provider answers or fails together."""

    BUSY = "busy"
    CALENDARS = "calendars"
    EVENTS = "events"
    WRITES = "writes"
    CHANNELS = "channels"


class CircuitKey(NamedTuple):
    """A family of calls to one provider, which has its own breakers."""

    provider: str
    family: Family


@dataclass(frozen=True, slots=True)
class CircuitState:
    """The state of one family's breakers; times in seconds.

    ``ago`` is how long the provider's breaker has been open, ``due`` the time until a probe may call;
    ``probed``: a probe is in progress. ``accounts`` is the number of accounts whose breakers are open.
    """

    open: bool = False
    ago: float = 0.0
    due: float = 0.0
    probed: bool = False
    accounts: int = 0


class CircuitBreakers:
    """``accounts`` that fail in a row open a provider's breaker, ``failures`` in a row an account's.

    0 means never. ``pause`` is in seconds.
    """

    def __init__(self, redis: Redis, *, accounts: int, failures: int, pause: float) -> None:
        self.pause = pause
        self._redis = redis
        self._limits = (accounts, failures)
        self._lock = threading.Lock()
        # The accounts that were answered, and when that was noted last.
        self._answered: dict[tuple[CircuitKey, str], float] = {}
        # The accounts that probe in this process, and whether the last call was answered.
        self._probes: dict[tuple[CircuitKey, str], bool] = {}

    def failed(
        self,
        guarded: CircuitKey,
        account: str,
        *,
        given_up: bool,
        took: float = 0.0,
        now: float | None = None,
    ) -> bool:
        """Record a call that failed ``took`` seconds after it began.

        Returns whether calls for its account are now refused. Only a call that is ``given_up`` counts, unless
        it was a probe. Without Redis the failure is dropped. ``now``, here and below, is another clock for
        tests.
        """
        if not any(self._limits):
            return False
        times = int(self.pause * 1000), REMEMBERED, int(took * 1000)
        arguments = _clock(now), int(given_up), *self._limits, *times
        keys = provider_key(guarded), account_key(guarded, account), _last_answer(guarded)
        with self._lock:
            if (guarded, account) in self._probes:
                self._probes[guarded, account] = False
        try:
            with self._redis.pipeline(transaction=False) as pipe:
                # Answers that were noted before this failure.
                self.tell(pipe, now=now)
                pipe.eval(FAILED, len(keys), *keys, *arguments)
                told = cast(list[int], pipe.execute()[-1])
        except RedisError as error:
            log.warning("a provider's failure could not be shared: %s", type(error).__name__)
            return False
        if told[2]:
            log.warning("%s does not answer (%s) and is not asked for %g seconds", *guarded, self.pause)
        if told[3]:
            log.info("an account is not asked for %g seconds", self.pause, extra={"connection": account})
        return bool(told[0] or told[1])

    def answered(self, guarded: CircuitKey, account: str) -> None:
        """Note that a call was answered; :meth:`tell` sends it to Redis."""
        if any(self._limits):
            with self._lock:
                self._answered[guarded, account] = time.monotonic()
                if (guarded, account) in self._probes:
                    self._probes[guarded, account] = True

    def tell(self, pipe: Pipeline, *, now: float | None = None) -> None:
        """Queue on ``pipe`` the accounts that were answered since the last call."""
        with self._lock:
            noted, self._answered = self._answered, {}
        told_at = time.monotonic()
        accounts: dict[CircuitKey, list[str]] = {}
        last: dict[CircuitKey, float] = {}
        for (guarded, account), moment in noted.items():
            if moment >= told_at - STALE:
                accounts.setdefault(guarded, []).append(account)
                last[guarded] = max(moment, last.get(guarded, moment))
        for guarded, each in accounts.items():
            _answered(pipe, guarded, each, ago=told_at - last[guarded], now=now)

    def probes(self, guarded: CircuitKey, account: str) -> None:
        """Note that a job of this process probes, until :meth:`leave`."""
        with self._lock:
            self._probes[guarded, account] = False

    def leave(self, pipe: Pipeline, guarded: CircuitKey, account: str, by: str) -> None:
        """Queue the result of a probe, then its end. Without a result, another job may probe.

        The answer is queued here because :meth:`tell` may have put it on another pipeline that runs later.
        """
        with self._lock:
            answered = self._probes.pop((guarded, account), False)
        if answered:
            _answered(pipe, guarded, [account], ago=0.0)
        pipe.eval(LEAVE, 2, provider_key(guarded), account_key(guarded, account), by)

    def standing(
        self, every: Sequence[CircuitKey], *, now: float | None = None
    ) -> Mapping[CircuitKey, CircuitState]:
        """The state of the breakers of each family.

        :raise redis.RedisError: when Redis is down
        """
        keys = [provider_key(each) for each in every]
        told = cast(list[Any], self._redis.eval(STANDING, len(keys), *keys, _clock(now)))
        each = zip(told[::5], told[1::5], told[2::5], told[3::5], told[4::5], strict=True)
        return {
            guarded: CircuitState(bool(open_), ago / 1000, due / 1000, bool(probed), accounts)
            for guarded, (ago, due, open_, probed, accounts) in zip(every, each, strict=True)
        }


def _answered(
    pipe: Pipeline, guarded: CircuitKey, accounts: Sequence[str], *, ago: float, now: float | None = None
) -> None:
    keys = [
        provider_key(guarded),
        _last_answer(guarded),
        *(account_key(guarded, each) for each in accounts),
    ]
    pipe.eval(ANSWERED, len(keys), *keys, _clock(now), REMEMBERED, int(ago * 1000))


def _clock(now: float | None) -> int | str:
    return "" if now is None else int(now * 1000)


def _last_answer(guarded: CircuitKey) -> str:
    return f"answered:{guarded.provider}:{guarded.family}"


def provider_key(guarded: CircuitKey) -> str:
    """The Redis key of a provider's breaker."""
    return f"breaker:{guarded.provider}:{guarded.family}"


def account_key(guarded: CircuitKey, account: str) -> str:
    """The Redis key of an account's breaker. An account is named by its connection's id."""
    return f"{provider_key(guarded)}:{account}"
