"""Asks the parts of the installation all at once, and waits no longer than it is told to for any of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)

# An answer that has not come after so many seconds is given up: it is asked for anew.
GIVEN_UP = 60.0


class Trouble(NamedTuple):
    """What is wrong with a part: what it does, after its name."""

    reason: str


class _Asked(NamedTuple):
    answer: Future[Any]
    at: float


class Parts:
    """One for each process. Of a part that hangs, no more than one question is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}

    def ask(self, questions: Mapping[str, Callable[[], Any]], *, seconds: float) -> dict[str, Any]:
        """What each answers, or the trouble that it has; no later than in so many seconds."""
        asked = {part: self._ask(part, question) for part, question in questions.items()}
        wait(asked.values(), timeout=seconds)
        return {part: _answer(answer) for part, answer in asked.items()}

    def _ask(self, part: str, question: Callable[[], Any]) -> Future[Any]:
        """Ask in a thread; who asks during that waits for the same answer."""
        now = time.monotonic()
        with self._lock:
            last = self._asked.get(part)
            if last is not None and not last.answer.done() and now - last.at < GIVEN_UP:
                return last.answer
            answer: Future[Any] = Future()
            self._asked[part] = _Asked(answer, now)
        threading.Thread(target=_run, args=(part, question, answer), name=f"ask {part}", daemon=True).start()
        return answer


def _run(part: str, question: Callable[[], Any], answer: Future[Any]) -> None:
    try:
        answer.set_result(question())
    except (SQLAlchemyError, RedisError, BrokerError, OSError) as error:
        # Its text may name hosts and accounts.
        answer.set_result(Trouble(f"does not answer ({type(error).__name__})"))
    except Exception:
        log.exception("%s could not be asked", part)
        answer.set_result(Trouble("could not be asked: the log says why"))


def _answer(answer: Future[Any]) -> Any:
    return answer.result() if answer.done() else Trouble("does not answer in time")
