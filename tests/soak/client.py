"""One client: asks and writes for the people of its circle, and compares each answer with the model."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, ClassVar
from urllib.parse import quote

import requests

from tests.app.at_provider import AtProvider
from tests.soak.faults import READS_FAULT, WRITES_FAULT
from tests.soak.installation import DEADLINE, TTL, SoakInstallation, meeting
from tests.soak.model import (
    END,
    HOUR,
    MINUTE,
    START,
    Calendar,
    Circle,
    Period,
    Person,
    Question,
    combinations,
    merged,
    text,
)
from tests.soak.records import Records
from tests.soak.spelling import edge, minutes, period, periods

# Beyond the cache's time to live: for a read in progress, and a busy machine.
SLACK = DEADLINE + 1.0
# Until the outcome of a write that timed out is final.
DOUBT = 2 * DEADLINE + 2.0
RANGE = {"start": text(START), "end": text(END)}


class Client:
    """``run`` continues until the stop event is set."""

    def __init__(self, soak_installation: SoakInstallation, number: int, records: Records, seed: int) -> None:
        self.people = soak_installation.circles[number]
        self.slug = f"circle-{number}"
        self._installation, self._records = soak_installation, records
        self._random = Random(seed * 1000 + number)
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {soak_installation.almanac.key}"
        self._numbers = itertools.count()
        self._circle = Circle(self.people)
        refusable = soak_installation.refusable()
        self._refusable = {each.account.main_calendar_id for each in refusable} | {"primary"}
        self._refusable_users = {
            person.user for person in self.people if any(each in refusable for each in person.calendars)
        }
        # Clients connect one after the other, so that each web process gets some, and keep connections.
        self._session.get(f"{soak_installation.almanac.url}/healthz", timeout=60)

    def run(self, until: float) -> None:
        """Mixed traffic, one request after the other."""
        actions = [action for action, share in self.shares.items() for _ in range(share)]
        while time.monotonic() < until:
            self._clear_doubts()
            action = self._random.choice(actions)
            try:
                action(self)
            except requests.RequestException as error:
                # Almanac always answers; the sandbox behind a fault does not, and is read below.
                self._records.is_wrong(f"{action.__name__}: {type(error).__name__}: {error}")
            time.sleep(self._random.uniform(0, 0.05))

    def check_connections(self) -> None:
        """At the end: no refused call has ended a connection."""
        for person in self.people:
            _, answer = self._ask("GET user", f"/users/{person.user}")
            if not all(each["alive"] for each in answer.json()["data"]["oauthConnections"]):
                self._records.is_wrong(f"a connection of {person.user} has ended")

    # Reading

    def busy(self) -> None:
        person = self._sure()
        fresh = self._random.random() < 0.2
        headers = {"Cache-Control": "no-cache"} if fresh else {}
        asked, answer = self._ask(
            "GET user busy", f"/users/{person.user}/calendar/busy", RANGE, headers=headers
        )
        if answer.status_code != 200:
            return self._failed(answer, person.user)
        body = answer.json()
        failed = {each["provider"] for each in body["failedCalendars"]}
        read = [each for each in person.calendars if each.account.provider not in failed]
        self._records.count(answered=len(read), named=len(person.calendars) - len(read))
        if fresh:
            for each in read:
                each.written()
        found = periods(body["data"])
        wanted = (merged(frozenset().union(*states), START, END) for states in combinations(read, asked))
        self._check(found, wanted, f"busy of {person.user} without {failed}", asked)
        return None

    def slots(self) -> None:
        person, question = self._sure(), self._question()
        asked, answer = self._ask("GET user scheduling", f"/users/{person.user}/scheduling", question.query())
        if answer.status_code != 200:
            return self._failed(answer, person.user)
        self._records.count(answered=1)
        self._check_slots(person, question, answer.json()["data"]["availableSlots"], asked)
        return None

    def slots_of_several(self) -> None:
        people = [
            each for each in self._random.sample(self.people, min(4, len(self.people))) if self._is_sure(each)
        ]
        question = self._question()
        body = {"users": [{"id": each.user} for each in people]}
        query = {name: each for name, each in question.query().items() if not name.endswith("EachDay")}
        question = Question(
            question.start, question.end, question.duration, question.padding, question.overlaps, None
        )
        asked, answer = self._ask(
            "POST users scheduling", "/users/scheduling", query, method="POST", json=body
        )
        if answer.status_code != 200:
            return self._failed(answer, "several")
        for person, entry in zip(people, answer.json()["data"], strict=True):
            if entry["status"] == "ok":
                self._records.count(answered=1)
                self._check_slots(person, question, entry["availableSlots"], asked)
            elif entry["userId"] != person.user or not entry["error"]:
                self._records.is_wrong(f"an entry without an answer or a reason: {entry}")
            else:
                self._records.count(named=1)
        return None

    def organization_slots(self) -> None:
        question = self._question()
        path = f"/organizations/{self.slug}/scheduling"
        asked, answer = self._ask("GET organization scheduling", path, question.query())
        if answer.status_code != 200:
            return self._failed(answer, self.slug)
        body = answer.json()
        failed = {each["customId"] for each in body["failedUsers"]}
        self._records.count(answered=len(self.people) - len(failed), named=len(failed))
        by_user: dict[str, list[Any]] = {each.user: [] for each in self.people}
        for slot in body["data"]["availableSlots"]:
            by_user[slot["userId"]].append(slot)
        for person in self.people:
            if person.user in failed:
                if by_user[person.user]:
                    self._records.is_wrong(f"{person.user} has failed and has slots")
            elif self._is_sure(person):
                self._check_slots(person, question, by_user[person.user], asked)
        return None

    def organization_busy(self) -> None:
        if any(person.in_doubt() for person in self.people):
            return None
        path = f"/organizations/{self.slug}/calendar/busy"
        asked, answer = self._ask("GET organization busy", path, RANGE)
        if answer.status_code != 200:
            return self._failed(answer, self.slug)
        body = answer.json()
        failed = {each["customId"] for each in body["failedUsers"]}
        self._records.count(answered=len(self.people) - len(failed), named=len(failed), checked=1)
        found = set(minutes(periods(body["data"])))
        # Of each calendar the minutes busy in every state of it, and in any.
        sure: set[int] = set()
        possible: set[int] = set()
        for person in self.people:
            for calendar in person.calendars:
                pictures = [set(minutes(merged(each, START, END))) for each in calendar.states(asked)]
                possible |= set().union(*pictures)
                if person.user not in failed:
                    sure |= pictures[0].intersection(*pictures)
        if missing := sure - found:
            self._records.is_wrong(
                f"organization busy: {len(missing)} busy minutes look free, {failed} named"
            )
        if more := found - possible:
            self._records.is_wrong(f"organization busy: {len(more)} free minutes look busy")
        return None

    def explain(self) -> None:
        person, question = self._sure(), self._question()
        at = question.start + self._random.randrange(0, (question.end - question.start) // MINUTE) * MINUTE
        path = f"/users/{person.user}/scheduling/explain"
        asked, answer = self._ask("GET explain", path, {**question.query(), "at": text(at)})
        if answer.status_code != 200:
            return self._failed(answer, person.user)
        body = answer.json()
        if body["failedCalendars"]:
            self._records.count(named=1)
            return None
        self._records.count(answered=1, checked=1)
        offered = {
            any(a <= at < b for a, b in question.slots(states, self._circle.held_of(person)))
            for states in combinations(person.calendars, asked)
        }
        if body["data"]["offered"] not in offered:
            self._records.is_wrong(f"explain: {person.user} at {text(at)}: {answer.text}")
        return None

    def calendars(self) -> None:
        person = self._random.choice(self.people)
        _, answer = self._ask("GET calendars", f"/users/{person.user}/calendar", {})
        if answer.status_code != 200:
            return self._failed(answer, person.user)
        self._records.count(answered=1, checked=1)
        if not answer.json().get("failedCalendars") and len(answer.json()["data"]) != len(person.calendars):
            self._records.is_wrong(f"calendars of {person.user}: {answer.text}")
        return None

    # Writing

    def create(self) -> None:
        calendar, person = self._own()
        period = meeting(self._random)
        body = {"start": text(period[0]), "end": text(period[1]), "subject": "Ours"}
        _, answer = self._ask("POST event", self._events(person, calendar), method="POST", json=body)
        if answer.status_code != 201:
            return self._unclear(answer, [calendar], person.user)
        calendar.events[answer.json()["data"]["id"]] = period
        self._done(calendar)
        return None

    def update(self) -> None:
        calendar, person = self._own()
        event = self._one_of(calendar)
        if event is None:
            return self.create()
        period = meeting(self._random)
        path = f"{self._events(person, calendar)}/{quote(event, safe='')}"
        body = {"start": text(period[0]), "end": text(period[1])}
        _, answer = self._ask("PUT event", path, method="PUT", json=body)
        if answer.status_code != 200:
            return self._unclear(answer, [calendar], person.user)
        calendar.events[event] = period
        self._done(calendar)
        return None

    def delete(self) -> None:
        calendar, person = self._own()
        event = self._one_of(calendar)
        if event is None:
            return self.create()
        path = f"{self._events(person, calendar)}/{quote(event, safe='')}"
        _, answer = self._ask("DELETE event", path, method="DELETE")
        if answer.status_code != 200:
            return self._unclear(answer, [calendar], person.user)
        del calendar.events[event]
        self._done(calendar)
        return None

    def unified(self) -> None:
        """Created in every account, and half of the time deleted again."""
        person = self._sure()
        period = meeting(self._random)
        meta = f"{person.user}-{next(self._numbers)}"
        path = f"/users/{person.user}/calendar/events/meta"
        body = {"start": text(period[0]), "end": text(period[1]), "subject": "Unified", "metaId": meta}
        _, answer = self._ask("POST unified", path, method="POST", json=body)
        if answer.status_code != 201:
            return self._unclear(answer, person.calendars, person.user)
        copies = {each["provider"]: each["id"] for each in answer.json()["data"]["events"]}
        for calendar in person.calendars:
            calendar.events[copies[calendar.account.provider]] = period
        self._done(*person.calendars)
        if self._random.random() < 0.5:
            _, answer = self._ask("DELETE unified", f"{path}/{meta}", method="DELETE")
            if answer.status_code != 200:
                return self._unclear(answer, person.calendars, person.user)
            for calendar in person.calendars:
                del calendar.events[copies[calendar.account.provider]]
            self._done(*person.calendars)
        return None

    def elsewhere(self) -> None:
        """A change by another program, which the service does not see."""
        calendar, _ = self._own()
        before = calendar.now
        there = AtProvider(self._installation.sandbox, calendar.account)
        period = meeting(self._random)
        try:
            event = self._one_of(calendar)
            if event is not None and self._random.random() < 0.4:
                there.delete(event)
                del calendar.events[event]
            else:
                made = there.post(
                    **{name: edge(there, at) for name, at in zip(("start", "end"), period, strict=True)}
                )
                calendar.events[made["id"]] = period
        except (AssertionError, requests.RequestException):
            # A fault hit this program.
            calendar.in_doubt = time.monotonic()
        calendar.changed_elsewhere(before, TTL + SLACK)
        self._records.count(outside=1)

    # Shared by all clients

    def _ask(
        self,
        route: str,
        path: str,
        query: dict[str, str] | None = None,
        *,
        method: str = "GET",
        json: Any = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[float, requests.Response]:
        asked = time.monotonic()
        url = f"{self._installation.almanac.url}/v1{path}"
        answer = self._session.request(method, url, params=query, json=json, headers=headers, timeout=60)
        self._records.request(route, answer.status_code, time.monotonic() - asked)
        for failure in failures(answer.json()):
            if not self._has_a_cause(failure):
                self._records.is_wrong(f"{route}: failed without a cause: {failure}")
        return asked, answer

    def _has_a_cause(self, failure: dict[str, Any]) -> bool:
        """Whether a fault explains a failure: nothing else fails, and nothing wider than its cause."""
        if "unreadable answer" in f"{failure.get('message')} {failure.get('error')}":
            return False
        if failure["reason"] == "accessDenied":
            calendar = failure.get("calendarId")
            return calendar is None or calendar in self._refusable
        return failure["reason"] in ("rateLimited", "providerError")

    def _failed(self, answer: requests.Response, *whose: str, fair: set[int] = READS_FAULT) -> None:
        self._records.count(named=1)
        refused = answer.status_code == 403 and not self._refusable_users.isdisjoint(whose)
        if answer.status_code not in fair and not refused:
            self._records.is_wrong(f"{answer.request.method} for {whose}: {answer.status_code} {answer.text}")

    def _done(self, *calendars: Calendar) -> None:
        self._records.count(answered=1)
        for calendar in calendars:
            calendar.written()

    def _unclear(self, answer: requests.Response, calendars: Iterable[Calendar], whose: str) -> None:
        """It may have succeeded all the same, or may succeed later."""
        self._failed(answer, whose, fair=WRITES_FAULT)
        self._records.count(unclear=1)
        for calendar in calendars:
            calendar.in_doubt = time.monotonic() + DOUBT

    def _clear_doubts(self) -> None:
        """Read the provider's own data."""
        for calendar in (each for person in self.people for each in person.calendars):
            if not 0 < calendar.in_doubt <= time.monotonic():
                continue
            there = AtProvider(self._installation.sandbox, calendar.account)
            try:
                found = {each["id"]: period(each) for each in there.events()}
            except (AssertionError, requests.RequestException, ValueError):
                continue
            before = calendar.now
            calendar.events, calendar.in_doubt = found, 0.0
            calendar.changed_elsewhere(before, TTL + SLACK)

    def _sure(self) -> Person:
        while not (people := [person for person in self.people if self._is_sure(person)]):
            time.sleep(0.2)
            self._clear_doubts()
        return self._random.choice(people)

    def _is_sure(self, person: Person) -> bool:
        return self._circle.is_sure(person, DEADLINE)

    def _own(self) -> tuple[Calendar, Person]:
        person = self._sure()
        return self._random.choice(person.calendars), person

    def _one_of(self, calendar: Calendar) -> str | None:
        """An event that has an id of the provider's."""
        ids = [each for each in calendar.events if not each.startswith("seeded")]
        return self._random.choice(ids) if ids else None

    def _events(self, person: Person, calendar: Calendar) -> str:
        return f"/users/{person.user}/calendar/events/{calendar.account.provider}/primary"

    def _question(self) -> Question:
        start = START + self._random.randrange(0, 5 * 24 * 4) * 15 * MINUTE
        return Question(
            start,
            start + self._random.choice((12, 24, 48)) * HOUR,
            self._random.choice((15, 30, 45, 60)) * MINUTE,
            self._random.choice((0, 0, 5, 10)) * MINUTE,
            self._random.choice((0, 0, 0, 1)),
            self._random.choice((None, (8 * 60, 18 * 60), (9 * 60 + 30, 17 * 60))),
        )

    def _check_slots(self, person: Person, question: Question, slots: Sequence[Any], asked: float) -> None:
        held = self._circle.held_of(person)
        wanted = (question.slots(states, held) for states in combinations(person.calendars, asked))
        self._check(periods(slots), wanted, f"slots of {person.user} for {question.query()}", asked)

    def _check(self, found: list[Period], wanted: Iterable[list[Period]], what: str, asked: float) -> None:
        self._records.count(checked=1)
        truth: list[Period] | None = None
        for each in wanted:
            truth = truth if truth is not None else each
            if found == each:
                return
        apart = sorted(set(found) ^ set(truth or ()))
        differences = [
            f"{text(a)}..{text(b)} {'answered' if (a, b) in found else 'true'}" for a, b in apart[:6]
        ]
        self._records.is_wrong(f"{what}: {'; '.join(differences)}")

    # How often each action is chosen.
    shares: ClassVar[dict[Callable[[Client], None], int]] = {
        busy: 5,
        slots: 6,
        slots_of_several: 3,
        organization_slots: 2,
        organization_busy: 2,
        explain: 2,
        calendars: 1,
        create: 2,
        update: 2,
        delete: 1,
        unified: 1,
        elsewhere: 2,
    }


def failures(value: Any) -> Iterator[dict[str, Any]]:
    """Every failure in an answer, at any depth."""
    if isinstance(value, dict):
        if isinstance(value.get("reason"), str) and value.keys() & {"message", "error"}:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from failures(each)
