"""Clients that read and write all the time, and compare every answer with the provider's data."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import requests

from tests.faults import truth
from tests.faults.questions import Question, Verdict, busy_of_one

# The connection was accepted and broke off; the connection was refused.
CUT_OFF, REFUSED = "cut off", "refused"

# Pauses of each client, so that the machine is not overloaded.
PAUSE = 0.1

# Longer than the claim of an Idempotency-Key of a request that was killed.
PATIENCE = 100.0


@dataclass(frozen=True)
class Seen:
    """One answer: ``outcome`` is a verdict, an error status, or the kind of a missing answer."""

    question: str
    sent: float
    seconds: float
    outcome: str


@dataclass
class Write:
    """A write that must exist once, whatever its answers were."""

    path: str
    body: dict[str, Any]
    key: str
    answers: list[str] = field(default_factory=list)
    # The last successful answer.
    made: Any = None

    @property
    def done(self) -> bool:
        return "201" in self.answers


class Witness:
    """Sends ``questions`` and writes in threads of its own, until it is stopped.

    ``writers`` are paths below ``/v1`` to which events are posted, each with the path that answers its
    busy times.
    """

    def __init__(
        self, url: str, key: str, questions: Iterable[Question], writers: dict[str, str], name: str
    ) -> None:
        self.url = url
        self.key = key
        self.questions = list(questions)
        self.writers = writers
        self.name = name
        self.seen: list[Seen] = []
        self.wrong: list[str] = []
        # The error answers, for the message of a failed test.
        self.errors: list[str] = []
        self.writes: list[Write] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def clients(self) -> list[Callable[[requests.Session, int], None]]:
        """What each client does again and again, with its session and the number of the round."""
        half = len(self.questions) // 2
        return [
            partial(self._ask, self.questions[:half]),
            partial(self._ask, self.questions[half:]),
            partial(self._write, *next(iter(self.writers.items()))),
            partial(self._write, *list(self.writers.items())[-1]),
            self._register,
        ]

    def __enter__(self) -> Self:
        for work in self.clients():
            thread = threading.Thread(target=self._repeat, args=(work,))
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def run_for(self, seconds: float) -> None:
        """Let the clients run for this time."""
        assert not self._stop.wait(seconds)

    def wait_for_recovery(self, within: float) -> float:
        """Seconds until every question is answered right, one after the other."""
        began = time.monotonic()
        with self.session() as session:
            while True:
                sent = time.monotonic()
                outcomes = {each.name: self._outcome_of(each, session) for each in self.questions}
                if all(outcome == Verdict.RIGHT for outcome in outcomes.values()):
                    return sent - began
                assert time.monotonic() - began < within, outcomes
                time.sleep(PAUSE)

    def outcomes(self) -> Counter[str]:
        """How often each outcome was seen, by all clients."""
        return Counter(each.outcome for each in list(self.seen))

    def last_trouble(self) -> float:
        """The time of the last answer that was not right."""
        bad = [each.sent + each.seconds for each in self.seen if each.outcome != Verdict.RIGHT]
        return max(bad, default=0.0)

    def slowest(self) -> float:
        """Seconds that the longest answer took."""
        return max(each.seconds for each in self.seen)

    def settle(self) -> int:
        """Send unfinished writes again, each with its key, until they succeed; returns how many they were."""
        again = [write for write in self.writes if not write.done]
        self.repeat(again)
        return len(again)

    def repeat(self, writes: Iterable[Write]) -> None:
        """Send each with its first key, until it succeeds."""
        give_up = time.monotonic() + PATIENCE
        with self.session() as session:
            for write in writes:
                while self.send(write, session) not in ("201", "409 exists"):
                    assert time.monotonic() < give_up, write
                    time.sleep(0.5)

    def _repeat(self, work: Callable[[requests.Session, int], None]) -> None:
        with self.session() as session:
            number = 0
            while not self._stop.wait(PAUSE):
                work(session, number)
                number += 1

    def _ask(self, questions: list[Question], session: requests.Session, number: int) -> None:
        self._outcome_of(questions[number % len(questions)], session)

    def _write(self, path: str, busy: str, session: requests.Session, number: int) -> None:
        """Writes an event, then checks that the written events are busy times."""
        body = {"subject": f"{self.name} {number}", **truth.body(truth.written(number))}
        write = Write(path, body, f"{self.name}-{path}-{number}".replace("/", "."))
        self.writes.append(write)
        self.send(write, session)
        there = [
            truth.written(n)
            for n, each in enumerate(each for each in self.writes if each.path == path)
            if each.done
        ]
        question = Question("busy after a write", busy, busy_of_one(there), query=truth.DURING_WRITTEN)
        self._outcome_of(question, session)

    def _register(self, session: requests.Session, number: int) -> None:
        """A user, which is a row of the database alone."""
        key = f"{self.name}-user-{number}"
        write = Write("/users", {"id": key}, key)
        self.writes.append(write)
        self.send(write, session)
        # They are the fastest requests.
        self._stop.wait(5 * PAUSE)

    def send(self, write: Write, session: requests.Session) -> str:
        """Send the write, and return the outcome."""
        began = time.monotonic()
        try:
            answer = session.post(
                f"{self.url}/v1{write.path}",
                json=write.body,
                headers={"Authorization": f"Bearer {self.key}", "Idempotency-Key": write.key},
                timeout=60,
            )
        except requests.RequestException as error:
            outcome = _unanswered(error)
            # A refused client retries a little later.
            self._stop.wait(5 * PAUSE)
        else:
            outcome = str(answer.status_code)
            if answer.status_code == 201:
                write.made = answer.json()["data"]
                assert write.made, answer.text
            else:
                self._check_error(f"POST {write.path}", answer)
                if "already exists" in answer.text:
                    outcome = "409 exists"
        write.answers.append(outcome)
        told = Verdict.RIGHT if outcome == "201" else outcome
        self.seen.append(Seen("write", began, time.monotonic() - began, told))
        return outcome

    def _outcome_of(self, question: Question, session: requests.Session) -> str:
        began = time.monotonic()
        try:
            answer = question.ask(session, self.url, self.key)
        except requests.RequestException as error:
            outcome = _unanswered(error)
            # A refused client retries a little later.
            self._stop.wait(5 * PAUSE)
        else:
            outcome = self._judge(question, answer)
        self.seen.append(Seen(question.name, began, time.monotonic() - began, outcome))
        return outcome

    def _judge(self, question: Question, answer: requests.Response) -> str:
        if answer.status_code != 200:
            self._check_error(question.name, answer)
            return str(answer.status_code)
        try:
            return question.judge(answer.json())
        except (AssertionError, KeyError, TypeError) as error:
            self.wrong.append(f"{question.name}: {error!r}")
            return "wrong"

    def _check_error(self, what: str, answer: requests.Response) -> None:
        """Every error is one sentence in the envelope, with ``Retry-After`` where that helps."""
        told = f"{what} answered {answer.status_code}: {answer.text[:300]}"
        self.errors.append(told)
        try:
            body = answer.json()
            assert body["data"] is None
            assert isinstance(body["error"], str)
            assert body["error"]
            assert answer.headers["X-Request-Id"]
            assert answer.status_code != 503 or answer.headers["Retry-After"]
        except (AssertionError, KeyError, TypeError, ValueError):
            self.wrong.append(told)

    def session(self) -> requests.Session:
        """For one thread."""
        session = requests.Session()
        session.trust_env = False
        # A kept connection may be closed at the moment of its reuse: that is no error.
        session.headers["Connection"] = "close"
        return session


def _unanswered(error: requests.RequestException) -> str:
    return REFUSED if "NewConnectionError" in repr(error) else CUT_OFF
