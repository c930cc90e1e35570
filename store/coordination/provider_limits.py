"""When workers may call the providers: rate limits, pauses and circuit breakers, in Redis and by its clock.

Each provider has a limit for the whole installation and one for each account. Both use GCRA, a leaky bucket
that is stored as one number: the time at which all permitted calls would have been made at an even pace. Half
of a limit may be used at once and the other half over its window. So no window of the provider's sees more
than the limit, wherever it begins, except for calls that are retried. A mailbox accepts a few concurrent
calls: each takes a lease there, which expires if its worker dies.

One record for each provider and each account says until when it is not called, and why:

- The provider throttles calls. All workers hold back calls to the account, or to the provider for a limit of
  the installation, until the time that the provider has named, or for our own backoff.
- The circuit breaker is open. That of an account opens after a number of failures in a row, that of a
  provider when a number of accounts have failed with no answer in between. After a pause one call probes, and
  all others are refused until it ends: an answer closes the breaker, a failure opens it for another pause. A
  lease bounds a probe whose worker dies.

A failure does not count for the provider if any account got an answer after the failed call began, or if the
account's own breaker is open. So a few accounts that hang do not open the provider's breaker. Only an answer
to a call that began after a breaker opened closes it. Reads and writes have their own records, so that a
provider that refuses changes is still read.

A failure is recorded at once. So is a success that matters: that of a probe, or of an account with failures.
Other successes are recorded about once a second, as the time of the last answer. Events during an outage of
Redis are dropped, so that they open or close no breaker later.

https://developers.google.com/workspace/calendar/api/guides/quota
https://learn.microsoft.com/en-us/graph/throttling-limits
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, cast

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError, ResponseError

from store.lua import Script, json_argument

log = logging.getLogger(__name__)

# Seconds. A provider that names a longer time has made a mistake, or will throttle the next call too.
MAX_PAUSE = 3600.0

# Seconds after which a process records the time of a provider's last answer again.
ANSWER_INTERVAL = 1.0

# Seconds for which the first rejection of the new tokens of a connection is known.
REJECTION_SECONDS = 30 * 86_400

_ACQUIRE = Script("coordination/scripts/limits_acquire.lua")
_FAILED = Script("coordination/scripts/limits_failed.lua")
_ANSWERED = Script("coordination/scripts/limits_answered.lua")
_THROTTLED = Script("coordination/scripts/limits_throttled.lua")
_END_PROBE = Script("coordination/scripts/limits_end_probe.lua")


class Access(StrEnum):
    """Whether calls read or change something at a provider."""

    READS = "reads"
    WRITES = "writes"


class Circuit(NamedTuple):
    """The reads of one provider, or its writes."""

    provider: str
    access: Access


class CircuitState(NamedTuple):
    """The state of the circuit breakers of reads or writes; times in seconds.

    ``ago`` is how long the provider's breaker has been open, ``due`` the time until a probe may call;
    ``probed``: a probe is in progress. ``accounts`` is the number of accounts whose breakers are open.
    """

    open: bool = False
    ago: float = 0.0
    due: float = 0.0
    probed: bool = False
    accounts: int = 0


class BreakerLimits(NamedTuple):
    """``accounts`` that fail open a provider's breaker, ``failures`` in a row an account's; 0: never.

    ``pause`` is in seconds.
    """

    accounts: int
    failures: int
    pause: float


@dataclass(frozen=True, slots=True)
class CallLimit:
    """At most ``calls`` (two or more) in any window of ``seconds``."""

    calls: int
    seconds: float

    @property
    def terms(self) -> tuple[float, float]:
        """GCRA's emission interval and tolerance, in milliseconds.

        Calls at an even pace use half the limit. The tolerance lets the other half go at once.
        """
        return 2000 * self.seconds / self.calls, 1000 * self.seconds


# For a provider without a known limit.
UNLIMITED = CallLimit(1_000_000_000, 1)


@dataclass(frozen=True, slots=True)
class AcquireRequest:
    """A request to call a provider for an account ``calls`` times; 0 when the permit is paid for already.

    ``mailbox``: where the call needs a lease, if anywhere. ``job`` is the name of the lease, and of a probe.
    """

    circuit: Circuit
    account: str
    calls: int
    mailbox: str | None
    job: str


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


class Permit(NamedTuple):
    """Call now when ``wait`` is 0, else retry after that many seconds. ``paid``: its calls are counted."""

    wait: float
    paid: bool
    why: WaitReason = WaitReason.PACE


GO = Permit(0.0, True)


class ProviderLimits:
    """The limits by provider: ``projects`` for the whole installation, ``accounts`` for each account.

    A provider that is in neither has none.

    Keys in Redis name an account by its connection's id. Its e-mail address is only a client's claim, which
    must not use up the limit of another account. Several connections may share a mailbox; the caller names it
    by the address that the provider reported. ``clock`` replaces that of Redis in tests.
    """

    def __init__(
        self,
        redis: Redis,
        projects: Mapping[str, CallLimit],
        accounts: Mapping[str, CallLimit],
        breaker: BreakerLimits,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._redis = redis
        self._projects = projects
        self._accounts = accounts
        self._breaker = breaker
        self._clock = clock
        self._lock = threading.Lock()
        # The accounts whose next success must be recorded.
        self._to_record: set[tuple[Circuit, str]] = set()
        # When a provider answered last, and when that was last recorded; moments of time.monotonic().
        self._answered: dict[Circuit, float] = {}
        self._recorded: dict[Circuit, float] = {}

    def acquire(
        self,
        requests: Sequence[AcquireRequest],
        *,
        left: float,
        lease_seconds: float,
    ) -> list[Permit]:
        """The permit for each request, in one round trip. All times are in seconds.

        No permit is reserved beyond ``left``; a lease lasts ``lease_seconds``.

        :raise redis.RedisError: when Redis is down
        """
        keys, calls = [], []
        for each in requests:
            provider, account = each.circuit.provider, each.account
            limits = (
                self._projects.get(provider, UNLIMITED),
                self._accounts.get(provider, UNLIMITED),
            )
            keys += [f"pace:{provider}", f"pace:{provider}:{account}"]
            keys += [*_records(each.circuit, account), _mailbox(each) or ""]
            calls.append({"cost": each.calls, "job": each.job, "limits": [each.terms for each in limits]})
        arguments = json_argument(
            now=self._now(), left=max(0, int(left * 1000)), lease=int(lease_seconds * 1000), calls=calls
        )
        try:
            replies = cast(list[Any], _ACQUIRE.run(self._redis, keys, arguments))
        except ResponseError as error:
            # The providers limit the calls.
            log.error("provider limits failed, calls are not limited: %s", error)
            return [GO] * len(requests)
        permits = []
        for each, wait, paid, why, to_record in zip(
            requests, *(replies[n::4] for n in range(4)), strict=True
        ):
            permits.append(Permit(wait / 1000, bool(paid) or not each.calls, WaitReason(why.decode())))
            if to_record and not wait:
                self._record_next_success(each.circuit, each.account)
        return permits

    def release(self, pipe: Pipeline, request: AcquireRequest, *, probed: bool) -> None:
        """Queue on ``pipe`` the end of the request's lease, and of its probe if it has had no result."""
        if mailbox := _mailbox(request):
            pipe.zrem(mailbox, request.job)
        if probed:
            _END_PROBE.queue(pipe, _records(request.circuit, request.account), request.job)

    def throttled(
        self, circuit: Circuit, account: str, seconds: float, *, named: bool, project: bool = False
    ) -> float:
        """Pause an account, or the whole provider (``project``), that throttles calls for ``seconds``.

        ``named``: the provider has named the time. Returns for how many seconds calls wait for a time that
        the provider has named to any worker. Without Redis nothing is paused.
        """
        keys = [key for access in Access for key in _records(Circuit(circuit.provider, access), account)]
        arguments = json_argument(
            number=1 if project else 2,
            milliseconds=int(min(seconds, MAX_PAUSE) * 1000),
            reason=WaitReason.NAMED if named else WaitReason.BACKOFF,
        )
        return float(self._record(_THROTTLED, keys, arguments) or 0) / 1000

    def failed(
        self,
        circuit: Circuit,
        account: str,
        *,
        given_up: bool,
        duration: float = 0.0,
        for_provider: bool = True,
    ) -> float | None:
        """Record a call that failed ``duration`` seconds after it began.

        Returns for how many seconds calls wait for a time that the provider has named; None if calls are now
        refused. Only a call that is ``given_up`` counts, unless it was a probe. ``for_provider``: it counts
        for the provider too. Without Redis the failure is dropped.
        """
        accounts, failures, pause = self._breaker
        if not (accounts or failures):
            return 0.0
        self._record_next_success(circuit, account)
        answered = self._answered.get(circuit)
        arguments = json_argument(
            now=self._now(),
            account=account,
            given_up=given_up,
            accounts=accounts if for_provider else 0,
            failures=failures,
            pause=int(pause * 1000),
            took=int(duration * 1000),
            answered=None if answered is None else int((self._moment() - answered) * 1000),
        )
        keys = [*_records(circuit, account), _last_answer(circuit), _failing(circuit), open_accounts(circuit)]
        is_open, provider_opened, account_opened, held = self._record(_FAILED, keys, arguments) or (
            0,
            0,
            0,
            0,
        )
        if provider_opened:
            log.warning("circuit breaker opened: %s does not answer (%s), pause %g s", *circuit, pause)
        if account_opened:
            log.info("circuit breaker of an account opened, pause %g s", pause, extra={"connection": account})
        return None if is_open else held / 1000

    def answered(self, circuit: Circuit, account: str, *, duration: float = 0.0) -> None:
        """Record a call that was answered after ``duration``, if Redis needs to know.

        Without Redis that is dropped.
        """
        if not (self._breaker.accounts or self._breaker.failures):
            return
        moment = self._moment()
        with self._lock:
            self._answered[circuit] = moment
            to_record = (circuit, account) in self._to_record
            if not to_record and moment < self._recorded.get(circuit, -ANSWER_INTERVAL) + ANSWER_INTERVAL:
                return
            self._to_record.discard((circuit, account))
            self._recorded[circuit] = moment
        arguments = json_argument(now=self._now(), account=account, took=int(duration * 1000))
        keys = [*_records(circuit, account), _last_answer(circuit), open_accounts(circuit)]
        self._record(_ANSWERED, keys, arguments)

    def states(self, circuits: Sequence[Circuit]) -> Mapping[Circuit, CircuitState]:
        """The state of the circuit breakers of each circuit.

        :raise redis.RedisError: when Redis is down
        """
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.mget([record_key(each) for each in circuits])
            (seconds, micros), values = pipe.execute()
            moment = self._now() or seconds * 1000 + micros / 1000
            for each in circuits:
                pipe.zcount(open_accounts(each), moment, "+inf")
            counts = pipe.execute()
        return {
            circuit: _state(value, count, moment)
            for circuit, value, count in zip(circuits, values, counts, strict=True)
        }

    def _record(self, script: Script, keys: Sequence[str], arguments: bytes) -> Any:
        """The reply of a script; None without Redis."""
        try:
            return script.run(self._redis, keys, arguments)
        except RedisError as error:
            log.warning("provider limits: the result of a call is not recorded: %s", type(error).__name__)
            return None

    def _now(self) -> int | None:
        return None if self._clock is None else int(self._clock() * 1000)

    def _moment(self) -> float:
        return (self._clock or time.monotonic)()

    def _record_next_success(self, circuit: Circuit, account: str) -> None:
        with self._lock:
            self._to_record.add((circuit, account))


def note_rejection(redis: Redis, connection_id: str) -> float:
    """Note that new tokens of a connection, or its password, were rejected.

    Returns the seconds since the first rejection after the last successful read.
    """
    now = time.time()
    redis.set(rejection_key(connection_id), now, nx=True, ex=REJECTION_SECONDS)
    first = redis.get(rejection_key(connection_id))
    return now - float(first) if isinstance(first, bytes | str) else 0.0


def rejection_key(connection_id: str) -> str:
    """The Redis key of that note, which a successful read deletes."""
    return f"token-rejected:{connection_id}"


def _state(record: bytes | None, accounts: int, moment: float) -> CircuitState:
    until, reason, since, _ = (record or b"0 open 0 0").decode().split()
    if since == "0":
        return CircuitState(accounts=accounts)
    due = max(0.0, float(until) - moment) / 1000
    probed = bool(due) and reason.startswith("probe:")
    return CircuitState(True, (moment - float(since)) / 1000, 0.0 if probed else due, probed, accounts)


def record_key(circuit: Circuit, account: str | None = None) -> str:
    """The Redis key of the record of a provider, or of an account, which is named by its connection's id."""
    name = f"pause:{circuit.provider}:{circuit.access}"
    return name if account is None else f"{name}:{account}"


def _records(circuit: Circuit, account: str) -> list[str]:
    return [record_key(circuit), record_key(circuit, account)]


def _last_answer(circuit: Circuit) -> str:
    return f"answered:{circuit.provider}:{circuit.access}"


def _failing(circuit: Circuit) -> str:
    return f"failing:{circuit.provider}:{circuit.access}"


def open_accounts(circuit: Circuit) -> str:
    """The Redis key of the accounts whose circuit breakers are open."""
    return f"open-accounts:{circuit.provider}:{circuit.access}"


def _mailbox(request: AcquireRequest) -> str | None:
    return None if request.mailbox is None else f"throttle:mailbox:{request.mailbox.lower()}"
