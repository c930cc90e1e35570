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
from typing import NamedTuple, cast

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from store.lua import Script, named

log = logging.getLogger(__name__)

# Milliseconds after which the last failure expires if no other follows, and likewise the last answer.
REMEMBERED = 3_600_000

# Seconds after which an answer that was noted is too old to close a breaker.
STALE = 5.0

# Seconds for which other jobs wait for a probe: nearly all calls of a healthy provider take less, including a
# token refresh. If the deadline is short, they wait for this share of it.
YOUNG = 1.0
YOUNG_SHARE = 0.25

_FAILED = Script("coordination/scripts/breaker_failed.lua")
_ANSWERED = Script("coordination/scripts/breaker_answered.lua")
_END_PROBE = Script("coordination/scripts/breaker_end_probe.lua")
_STATE = Script("coordination/scripts/breaker_state.lua")


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
        accounts, failures = self._limits
        arguments = named(
            now=_milliseconds(now),
            given_up=given_up,
            accounts=accounts,
            failures=failures,
            pause=int(self.pause * 1000),
            remembered=REMEMBERED,
            took=int(took * 1000),
        )
        keys = [provider_key(guarded), account_key(guarded, account), _last_answer(guarded)]
        with self._lock:
            if (guarded, account) in self._probes:
                self._probes[guarded, account] = False
        try:
            with self._redis.pipeline(transaction=False) as pipe:
                # Answers that were noted before this failure.
                self.tell(pipe, now=now)
                _FAILED.queue(pipe, keys, arguments)
                provider_open, account_open, provider_opened, account_opened = cast(
                    list[int], pipe.execute()[-1]
                )
        except RedisError as error:
            log.warning("circuit breaker: failure not recorded: %s", type(error).__name__)
            return False
        if provider_opened:
            log.warning("circuit breaker opened: %s does not answer (%s), pause %g s", *guarded, self.pause)
        if account_opened:
            log.info(
                "circuit breaker of an account opened, pause %g s", self.pause, extra={"connection": account}
            )
        return bool(provider_open or account_open)

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
        sent_at = time.monotonic()
        accounts: dict[CircuitKey, list[str]] = {}
        last: dict[CircuitKey, float] = {}
        for (guarded, account), moment in noted.items():
            if moment >= sent_at - STALE:
                accounts.setdefault(guarded, []).append(account)
                last[guarded] = max(moment, last.get(guarded, moment))
        for guarded, each in accounts.items():
            _answered(pipe, guarded, each, ago=sent_at - last[guarded], now=now)

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
        _END_PROBE.queue(pipe, [provider_key(guarded), account_key(guarded, account)], by)

    def standing(
        self, every: Sequence[CircuitKey], *, now: float | None = None
    ) -> Mapping[CircuitKey, CircuitState]:
        """The state of the breakers of each family.

        :raise redis.RedisError: when Redis is down
        """
        keys = [provider_key(each) for each in every]
        milliseconds = _milliseconds(now)
        found = cast(list[int], _STATE.run(self._redis, keys, "" if milliseconds is None else milliseconds))
        each = zip(found[::5], found[1::5], found[2::5], found[3::5], found[4::5], strict=True)
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
    arguments = named(now=_milliseconds(now), remembered=REMEMBERED, ago=int(ago * 1000))
    _ANSWERED.queue(pipe, keys, arguments)


def _milliseconds(now: float | None) -> int | None:
    return None if now is None else int(now * 1000)


def _last_answer(guarded: CircuitKey) -> str:
    return f"answered:{guarded.provider}:{guarded.family}"


def provider_key(guarded: CircuitKey) -> str:
    """The Redis key of a provider's breaker."""
    return f"breaker:{guarded.provider}:{guarded.family}"


def account_key(guarded: CircuitKey, account: str) -> str:
    """The Redis key of an account's breaker. An account is named by its connection's id."""
    return f"{provider_key(guarded)}:{account}"
