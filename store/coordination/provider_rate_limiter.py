"""Rate limiter of the calls that all workers make to providers, kept in Redis and measured by its clock.

Each provider has a limit for the whole installation and one for each account. Both use GCRA, a leaky bucket
that is stored as one number: the time at which all permitted calls would have been made at an even pace. Half
of a limit may be used at once and the other half over its window. So no window of the provider's sees more
than the limit, wherever it begins, except for calls that are retried.

When a provider throttles us, it names a time. Until then all workers hold back calls in the throttled scope
(the account or the installation). A mailbox accepts a few concurrent calls: each takes a lease there, which
expires if its worker dies. Calls that a circuit breaker refuses get no permit.

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

from store.coordination.circuit_breaker import Access, CircuitKey, account_key, provider_key
from store.lua import Script, json_argument

log = logging.getLogger(__name__)

# Microsoft Graph's limit for one app and mailbox.
CALLS_AT_ONCE = 4

# How far ahead, in milliseconds, a permit is reserved. Reserved permits come before all later requests, so
# this is short.
HORIZON = 500
# Milliseconds after which a job without a permit retries: less than HORIZON, so that capacity is not wasted.
RETRY = 250
# The same for a job that waits for another call to the same mailbox to end.
LEASE_RETRY = 50
# The same for a client whose job is refused because a circuit breaker is being probed.
PROBE_RETRY = 1_000

# Milliseconds for which Redis keeps the leases of a mailbox at least: longer than a read may take.
LEASES_KEPT = 600_000

# Seconds. A provider that names a longer time has made a mistake, or will throttle the next call too.
MAX_PAUSE = 3600.0

_ACQUIRE = Script("coordination/scripts/rate_limit_acquire.lua")
_PAUSE = Script("coordination/scripts/rate_limit_pause.lua")


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

    ``access`` selects the circuit breakers. ``mailbox``: where the call needs a lease, if anywhere.
    ``lease_name`` is the name of that lease, and of the job as a probe.
    """

    provider: str
    account: str
    calls: int
    mailbox: str | None
    lease_name: str
    access: Access

    @property
    def circuit(self) -> CircuitKey:
        """The key of its circuit breakers."""
        return CircuitKey(self.provider, self.access)


class WaitReason(StrEnum):
    """Why a call waits or is refused (``OPEN``), or that it is a probe (``PROBE``)."""

    PACE = "pace"
    # For a time that the provider has named, and for our own backoff.
    NAMED = "named"
    BACKOFF = "backoff"
    # For another call to the same mailbox to end.
    MAILBOX = "mailbox"
    # For the pause of an open circuit breaker, or for its probe. The call is refused.
    OPEN = "open"
    # It does not wait: the call is the probe of an open circuit breaker.
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Permit:
    """Call now when ``wait`` is 0, else retry after that many seconds. ``paid``: its calls are counted.

    ``record_success``: the circuit breakers must record its success.
    """

    wait: float
    paid: bool
    why: WaitReason = WaitReason.PACE
    record_success: bool = False


GO = Permit(0.0, True)


_REASONS = {each.encode(): each for each in WaitReason}


class ProviderRateLimiter:
    """The limits by provider: ``projects`` for the whole installation, ``accounts`` for each account.

    Keys in Redis name an account by its connection's id. Its e-mail address is only a client's claim, which
    must not use up the limit of another account. Several connections may share a mailbox; the caller names it
    by the address that the provider reported.
    """

    def __init__(self, redis: Redis, projects: Mapping[str, Limit], accounts: Mapping[str, Limit]) -> None:
        self._redis = redis
        self._projects = projects
        self._accounts = accounts

    def acquire(
        self,
        pipe: Pipeline,
        requests: Sequence[AcquireRequest],
        *,
        left: float,
        lease_seconds: float,
        now: float | None = None,
    ) -> None:
        """Queue on ``pipe`` the script whose result :meth:`permits` reads; all times are in seconds.

        No permit is reserved beyond ``left``; a lease lasts ``lease_seconds``. ``now`` is another
        clock, for tests.
        """
        limits: dict[str, Limit] = {}
        breakers: dict[str, int] = {}
        for each in requests:
            limits[_project(each.provider)] = self._projects[each.provider]
            limits[_account(each.provider, each.account)] = self._accounts[each.provider]
            for breaker in _breakers(each):
                breakers.setdefault(breaker, len(breakers) + 1)
        scopes = {name: number for number, name in enumerate(limits, 1)}
        leased = dict.fromkeys(_mailbox(each.mailbox) for each in requests if each.mailbox is not None)
        mailboxes = {name: number for number, name in enumerate(leased, 1)}
        arguments = json_argument(
            now=None if now is None else now * 1000,
            left=max(0, int(left * 1000)),
            lease=int(lease_seconds * 1000),
            leases_kept=LEASES_KEPT,
            horizon=HORIZON,
            retry=RETRY,
            lease_retry=LEASE_RETRY,
            probe_retry=PROBE_RETRY,
            concurrent=CALLS_AT_ONCE,
            scopes=[{"interval": each.interval, "tolerance": each.tolerance} for each in limits.values()],
            breakers=len(breakers),
            calls=[
                {
                    "scopes": (
                        scopes[_project(each.provider)],
                        scopes[_account(each.provider, each.account)],
                    ),
                    "breakers": [breakers[name] for name in _breakers(each)],
                    "cost": each.calls,
                    "mailbox": 0 if each.mailbox is None else mailboxes[_mailbox(each.mailbox)],
                    "lease": each.lease_name,
                }
                for each in requests
            ],
        )
        _ACQUIRE.queue(pipe, [*scopes, *breakers, *mailboxes], arguments)

    def acquire_now(
        self, requests: Sequence[AcquireRequest], *, left: float, lease_seconds: float
    ) -> list[Permit]:
        """The permit for each request, in one round trip; arguments as for ``acquire``.

        :raise redis.RedisError: when Redis is down
        """
        with self._redis.pipeline(transaction=False) as pipe:
            self.acquire(pipe, requests, left=left, lease_seconds=lease_seconds)
            (result,) = pipe.execute(raise_on_error=False)
        return self.permits(result, requests)

    @staticmethod
    def permits(result: object, requests: Sequence[AcquireRequest]) -> list[Permit]:
        """The permit for each request. If the script failed, every call may go: the providers limit them."""
        if isinstance(result, Exception):
            log.error("provider rate limiter failed, calls are not limited: %s", result)
            return [GO] * len(requests)
        values = cast(list[Any], result)
        replies = zip(requests, values[::4], values[1::4], values[2::4], values[3::4], strict=True)
        return [
            Permit(max(0, wait) / 1000, bool(paid) or not request.calls, _REASONS[why], bool(record_success))
            if wait > 0 or record_success
            else GO
            for request, wait, paid, why, record_success in replies
        ]

    @staticmethod
    def release(pipe: Pipeline, request: AcquireRequest) -> None:
        """Queue on ``pipe`` the end of the request's lease, if it has one."""
        if request.mailbox is not None:
            pipe.zrem(_mailbox(request.mailbox), request.lease_name)

    def pause_calls(
        self, provider: str, account: str, seconds: float, *, named: bool = True, project: bool = False
    ) -> float:
        """Hold back calls for an account, or for the whole installation (``project``), for ``seconds``.

        ``named``: the provider has named the time. Returns for how many seconds the account is held by a time
        that the provider named to any worker. With 0 ``seconds`` nothing is held, only this is looked up.
        """
        milliseconds = int(min(seconds, MAX_PAUSE) * 1000)
        keys = [_project(provider), _account(provider, account)]
        times = (milliseconds, 0) if project else (0, milliseconds)
        try:
            return float(_PAUSE.run(self._redis, keys, int(named), *times)) / 1000
        except RedisError as error:
            log.warning("provider rate limiter: throttling not recorded: %s", type(error).__name__)
            return 0.0


def _breakers(request: AcquireRequest) -> tuple[str, str]:
    return provider_key(request.circuit), account_key(request.circuit, request.account)


def _project(provider: str) -> str:
    # Not "throttle:", the prefix of keys of another type in earlier releases.
    return f"rate:{provider}"


def _account(provider: str, account: str) -> str:
    return f"rate:{provider}:{account}"


def _mailbox(mailbox: str) -> str:
    return f"throttle:mailbox:{mailbox.lower()}"
