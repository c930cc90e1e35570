"""Mutated answers on the whole way: provider, worker, web, client. Busy stays busy, and nothing breaks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox, SandboxAccount
from tests.fuzz import strict, truth
from tests.fuzz.conversations import EMAIL, END, NAMES, START, TEAM, Conversation, asked_of, seed
from tests.fuzz.counting import count
from tests.fuzz.proxy import Case, Proxy, between
from tests.fuzz.strict import Garbage, Period, uncovered
from tests.installation.builder import Installation, installed

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(3600)]

CASES = int(os.environ.get("ALMANAC_EXAMPLES", "400"))
AT_ONCE = 6
RANGE = {"start": "2026-12-01", "end": "2026-12-07"}
# Errors of the service, the client or the provider, reported as such.
FAIR = {200, 201, 400, 401, 403, 404, 409, 422, 429, 502, 503}
BUSY: dict[str, list[Period]] = {}


@dataclass
class Person:
    """A user with one account, and a colleague at the other provider whose answers are not mutated."""

    user: str
    account: SandboxAccount
    organization: str
    colleague: str
    # The provider's id of the main calendar.
    main: str

    @property
    def provider(self) -> str:
        return self.account.provider

    @property
    def calendars(self) -> list[str]:
        return ["primary", TEAM[self.provider]]

    def shown(self, calendar: str) -> set[str]:
        """The ids that answers may use for a calendar."""
        return {calendar, self.main} if calendar == "primary" else {calendar}


@dataclass
class World:
    """An installation whose workers see the providers through the proxy."""

    installation: Installation
    proxy: Proxy
    people: list[Person]

    def __post_init__(self) -> None:
        self.url, self.key = self.installation.url, self.installation.key

    def call(self, method: str, path: str, **more: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = requests.request(method, f"{self.url}/v1{path}", headers=headers, timeout=60, **more)
        count("requests with mutated answers behind them")
        assert answer.status_code in FAIR, (method, path, answer.status_code, answer.text)
        answer.json()
        return answer

    def get(self, path: str, **query: Any) -> requests.Response:
        return self.call("GET", path, params=query)


@pytest.fixture(scope="module")
def world(
    environment: dict[str, str], sandbox_process: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    sandbox = Sandbox(sandbox_process)
    sandbox.reset()
    with between(sandbox_process) as proxy:
        changed = {
            "ALMANAC_GOOGLE_API_URL": f"{proxy.url}/google/calendar/v3",
            "ALMANAC_MICROSOFT_GRAPH_URL": f"{proxy.url}/microsoft/v1.0",
            # Every request asks the providers.
            "ALMANAC_BUSY_TTL": "0",
            "ALMANAC_FANOUT_DEADLINE": "2",
        }
        with installed(environment, tmp_path_factory.mktemp("fuzzed"), **changed) as installation:
            people = [_person(sandbox, installation, n) for n in range(AT_ONCE)]
            yield World(installation, proxy, people)


def _person(sandbox: Sandbox, installation: Installation, number: int) -> Person:
    provider, other = NAMES[number % 2], NAMES[1 - number % 2]
    account = seed(sandbox, provider, f"{number}-{EMAIL[provider]}")
    quiet = seed(sandbox, other, f"{number}-{EMAIL[other]}")
    user = installation.user(f"user-{number}", account)
    colleague = installation.user(f"colleague-{number}", quiet)
    slug = f"team-{number}"
    assert installation.call("POST", "/organizations", json={"slug": slug, "name": None}).ok
    members = {"userIds": [user, colleague]}
    assert installation.call("POST", f"/organizations/{slug}/members", json=members).ok
    listed = installation.get(f"/users/{user}/calendar").json()["data"]
    (main,) = (each["id"] for each in listed if each["primary"])
    return Person(user, account, slug, colleague, main)


def periods(items: list[dict[str, str]]) -> list[Period]:
    def at(text: str) -> int:
        return round(datetime.fromisoformat(text).timestamp() * 1000)

    return [(at(each["start"]), at(each["end"])) for each in items]


def listed(heard: Conversation, person: Person) -> list[str] | None:
    """The account's calendars by the conversation; None when it is garbage, or has no calendar list."""
    for asked, status, content in heard.answers.values():
        try:
            if asked.url.split("?")[0].endswith("/calendarList"):
                strict.need(status == 200)
                found = strict.google_calendars(content)
                return ["primary" if each == person.account.email else each for each in found]
            if any(each["url"].startswith("/me/calendars?") for each in asked_of(asked).get("requests", ())):
                strict.need(status == 200)
                (path,) = (
                    each["url"] for each in asked_of(asked)["requests"] if "/me/calendars?" in each["url"]
                )
                return strict.graph_calendars(strict.parts(asked_of(asked), content).get(path, {}))
        except Garbage:
            return None
    return None


def claimed(heard: Conversation, person: Person, calendar: str, operation: str) -> list[Period] | None:
    """The provider's periods of a calendar, if they are beyond doubt."""
    calendars = listed(heard, person)
    if calendars is not None and calendar not in calendars:
        return []
    marks = {"events": ("/events?", "calendarView"), "busy": ("freeBusy", "calendarView")}[operation]
    about = {
        key: each
        for key, each in heard.answers.items()
        if any(mark in each[0].url or mark.encode() in (each[0].body or b"") for mark in marks)
    }
    if not about:
        return None
    return truth.claims(Conversation(operation, about), person.provider, [calendar])[calendar]


def judge(
    person: Person,
    case: Case,
    calendars: list[str],
    answer: list[Period],
    named: set[str],
    operation: str = "busy",
) -> None:
    """Each calendar is named, or its busy time is in the answer: the old one, or the provider's latest."""
    for calendar in calendars:
        if named & person.shown(calendar):
            count("requests in which a calendar is named as failed")
            continue
        said = claimed(case.heard, person, calendar, operation)
        if said is not None and not uncovered(said, answer, START, END):
            continue
        left = uncovered(BUSY[person.provider + calendar], answer, START, END)
        # A list of events leaves out what cannot be shown: at most the one event that was changed.
        assert len(left) <= (operation == "events"), (calendar, left)


def busy(world: World, person: Person, case: Case) -> None:
    answer = world.get(f"/users/{person.user}/calendar/busy", **RANGE)
    if answer.status_code == 200:
        named = {each["calendarId"] for each in answer.json()["failedCalendars"]}
        judge(person, case, person.calendars, periods(answer.json()["data"]), named)


def organization(world: World, person: Person, case: Case) -> None:
    answer = world.get(f"/organizations/{person.organization}/calendar/busy", **RANGE)
    assert answer.status_code == 200, answer.text
    failed = {each["customId"]: each["failedCalendars"] for each in answer.json()["failedUsers"]}
    assert person.colleague not in failed, answer.text
    found = periods(answer.json()["data"])
    other = NAMES[1 - NAMES.index(person.provider)]
    for calendar in ("primary", TEAM[other]):
        assert not uncovered(BUSY[other + calendar], found, START, END), "the colleague's time looks free"
    if person.user not in failed or failed[person.user]:
        judge(
            person,
            case,
            person.calendars,
            found,
            {each["calendarId"] for each in failed.get(person.user, ())},
        )


def slots(world: World, person: Person, case: Case) -> None:
    answer = world.get(f"/users/{person.user}/scheduling", slotDuration="15", onFailure="partial", **RANGE)
    if answer.status_code != 200:
        return
    named = {each["calendarId"] for each in answer.json()["failedCalendars"]}
    free = sorted(periods(answer.json()["data"]["availableSlots"]))
    # The quarters of an hour between slots are busy.
    edges = [START, *(edge for slot in free for edge in slot), END]
    taken = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
    judge(person, case, ["primary"], taken, named)


def events(world: World, person: Person, case: Case) -> None:
    answer = world.get(f"/users/{person.user}/calendar/events", **RANGE)
    if answer.status_code == 200:
        named = {each["calendarId"] for each in answer.json()["failedCalendars"]}
        judge(person, case, person.calendars, periods(answer.json()["data"]), named, "events")


def calendars(world: World, person: Person, case: Case) -> None:
    world.get(f"/users/{person.user}/calendar")


def writes(world: World, person: Person, case: Case) -> None:
    """Next year, outside every requested range."""
    path = f"/users/{person.user}/calendar/events/{person.provider}/primary"
    body = {"start": "2027-12-03T09:00:00Z", "end": "2027-12-03T10:00:00Z", "subject": "x"}
    made = world.call("POST", path, json=body)
    if made.status_code == 201:
        event = requests.utils.quote(made.json()["data"]["id"], safe="")
        if world.call("PUT", f"{path}/{event}", json={"subject": "y"}).status_code == 200:
            world.get(f"{path}/{event}")
        world.call("DELETE", f"{path}/{event}")


def unified(world: World, person: Person, case: Case) -> None:
    path = f"/users/{person.user}/calendar/events/meta"
    body = {"start": "2027-12-03", "end": "2027-12-04", "metaId": f"meta-{case.mutations}-{id(case)}"}
    if world.call("POST", path, json=body).status_code == 201:
        world.get(f"{path}/{body['metaId']}")
        world.call("DELETE", f"{path}/{body['metaId']}")


QUESTIONS = (busy, busy, organization, organization, slots, slots, events, calendars, writes, unified)


def test_garbage_of_a_provider_is_never_free_time_nor_a_fault_of_ours(world: World):
    for person in world.people:
        for calendar in person.calendars:
            case = world.proxy.cases[person.account.access_token] = Case(0)
            case._target = -1
            world.get(f"/users/{person.user}/calendar/busy", calendarIds=calendar, **RANGE)
            found = claimed(case.heard, person, calendar, "busy")
            assert found, "the pedantic reader understands what is right"
            BUSY[person.provider + calendar] = found

    def tries(first: int) -> None:
        person = world.people[first]
        for number in range(first, CASES, AT_ONCE):
            case = world.proxy.cases[person.account.access_token] = Case(number)
            question = Random(number).choice(QUESTIONS)
            try:
                question(world, person, case)
            except AssertionError as error:
                heard = [
                    (each.key[:2], status, content) for each, status, content in case.heard.answers.values()
                ]
                raise AssertionError(f"case {number}, {question.__name__}: {error}\n{heard}") from error
            count("answers of providers mutated on their way", case.mutations)
            repair(world, person)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        for done in [threads.submit(tries, number) for number in range(AT_ONCE)]:
            done.result()
    assert "Traceback" not in world.installation.output()


def repair(world: World, person: Person) -> None:
    """Retry a provider that sent ``Retry-After``; renew a grant that it denied."""
    del world.proxy.cases[person.account.access_token]
    redis = world.installation.stores.redis
    for key in redis.scan_iter("pause:*"):
        redis.delete(key)
    body = {
        "accessToken": person.account.access_token,
        "refreshToken": person.account.refresh_token,
        "email": person.account.email,
        "expiresAt": person.account.expires_at.isoformat(),
        "scope": person.account.scope.split(),
    }
    assert world.call("POST", f"/users/{person.user}/oauth/{person.provider}", json=body).status_code == 201
