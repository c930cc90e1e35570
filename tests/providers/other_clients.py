"""Other applications that change a calendar at random, at a server of each provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Protocol
from uuid import UUID

import requests

from tests.providers.ical.texts import calendar

FIRST = datetime(2026, 11, 20, tzinfo=UTC)
# From ten days before the range of a mirror to ten days after it.
DAYS = 51
MOST = 40


@dataclass(frozen=True)
class Entry:
    """An event of some hours, or of whole days; with ``days``, a daily series.

    ``moved`` and ``removed`` are numbers of occurrences.
    """

    subject: str
    start: datetime
    hours: int
    all_day: bool = False
    days: int = 0
    moved: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()

    @property
    def end(self) -> datetime:
        return self.start + (timedelta(days=1) if self.all_day else timedelta(hours=self.hours))

    def occurrence(self, number: int) -> datetime:
        """When an occurrence begins by the series."""
        return self.start + timedelta(days=number)


class Client(Protocol):
    """Writes events at a server. ``put`` creates one or replaces all of it, and returns its id."""

    # Whether an event that was deleted can be created again with its id.
    revives: bool

    def put(self, event_id: str | None, entry: Entry) -> str: ...

    def delete(self, event_id: str) -> None: ...

    def move_occurrence(self, event_id: str, entry: Entry, number: int) -> None: ...

    def remove_occurrence(self, event_id: str, entry: Entry, number: int) -> None: ...


@dataclass
class Others:
    """Applications that make random changes through a client.

    From 40 events on they delete more than they create, so that thousands of changes can be followed.
    """

    client: Client
    random: Random
    events: dict[str, Entry] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)

    def change(self) -> str:
        """Make one change; its name."""
        series = [each for each, entry in self.events.items() if entry.days]
        grows = len(self.events) < MOST
        choices: list[Callable[[], None]] = [self._create if grows else self._delete] * 3
        if self.events:
            choices += [self._rename, self._move, self._move, self._delete, self._convert]
        if series:
            choices += [lambda: self._occurrence(series)] * 3
        if self.deleted and self.client.revives:
            choices.append(self._revive)
        chosen = self.random.choice(choices)
        chosen()
        return chosen.__name__

    def _entry(self) -> Entry:
        start = FIRST + timedelta(days=self.random.randrange(DAYS), hours=self.random.randrange(24))
        all_day = self.random.random() < 0.2
        return Entry(
            f"Event {self.random.randrange(1000)}",
            start.replace(hour=0) if all_day else start,
            self.random.randrange(1, 30),
            all_day,
            days=self.random.choice((0, 0, 2, 5)) if not all_day else 0,
        )

    def _any(self) -> str:
        return self.random.choice(list(self.events))

    def _create(self) -> None:
        entry = self._entry()
        self.events[self.client.put(None, entry)] = entry

    def _write(self, event_id: str, entry: Entry) -> None:
        self.client.put(event_id, entry)
        self.events[event_id] = entry

    def _rename(self) -> None:
        event_id = self._any()
        self._write(event_id, replace(self.events[event_id], subject=f"New {self.random.randrange(1000)}"))

    def _move(self) -> None:
        event_id, other = self._any(), self._entry()
        known = self.events[event_id]
        if known.all_day == other.all_day:
            self._write(event_id, replace(known, start=other.start, hours=other.hours))

    def _convert(self) -> None:
        """Make a series of an event, or an event of a series."""
        event_id = self._any()
        known = self.events[event_id]
        if not known.moved and not known.removed and not known.all_day:
            self._write(event_id, replace(known, days=0 if known.days else 3))

    def _delete(self) -> None:
        event_id = self._any()
        self.client.delete(event_id)
        del self.events[event_id]
        self.deleted.append(event_id)

    def _revive(self) -> None:
        event_id, entry = self.deleted.pop(), replace(self._entry(), days=0)
        self.client.put(event_id, entry)
        self.events[event_id] = entry

    def _occurrence(self, series: list[str]) -> None:
        event_id = self.random.choice(series)
        known = self.events[event_id]
        number = self.random.randrange(known.days)
        if number in known.removed:
            return
        if self.random.random() < 0.5:
            self.client.move_occurrence(event_id, known, number)
            self.events[event_id] = replace(known, moved=known.moved | {number})
        elif len(known.removed) < known.days - 1:
            self.client.remove_occurrence(event_id, known, number)
            self.events[event_id] = replace(known, removed=known.removed | {number})


class _JsonClient:
    """A client of a JSON interface; ``path`` is that of a calendar's events."""

    revives = False

    def __init__(self, path: str, token: str) -> None:
        self._path = path
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {token}"
        # A proxy from the environment must not be used for a server on this machine.
        self._session.trust_env = False

    def put(self, event_id: str | None, entry: Entry) -> str:
        if event_id is None:
            return str(self._call("POST", "", self._body(entry))["id"])
        return str(self._call("PATCH", f"/{event_id}", self._body(entry))["id"])

    def delete(self, event_id: str) -> None:
        self._call("DELETE", f"/{event_id}")

    def move_occurrence(self, event_id: str, entry: Entry, number: int) -> None:
        start = entry.occurrence(number) + timedelta(minutes=30)
        body = {"start": self._edge(start), "end": self._edge(start + timedelta(hours=1))}
        self._call("PATCH", f"/{_occurrence_id(event_id, entry, number)}", body)

    def remove_occurrence(self, event_id: str, entry: Entry, number: int) -> None:
        self._call("DELETE", f"/{_occurrence_id(event_id, entry, number)}")

    def _body(self, entry: Entry) -> dict[str, Any]:
        raise NotImplementedError

    def _edge(self, when: datetime) -> dict[str, Any]:
        return {"dateTime": f"{when:%Y-%m-%dT%H:%M:%S}", "timeZone": "UTC"}

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._session.request(method, self._path + path, json=body, timeout=10)
        # An occurrence that an earlier move of its series has left may be gone.
        assert answer.ok or (answer.status_code in (400, 404, 410) and "_" in path), answer.text
        return answer.json() if answer.content else {}


def _occurrence_id(event_id: str, entry: Entry, number: int) -> str:
    return f"{event_id}_{entry.occurrence(number):%Y%m%dT%H%M%SZ}"


class GoogleClient(_JsonClient):
    """Writes at Google Calendar."""

    revives = True

    def _body(self, entry: Entry) -> dict[str, Any]:
        start, end = self._edge(entry.start), self._edge(entry.end)
        if entry.all_day:
            start, end = ({"date": f"{each:%Y-%m-%d}"} for each in (entry.start, entry.end))
        rule = [f"RRULE:FREQ=DAILY;COUNT={entry.days}"] if entry.days else None
        return {
            "summary": entry.subject,
            "status": "confirmed",
            "start": {"date": None, "dateTime": None} | start,
            "end": {"date": None, "dateTime": None} | end,
            "recurrence": rule,
        }


class GraphClient(_JsonClient):
    """Writes at Microsoft 365."""

    def _body(self, entry: Entry) -> dict[str, Any]:
        pattern = {
            "pattern": {"type": "daily", "interval": 1},
            "range": {
                "type": "numbered",
                "numberOfOccurrences": entry.days,
                "startDate": f"{entry.start:%Y-%m-%d}",
            },
        }
        return {
            "subject": entry.subject,
            "isAllDay": entry.all_day,
            "start": self._edge(entry.start),
            "end": self._edge(entry.end),
            "recurrence": pattern if entry.days else None,
        }


class TextClient:
    """Writes iCalendar: ``write`` stores the lines of all events by their UIDs, of which one has changed.

    The lines of an event that was deleted are None.
    """

    revives = True

    def __init__(self, random: Random, write: Callable[[dict[str, str], str], None]) -> None:
        self._random = random
        self._write = write
        self.texts: dict[str, str] = {}

    def put(self, event_id: str | None, entry: Entry) -> str:
        uid = event_id or str(UUID(int=self._random.getrandbits(128)))
        self.texts[uid] = "\n".join([_component(uid, entry), *_exceptions(uid, entry)])
        self._write(self.texts, uid)
        return uid

    def delete(self, event_id: str) -> None:
        del self.texts[event_id]
        self._write(self.texts, event_id)

    def move_occurrence(self, event_id: str, entry: Entry, number: int) -> None:
        self.put(event_id, replace(entry, moved=entry.moved | {number}))

    def remove_occurrence(self, event_id: str, entry: Entry, number: int) -> None:
        self.put(event_id, replace(entry, removed=entry.removed | {number}, moved=entry.moved - {number}))


def _component(uid: str, entry: Entry) -> str:
    lines = ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20261101T000000Z", f"SUMMARY:{entry.subject}"]
    if entry.all_day:
        lines += [f"DTSTART;VALUE=DATE:{entry.start:%Y%m%d}", f"DTEND;VALUE=DATE:{entry.end:%Y%m%d}"]
    else:
        lines += [f"DTSTART:{_utc(entry.start)}", f"DTEND:{_utc(entry.end)}"]
    if entry.days:
        lines.append(f"RRULE:FREQ=DAILY;COUNT={entry.days}")
        lines += [f"EXDATE:{_utc(entry.occurrence(number))}" for number in sorted(entry.removed)]
    return "\n".join([*lines, "END:VEVENT"])


def _exceptions(uid: str, entry: Entry) -> list[str]:
    found = []
    for number in sorted(entry.moved - entry.removed) if entry.days else ():
        start = entry.occurrence(number) + timedelta(minutes=30)
        one = replace(entry, start=start, hours=1, days=0)
        recurrence = f"RECURRENCE-ID:{_utc(entry.occurrence(number))}"
        found.append(_component(uid, one).replace("DTSTAMP", f"{recurrence}\nDTSTAMP"))
    return found


def _utc(when: datetime) -> str:
    return f"{when:%Y%m%dT%H%M%SZ}"


def feed(texts: dict[str, str]) -> bytes:
    """A feed of all events."""
    return calendar(*texts.values())
