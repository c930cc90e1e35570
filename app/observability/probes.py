"""Runs probes of the installation's parts in parallel, within a time limit even if a part hangs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from enum import Enum
from typing import Any, NamedTuple

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)

# A probe without a result for this many seconds is abandoned, and the next call starts another.
ABANDON_SECONDS = 60.0


class FaultKind(Enum):
    """Why a part is not ready."""

    UNREACHABLE = "unreachable"
    SLOW = "slow"
    # The database answers, and its tables are of another version.
    OUTDATED = "outdated"
    TOO_NEW = "too new"


class Fault(NamedTuple):
    """The fault of a part; ``reason`` continues a sentence that starts with the part's name."""

    reason: str
    kind: FaultKind = FaultKind.UNREACHABLE


class _Running(NamedTuple):
    result: Future[Any]
    started: float


class Probes:
    """The probes of a process. Each name has at most one probe running, even if its part hangs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}

    def run(self, probes: Mapping[str, Callable[[], Any]], *, seconds: float) -> dict[str, Any]:
        """The result of each probe by name, a ``Fault`` if it raised or took longer than ``seconds``."""
        results = {name: self._start(name, probe) for name, probe in probes.items()}
        wait(results.values(), timeout=seconds)
        return {name: _result(result) for name, result in results.items()}

    def _start(self, name: str, probe: Callable[[], Any]) -> Future[Any]:
        """Start a probe in a thread, unless one of this name is running: then share its result."""
        now = time.monotonic()
        with self._lock:
            last = self._running.get(name)
            if last is not None and not last.result.done() and now - last.started < ABANDON_SECONDS:
                return last.result
            result: Future[Any] = Future()
            self._running[name] = _Running(result, now)
        threading.Thread(target=_run, args=(name, probe, result), name=f"probe {name}", daemon=True).start()
        return result


def _run(name: str, probe: Callable[[], Any], result: Future[Any]) -> None:
    try:
        result.set_result(probe())
    except (SQLAlchemyError, RedisError, BrokerError, OSError) as error:
        # The error's text may name hosts and accounts.
        result.set_result(Fault(f"does not answer ({type(error).__name__})"))
    except Exception:
        log.exception("probe of %s failed", name)
        result.set_result(Fault("could not be checked: see the log"))


def _result(result: Future[Any]) -> Any:
    return result.result() if result.done() else Fault("does not answer in time", FaultKind.SLOW)
