"""Rate limiter of the calls that all workers make to providers, kept in Redis and measured by its clock.

Each provider has a limit for the whole installation and one for each account. Both use GCRA, a leaky bucket
that is stored as one number: the time at which all permitted calls would have been made at an even pace. Half
of a limit may be used at once and the other half over its window. So no window of the provider's sees more
than the limit, wherever it begins, except for calls that are retried.

When a provider throttles us, it names a time. Until then all workers hold back calls in the throttled scope
(the account or the installation). A mailbox accepts a few concurrent calls: each takes a lease there, which
expires if its worker dies. Calls that a circuit breaker refuses get no permit, see
``store.coordination.circuit_breaker``.

https://developers.google.com/workspace/calendar/api/guides/quota
https://learn.microsoft.com/en-us/graph/throttling-limits
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from store.coordination import circuit_breaker
from store.coordination.circuit_breaker import CircuitKey, Family
from store.coordination.redis_clock import MOMENT

log = logging.getLogger(__name__)

# Microsoft Graph's limit for one app and mailbox.
CALLS_AT_ONCE = 4

# How far ahead, in milliseconds, a permit is reserved. Reserved permits come before all later requests, so
# this is short.
HORIZON = 500
# Milliseconds after which a job without a permit retries: less than HORIZON, so that capacity is not wasted.
ASK_AGAIN = 250
# The same for a job that waits for another call to the same mailbox to end.
ASK_FOR_LEASE = 50

# Seconds. A provider that names a longer time has made a mistake, or will throttle the next call too.
LONGEST_HOLD = 3600.0

# KEYS: scopes, breakers, mailboxes. ARGV: now or "", milliseconds left, milliseconds of a lease,
# horizon, ask again, ask for lease, calls at once, pause of a breaker, milliseconds for which a probe is
# young, number of scopes, of breakers;
# for each scope interval and tolerance; for each call the numbers of its scopes and of its breakers, first
# the provider's, its cost, the number of its mailbox or 0, its lease. Returns for each call how many
# milliseconds it has to wait, whether its turn is paid, and why it waits, or that it probes.
ASK = (
    MOMENT
    + circuit_breaker.LOOK
    + """
local now = tonumber(ARGV[1]) or moment()
local left, lease, horizon = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local again, again_for_lease, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local pause, young = tonumber(ARGV[8]), tonumber(ARGV[9])
local count, guards = tonumber(ARGV[10]), tonumber(ARGV[11])
local at = 12
local scopes = {}
for n = 1, count do
    local kept = redis.call('HMGET', KEYS[n], 'paced', 'held', 'named')
    scopes[n] = {
        interval = tonumber(ARGV[at]), tolerance = tonumber(ARGV[at + 1]),
        paced = tonumber(kept[1]) or 0, held = tonumber(kept[2]) or 0, named = tonumber(kept[3]) or 0
    }
    at = at + 2
end
local breakers = {}
for n = 1, guards do breakers[n] = breaker(KEYS[count + n]) end
local function closed(call)
    local rest, probed = 0, 0
    for _, each in ipairs(call.breakers) do
        local more, tried = shut(each, call.account, call.id, now, pause)
        rest, probed = math.max(rest, more), math.max(probed, tried)
    end
    return rest, probed
end
local answers, refused = {}, {}
while at <= #ARGV do
    local of = {scopes[tonumber(ARGV[at])], scopes[tonumber(ARGV[at + 1])]}
    local call = {breakers = {breakers[tonumber(ARGV[at + 2])], breakers[tonumber(ARGV[at + 3])]}}
    local cost, mailbox, id = tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), ARGV[at + 6]
    at = at + 7
    call.account, call.id, call.answer = call.breakers[2].key, id, #answers
    local rest, probed = closed(call)
    local held, named, delay = 0, 0, 0
    for _, scope in ipairs(of) do
        held = math.max(held, scope.held - now)
        named = math.max(named, scope.named - now)
        scope.after = math.max(scope.paced, now) + math.min(cost * scope.interval, scope.tolerance)
        delay = math.max(delay, scope.after - scope.tolerance - now)
    end
    local wait, paid, why = 0, 0, 'pace'
    if rest > 0 then
        wait, why = rest, 'open'
        refused[#refused + 1] = call
    elseif probed > 0 then
        wait, why = math.min(again, probed), 'probed'
    elseif held > 0 then
        wait, why = held, held > named and 'backoff' or 'told'
    elseif cost > 0 and delay > math.min(horizon, left) then
        wait = delay > left and delay or again
    elseif cost > 0 then
        wait, paid = delay, 1
        for _, scope in ipairs(of) do
            scope.paced, scope.changed = scope.after, true
        end
    end
    if wait <= 0 and mailbox > 0 then
        local key = KEYS[count + guards + mailbox]
        redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
        -- Redis may be asked twice when its answer is lost: who has a lease keeps it.
        if redis.call('ZCARD', key) < most or redis.call('ZSCORE', key, id) then
            redis.call('ZADD', key, now + lease, id)
            if redis.call('PTTL', key) < lease then redis.call('PEXPIRE', key, lease) end
        else
            wait, why = again_for_lease, 'mailbox'
        end
    end
    if wait <= 0 then
        for _, each in ipairs(call.breakers) do
            if try(each, call.account, id, now, lease, young) then why = 'probe' end
        end
    end
    answers[#answers + 1] = math.ceil(wait)
    answers[#answers + 1] = paid
    answers[#answers + 1] = why
end
-- Who has failed lets others probe first, and waits for them once they do.
for _, call in ipairs(refused) do
    local rest, probed = closed(call)
    if rest <= 0 and probed > 0 then
        answers[call.answer + 1], answers[call.answer + 3] = math.ceil(math.min(again, probed)), 'probed'
    end
end
for n, scope in ipairs(scopes) do
    if scope.changed then
        redis.call('HSET', KEYS[n], 'paced', string.format('%.3f', scope.paced))
        redis.call('PEXPIRE', KEYS[n], math.ceil(math.max(scope.paced, scope.held) - now) + 1)
    end
end
return answers
"""
)

# KEYS: scopes. ARGV: whether the provider has named the time; for each scope, milliseconds to hold it for.
# Returns for how long one of them is held by a time that was named.
HOLD = (
    MOMENT
    + """
local now = moment()
local longest = 0
for n, key in ipairs(KEYS) do
    local kept = redis.call('HMGET', key, 'held', 'named')
    local held, named = tonumber(kept[1]) or 0, tonumber(kept[2]) or 0
    local more = tonumber(ARGV[n + 1])
    if more > 0 then
        held = math.max(held, now + more)
        if ARGV[1] == '1' then named = math.max(named, now + more) end
        redis.call('HSET', key, 'held', string.format('%.3f', held), 'named', string.format('%.3f', named))
        if redis.call('PTTL', key) < more then redis.call('PEXPIRE', key, more) end
    end
    longest = math.max(longest, named - now)
end
return math.ceil(longest)
"""
)


@dataclass(frozen=True, slots=True)
class Limit:
    """At most ``calls`` (two or more) in any window of ``seconds``."""

    calls: int
    seconds: float

    @property
    def interval(self) -> float:
        """Milliseconds between calls at an even pace of half the limit (GCRA's emission interval)."""
        return 2000 * self.seconds / self.calls

    @property
    def tolerance(self) -> float:
        """By how many milliseconds a call may be early: it lets the other half of the limit go at once."""
        return 1000 * self.seconds


# For one app across all tenants: https://learn.microsoft.com/en-us/graph/throttling-limits
MICROSOFT_APP = Limit(130_000, 10)


@dataclass(frozen=True, slots=True)
class AcquireRequest:
    """A request to call a provider for an account ``calls`` times; 0 when the permit is paid for already.

    ``family`` selects the circuit breakers. ``mailbox``: where the call needs a lease, if anywhere. ``lease``
    is the name of that lease, and of the job as a probe.
    """

    provider: str
    account: str
    calls: int
    mailbox: str | None
    lease: str
    family: Family

    @property
    def guarded(self) -> CircuitKey:
        """The key of its circuit breakers."""
        return CircuitKey(self.provider, self.family)


class WaitReason(StrEnum):
    """Why a call waits."""

    PACE = "pace"
    # For a time that the provider has named, and for our own backoff.
    TOLD = "told"
    BACKOFF = "backoff"
    # For another call to the same mailbox to end.
    MAILBOX = "mailbox"
    # For the pause of an open circuit breaker.
    OPEN = "open"
    # It does not wait: the call is the probe of an open circuit breaker.
    PROBE = "probe"
    # For the probe of another job, while it is young.
    PROBED = "probed"


@dataclass(frozen=True, slots=True)
class Permit:
    """Call now when ``wait`` is 0, else retry after that many seconds. ``paid``: its calls are counted."""

    wait: float
    paid: bool
    why: WaitReason = WaitReason.PACE


GO = Permit(0.0, True)


_WHYS = {each.encode(): each for each in WaitReason}


class ProviderRateLimiter:
    """The limits by provider: ``projects`` for the whole installation, ``accounts`` for each account.

    ``pause`` is that of the circuit breakers; ``young`` is how long other jobs wait for a probe. Both are in
    seconds.

    Keys in Redis name an account by its connection's id. Its e-mail address is only a client's claim, which
    must not use up the limit of another account. Several connections may share a mailbox; the caller names it
    by the address that the provider reported.
    """

    def __init__(
        self,
        redis: Redis,
        projects: Mapping[str, Limit],
        accounts: Mapping[str, Limit],
        *,
        pause: float = 0.0,
        young: float = circuit_breaker.YOUNG,
    ) -> None:
        self._redis = redis
        self._pause = int(pause * 1000)
        self._young = int(young * 1000)
        self._projects = projects
        self._accounts = accounts

    def ask(
        self,
        pipe: Pipeline,
        asks: Sequence[AcquireRequest],
        *,
        left: float,
        lease: float,
        now: float | None = None,
    ) -> None:
        """Queue on ``pipe`` the script whose result :meth:`answers` reads; all times are in seconds.

        No permit is reserved beyond ``left``; a lease lasts ``lease``. ``now`` is another clock, for tests.
        """
        limits: dict[str, Limit] = {}
        looked: dict[str, int] = {}
        for each in asks:
            limits[_project(each.provider)] = self._projects[each.provider]
            limits[_account(each.provider, each.account)] = self._accounts[each.provider]
            for breaker in _breakers(each):
                looked.setdefault(breaker, len(looked) + 1)
        scopes = {name: number for number, name in enumerate(limits, 1)}
        leased = dict.fromkeys(_mailbox(each.mailbox) for each in asks if each.mailbox is not None)
        mailboxes = {name: number for number, name in enumerate(leased, 1)}
        args: list[Any] = [
            "" if now is None else now * 1000,
            max(0, int(left * 1000)),
            int(lease * 1000),
            HORIZON,
            ASK_AGAIN,
            ASK_FOR_LEASE,
            CALLS_AT_ONCE,
            self._pause,
            self._young,
            len(scopes),
            len(looked),
        ]
        for limit in limits.values():
            args += limit.interval, limit.tolerance
        for each in asks:
            args += (
                scopes[_project(each.provider)],
                scopes[_account(each.provider, each.account)],
                *(looked[breaker] for breaker in _breakers(each)),
                each.calls,
                0 if each.mailbox is None else mailboxes[_mailbox(each.mailbox)],
                each.lease,
            )
        keys = [*scopes, *looked, *mailboxes]
        pipe.eval(ASK, len(keys), *keys, *args)

    @staticmethod
    def answers(result: object, asks: Sequence[AcquireRequest]) -> list[Permit]:
        """The permit for each request. If the script failed, every call may go: the providers limit them."""
        if isinstance(result, Exception):
            log.error("calls are not paced: %s", result)
            return [GO] * len(asks)
        told = cast(list[Any], result)
        return [
            Permit(max(0, wait) / 1000, bool(paid) or not ask.calls, _WHYS[why])
            if wait > 0 or _WHYS[why] is WaitReason.PROBE
            else GO
            for ask, wait, paid, why in zip(asks, told[::3], told[1::3], told[2::3], strict=True)
        ]

    @staticmethod
    def release(pipe: Pipeline, ask: AcquireRequest) -> None:
        """Queue on ``pipe`` the end of the request's lease, if it has one."""
        if ask.mailbox is not None:
            pipe.zrem(_mailbox(ask.mailbox), ask.lease)

    def hold(
        self, provider: str, account: str, seconds: float, *, named: bool = True, project: bool = False
    ) -> float:
        """Hold back calls for an account, or for the whole installation (``project``), for ``seconds``.

        ``named``: the provider has named the time. Returns for how many seconds the account is held by a time
        that the provider named to any worker. With 0 ``seconds`` nothing is held, only this is looked up.
        """
        milliseconds = int(min(seconds, LONGEST_HOLD) * 1000)
        keys = [_project(provider), _account(provider, account)]
        args = [int(named), milliseconds, 0] if project else [int(named), 0, milliseconds]
        try:
            return float(cast(int, self._redis.eval(HOLD, len(keys), *keys, *args))) / 1000
        except RedisError as error:
            log.warning("a provider's throttling could not be shared: %s", type(error).__name__)
            return 0.0


def _breakers(ask: AcquireRequest) -> tuple[str, str]:
    return circuit_breaker.provider_key(ask.guarded), circuit_breaker.account_key(ask.guarded, ask.account)


def _project(provider: str) -> str:
    return f"throttle:{provider}"


def _account(provider: str, account: str) -> str:
    return f"throttle:{provider}:{account}"


def _mailbox(mailbox: str) -> str:
    return f"throttle:mailbox:{mailbox.lower()}"
