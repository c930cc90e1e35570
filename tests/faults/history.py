"""A history of one watched calendar: its events, until when their times may be offered, and answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import requests

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Times:
    """Settings of the installation, in seconds."""

    max_age: float
    ttl: float
    deadline: float


@dataclass(frozen=True, slots=True)
class Known:
    """An event, and when it was there. ``hidden_until``: until then even requests after that may offer it."""

    start: datetime
    at: float
    hidden_until: float


@dataclass(frozen=True, slots=True)
class Gap:
    """No web process ran from ``begin`` to ``end``."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Answer:
    """A plain answer: when it was requested and received, its age, and the hours that it offers."""

    began: float
    ended: float
    age: float
    offered: frozenset[datetime]


@dataclass
class History:
    """Thread-safe by the interpreter's lock: lists are only appended to."""

    times: Times
    first: datetime
    events: list[Known] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _taken: int = 0

    def next_hour(self) -> datetime:
        """An hour that no event has."""
        self._taken += 1
        return self.first + self._taken * HOUR

    def exists(self, start: datetime, at: float, limit: float | None = None) -> None:
        """An event is at the provider since ``at``. Its time may be offered until ``limit``.

        Without a limit, it may be for the highest age.
        """
        self.events.append(Known(start, at, at + self.times.max_age if limit is None else limit))

    def back(self) -> float:
        """Seconds from the end of a gap to the next answer, at most."""
        found = [
            min((each.ended for each in self.answers if each.began >= gap.end), default=gap.end) - gap.end
            for gap in self.gaps
        ]
        return max(found, default=0.0)

    def wrong(self) -> list[str]:
        """The answers that offer a time that they may not offer any more."""
        found = []
        for answer in self.answers:
            for event in self.events:
                if event.start in answer.offered and answer.began > self._limit(event, answer):
                    late = answer.began - event.at
                    found.append(f"{event.start:%d %H} was busy for {late:.1f} s, Age {answer.age:.0f}")
        return found

    def _limit(self, event: Known, answer: Answer) -> float:
        """The last beginning of a request that may offer the time of an event."""
        limit = event.hidden_until
        for gap in self.gaps:
            if event.at < gap.end and gap.begin < answer.began and gap.end < answer.ended:
                limit = min(limit, event.at + self.times.ttl)
        return limit


class Reader:
    """Asks for the free hours all the time, without any ``Cache-Control``."""

    def __init__(self, url: str, key: str, history: History, pause: float) -> None:
        self._url, self._key, self._history, self._pause = url, key, history, pause
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with requests.Session() as session:
            session.trust_env = False
            session.headers.update({"Authorization": f"Bearer {self._key}", "Connection": "close"})
            while not self._over.wait(self._pause):
                self._ask(session)

    def _ask(self, session: requests.Session) -> None:
        first = self._history.first
        query = {
            "start": first.isoformat(),
            "end": (first + timedelta(days=60)).isoformat(),
            "slotDuration": "60",
        }
        began = time.monotonic()
        try:
            answer = session.get(self._url, params=query, timeout=300)
        except requests.RequestException as error:
            self._history.errors.append(type(error).__name__)
            return
        if answer.status_code != 200:
            self._history.errors.append(str(answer.status_code))
            return
        slots = answer.json()["data"]["availableSlots"]
        offered = frozenset(datetime.fromisoformat(each["start"]).astimezone(UTC) for each in slots)
        age = float(answer.headers["Age"])
        self._history.answers.append(Answer(began, time.monotonic(), age, offered))


def table(rows: Sequence[tuple[str, History]]) -> str:
    """The answers that the readers have seen."""
    titles = ("calendar", "events", "gaps", "answers", "errors", "oldest", "wrong")
    lines = [titles, ("---",) * len(titles)]
    for name, each in rows:
        oldest = max((answer.age for answer in each.answers), default=0.0)
        counts = (len(each.events), len(each.gaps), len(each.answers), len(each.errors))
        lines.append((name, *map(str, counts), f"{oldest:.0f} s", str(len(each.wrong()))))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
