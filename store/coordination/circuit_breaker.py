"""Circuit breakers for providers and accounts that do not answer, shared by all workers through Redis.

A breaker is closed, open or half-open. It opens when calls fail, and then refuses calls. After a pause one
call is let through as a probe, and all others are refused until it ends: an answer closes the breaker, a
failure opens it for another pause. A lease bounds a probe whose worker dies.

Each account has a breaker, which opens after a number of failures in a row. Each provider has one, which
opens when a number of accounts have failed in a row, with no answer in between. A failure does not count for
the provider if any account got an answer after the failed call began. So a few accounts that hang do not open
the provider's breaker. Nor does a failure count when the account's own breaker is open.

Reads and writes have their own breakers, so that a provider that refuses changes is still read.

A failure is recorded in Redis at once. So is a success that matters there: that of a probe, or of an account
with failures. Other successes are recorded about once a second, as the time of the last answer. Events during
an outage of Redis are dropped, so that they open or close no breaker later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, cast

import orjson
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError

from store.lua import Script, json_argument

log = logging.getLogger(__name__)

# Milliseconds after which the last failure expires if no other follows, and likewise the last answer.
REMEMBERED = 3_600_000

# Seconds after which a process records the time of a provider's last answer again.
ANSWER_INTERVAL = 1.0

_FAILED = Script("coordination/scripts/breaker_failed.lua")
_ANSWERED = Script("coordination/scripts/breaker_answered.lua")
_END_PROBE = Script("coordination/scripts/breaker_end_probe.lua")


class Access(StrEnum):
    """Whether calls read or change something at a provider."""

    READS = "reads"
    WRITES = "writes"


class CircuitKey(NamedTuple):
    """The reads of one provider, or its writes, which have their own breakers."""

    provider: str
    access: Access


@dataclass(frozen=True, slots=True)
class CircuitState:
    """The state of the breakers of reads or writes; times in seconds.

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
        # The accounts whose next success must be recorded.
        self._to_record: set[tuple[CircuitKey, str]] = set()
        # When a provider answered last, and when that was last recorded; moments of time.monotonic().
        self._answered: dict[CircuitKey, float] = {}
        self._recorded: dict[CircuitKey, float] = {}

    def record_next_success(self, circuit: CircuitKey, account: str) -> None:
        """Have the next success of an account recorded: it has failures, or its call is a probe."""
        with self._lock:
            self._to_record.add((circuit, account))

    def failed(
        self,
        circuit: CircuitKey,
        account: str,
        *,
        given_up: bool,
        duration: float = 0.0,
        for_provider: bool = True,
        now: float | None = None,
    ) -> bool:
        """Record a call that failed ``duration`` seconds after it began.

        Returns whether calls for its account are now refused. Only a call that is ``given_up`` counts, unless
        it was a probe. ``for_provider``: it counts for the provider's breaker too. Without Redis the failure
        is dropped. ``now``, here and below, is another clock for tests.
        """
        if not any(self._limits):
            return False
        with self._lock:
            self._to_record.add((circuit, account))
            answered = self._answered.get(circuit)
        accounts, failures = self._limits
        arguments = json_argument(
            now=_milliseconds(now),
            given_up=given_up,
            accounts=accounts if for_provider else 0,
            failures=failures,
            pause=int(self.pause * 1000),
            remembered=REMEMBERED,
            took=int(duration * 1000),
            answered=None if answered is None else int((_moment(now) - answered) * 1000),
        )
        try:
            reply = cast(list[int], _FAILED.run(self._redis, _keys(circuit, account), arguments))
        except RedisError as error:
            log.warning("circuit breaker: failure not recorded: %s", type(error).__name__)
            return False
        provider_open, account_open, provider_opened, account_opened = reply
        if provider_opened:
            log.warning("circuit breaker opened: %s does not answer (%s), pause %g s", *circuit, self.pause)
        if account_opened:
            log.info(
                "circuit breaker of an account opened, pause %g s", self.pause, extra={"connection": account}
            )
        return bool(provider_open or account_open)

    def answered(self, circuit: CircuitKey, account: str, *, now: float | None = None) -> None:
        """Record a call that was answered, if Redis needs to know. Without Redis that is dropped."""
        if not any(self._limits):
            return
        moment = _moment(now)
        with self._lock:
            self._answered[circuit] = moment
            to_record = (circuit, account) in self._to_record
            if not to_record and moment < self._recorded.get(circuit, -ANSWER_INTERVAL) + ANSWER_INTERVAL:
                return
            self._to_record.discard((circuit, account))
            self._recorded[circuit] = moment
        arguments = json_argument(now=_milliseconds(now), remembered=REMEMBERED)
        try:
            _ANSWERED.run(self._redis, _keys(circuit, account), arguments)
        except RedisError as error:
            log.warning("circuit breaker: success not recorded: %s", type(error).__name__)

    def end_probe(self, pipe: Pipeline, circuit: CircuitKey, account: str, job: str) -> None:
        """Queue the end of a job's probe. If it had no result, another job may probe."""
        _END_PROBE.queue(pipe, [provider_key(circuit), account_key(circuit, account)], job)

    def states(
        self, circuits: Sequence[CircuitKey], *, now: float | None = None
    ) -> Mapping[CircuitKey, CircuitState]:
        """The state of the breakers of each circuit.

        :raise redis.RedisError: when Redis is down
        """
        with self._redis.pipeline(transaction=False) as pipe:
            pipe.time()
            pipe.mget([provider_key(each) for each in circuits])
            (seconds, micros), values = pipe.execute()
            moment = (seconds + micros / 1e6 if now is None else now) * 1000
            for each in circuits:
                pipe.zcount(_open_accounts(each), moment, "+inf")
            counts = pipe.execute()
        return {
            circuit: _state(orjson.loads(value or b"{}"), count, moment)
            for circuit, value, count in zip(circuits, values, counts, strict=True)
        }


def _state(breaker: Mapping[str, Any], accounts: int, moment: float) -> CircuitState:
    if "retry_at" not in breaker:
        return CircuitState(accounts=accounts)
    return CircuitState(
        open=True,
        ago=(moment - breaker["since"]) / 1000,
        due=max(0.0, breaker["retry_at"] - moment) / 1000,
        probed=breaker.get("probe_until", 0) > moment,
        accounts=accounts,
    )


def _moment(now: float | None) -> float:
    return time.monotonic() if now is None else now


def _milliseconds(now: float | None) -> int | None:
    return None if now is None else int(now * 1000)


def _keys(circuit: CircuitKey, account: str) -> list[str]:
    last_answer = f"answered:{circuit.provider}:{circuit.access}"
    return [provider_key(circuit), account_key(circuit, account), last_answer, _open_accounts(circuit)]


def _open_accounts(circuit: CircuitKey) -> str:
    return f"{provider_key(circuit)}:open"


def provider_key(circuit: CircuitKey) -> str:
    """The Redis key of a provider's breaker."""
    # Not "breaker:", the prefix of keys of another type in earlier releases.
    return f"circuit:{circuit.provider}:{circuit.access}"


def account_key(circuit: CircuitKey, account: str) -> str:
    """The Redis key of an account's breaker. An account is named by its connection's id."""
    return f"{provider_key(circuit)}:{account}"
