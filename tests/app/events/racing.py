"""Races for one slot of a mailbox or a room, through every way to it, and their outcomes."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from urllib.parse import quote

import requests

from providers.sandbox.client import Sandbox, SandboxAccount, SandboxDomain
from store.sql.queries import api_keys, organizations
from tests.app.at_provider import AtProvider
from tests.installation.builder import Installation
from tests.people import grant_of
from tests.waiting import until
from workers.celery_app import create_celery

# Seconds. A worker may have to start before a repeated request has its answer.
PATIENCE, START_PATIENCE, PAUSE = 120.0, 300.0, 0.2
HALF_AN_HOUR = timedelta(minutes=30)
MONDAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=7)
# The events that are moved begin there, far from every slot.
PARKED = MONDAY + timedelta(days=60)
# While a worker is killed, each call of a provider takes this long, so that some are interrupted.
LATENCY_MS = 100
KILL_WITHIN = 0.5


@dataclass(frozen=True, slots=True)
class Slot:
    """Half an hour; each round has its own."""

    start: datetime

    @classmethod
    def of_round(cls, number: int) -> Slot:
        return cls(MONDAY + number * HALF_AN_HOUR)

    @property
    def body(self) -> dict[str, str]:
        return {"start": self.start.isoformat(), "end": (self.start + HALF_AN_HOUR).isoformat()}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the calendar: a user, the calendar's id in the user's connection, and an API key.

    ``is_main``: the calendar counts for the user without being named.
    """

    user: str
    key: str = field(repr=False)
    calendar: str = "primary"
    is_main: bool = True


@dataclass(frozen=True, slots=True)
class Contested:
    """A calendar, the account that owns it, and the ways to it."""

    sandbox: Sandbox
    owner: SandboxAccount
    ways: Sequence[Way]

    @property
    def there(self) -> AtProvider:
        return AtProvider(self.sandbox, self.owner)

    def events(self, slot: Slot) -> set[str]:
        """The ids of the events in a slot, read from the provider without Almanac."""
        start, end = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (slot.start, slot.start + HALF_AN_HOUR))
        call = self.there.call
        if self.owner.provider == "google":
            page = call.get("calendars/primary/events", timeMin=start, timeMax=end, singleEvents="true")
            assert "nextPageToken" not in page
            return {event["id"] for event in page["items"]}
        page = call.get("me/calendarView", startDateTime=start, endDateTime=end)
        assert "@odata.nextLink" not in page
        return {event["id"] for event in page["value"]}

    def parked(self, number: int) -> str:
        """The id of a new event far from every slot."""
        start = PARKED + number * HALF_AN_HOUR
        google = self.owner.provider == "google"
        edges = {"start": start, "end": start + HALF_AN_HOUR}
        fields: dict[str, Any] = {
            name: {"dateTime": f"{at:%Y-%m-%dT%H:%M:%S}{'Z' if google else ''}", "timeZone": "UTC"}
            for name, at in edges.items()
        }
        made: str = self.there.post(**fields)["id"]
        return made


# The ways to one calendar


def two_users(installation: Installation, sandbox: Sandbox, provider: str, name: str) -> Contested:
    """Two users connected one account."""
    account = sandbox.account(provider, f"{name}@example.com")
    users = [installation.user(f"{name}-{n}", account) for n in range(2)]
    return Contested(sandbox, account, [Way(each, installation.key) for each in users])


def two_connections(installation: Installation, sandbox: Sandbox, provider: str, name: str) -> Contested:
    """One user connected the account, another one is read by the grant of an organization."""
    account = sandbox.account(provider, f"{name}@{name}.example")
    personal = installation.user(f"{name}-personal", account)
    delegated = _delegated(installation, _domain(sandbox, provider, name), account, f"{name}-org")
    return Contested(sandbox, account, [Way(each, installation.key) for each in (personal, delegated)])


def two_organizations(installation: Installation, sandbox: Sandbox, provider: str, name: str) -> Contested:
    """Each organization has a key, and a user of its own for the account; both share a third user."""
    account = sandbox.account(provider, f"{name}@example.com")
    shared = installation.user(f"{name}-shared", account)
    ways = []
    for number in range(2):
        slug = f"{name}-org-{number}"
        key = _organization(installation, slug)
        own = installation.user(f"{name}-{number}", account)
        _made(installation, "POST", f"/organizations/{slug}/members", {"userIds": [own, shared]})
        ways += [Way(own, key), Way(shared, key)]
    return Contested(sandbox, account, ways)


def shared_room(installation: Installation, sandbox: Sandbox, provider: str, name: str) -> Contested:
    """The calendar of a room is on the lists of two accounts."""
    domain = {"google": "resource.calendar.google.com", "microsoft": "rooms.example"}[provider]
    room = sandbox.account(provider, f"{name}@{domain}")
    ways = []
    for number in range(2):
        account = sandbox.account(provider, f"{name}-{number}@example.com")
        calendar = sandbox.share(room, account)
        user = installation.user(f"{name}-{number}", account)
        ways.append(Way(user, installation.key, calendar, is_main=False))
    return Contested(sandbox, room, ways)


def delegated_room(installation: Installation, sandbox: Sandbox, provider: str, name: str) -> Contested:
    """A room is a delegated member of two organizations, each with a key of its own."""
    room = sandbox.account(provider, f"room@{name}.example")
    domain = _domain(sandbox, provider, name)
    ways = []
    for number in range(2):
        slug = f"{name}-org-{number}"
        user = _delegated(installation, domain, room, slug)
        ways.append(Way(user, _key(installation, slug)))
    return Contested(sandbox, room, ways)


def room_of_two_domains(installation: Installation, sandbox: Sandbox, provider: str, name: str) -> Contested:
    """A room is on the lists of two people, each read by the grant of an organization with its own domain."""
    room = sandbox.account(provider, f"{name}@rooms.example")
    ways = []
    for number in range(2):
        domain = f"{name}-{number}"
        account = sandbox.account(provider, f"ada@{domain}.example")
        calendar = sandbox.share(room, account)
        user = _delegated(installation, _domain(sandbox, provider, domain), account, f"{domain}-org")
        ways.append(Way(user, _key(installation, f"{domain}-org"), calendar, is_main=False))
    return Contested(sandbox, room, ways)


Settle = Callable[[Installation, Sandbox, str, str], Contested]
WAYS: tuple[Settle, ...] = (
    two_users,
    two_connections,
    two_organizations,
    shared_room,
    delegated_room,
    room_of_two_domains,
)


def _domain(sandbox: Sandbox, provider: str, name: str) -> SandboxDomain:
    """A domain with a grant; ``name`` is the first word of its name."""
    return sandbox.domain(provider, f"{name}.example", [f"admin@{name}.example"])


def _delegated(installation: Installation, domain: SandboxDomain, account: SandboxAccount, slug: str) -> str:
    """A member of a new organization, read by its grant; returns the user."""
    _organization(installation, slug)
    path = f"/organizations/{slug}/grants/{domain.provider}"
    _made(installation, "PUT", path, grant_of(domain))
    user = f"{slug}-member"
    _made(installation, "POST", f"{path}/members", {"members": [{"userId": user, "email": account.email}]})
    return user


def _organization(installation: Installation, slug: str) -> str:
    """Make an organization; returns a key that is bound to it."""
    _made(installation, "POST", "/organizations", {"slug": slug, "name": None})
    return _key(installation, slug)


def _key(installation: Installation, slug: str) -> str:
    with installation.stores.database.writing() as session:
        number = organizations.ids(session, [slug], organization_id=None)[slug]
        return api_keys.create(session, prefix="alm_", name=slug, organization_id=number)


def _made(installation: Installation, method: str, path: str, body: Any) -> None:
    answer = installation.call(method, path, json=body)
    assert answer.ok, answer.text


# The clients

OPERATIONS = ("create", "move", "hold")


@dataclass
class Client:
    """Takes a slot by one way and one web process; ``event`` is the one that it moves."""

    way: Way
    provider: str
    url: str
    event: str
    session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {self.way.key}"

    def take(self, operation: str, slot: Slot, key: str, overlaps: int) -> requests.Response:
        """Create an event, move one or take a hold; ``key`` is the Idempotency-Key."""
        margin = {"maxOverlaps": overlaps} if overlaps else {}
        way = self.way
        if operation == "hold":
            user = way.user if way.is_main else {"id": way.user, "calendarIds": [way.calendar]}
            body = {**slot.body, **margin, "users": [user], "expiresIn": 300}
            return self._send("POST", "/holds", key, body)
        path = f"/users/{way.user}/calendar/events/{self.provider}/{quote(way.calendar, safe='')}"
        query = {"ifFree": "true", **margin}
        if operation == "create":
            return self._send("POST", path, key, {**slot.body, "subject": key}, query)
        return self._send("PUT", f"{path}/{quote(self.event, safe='')}", key, slot.body, query)

    def holds(self, slot: Slot) -> set[str]:
        """The ids of the holds of a slot that this client sees."""
        answer = self._send("GET", "/holds", None, None, {"user": self.way.user})
        assert answer.status_code == 200, answer.text
        start = slot.start.timestamp()
        return {
            each["id"]
            for each in answer.json()["data"]
            if datetime.fromisoformat(each["start"]).timestamp() == start
        }

    def release(self, hold: str) -> None:
        answer = self._send("DELETE", f"/holds/{hold}", None, None)
        # Another client sees the same hold.
        assert answer.status_code in (200, 404), answer.text

    def _send(
        self, method: str, path: str, key: str | None, body: Any, query: dict[str, Any] | None = None
    ) -> requests.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.session.request(
            method, f"{self.url}/v1{path}", json=body, params=query, headers=headers, timeout=60
        )


def word(answer: requests.Response) -> str:
    """An answer in one word: ``taken``, or the code of the error."""
    if answer.status_code in (200, 201):
        return "taken"
    return str(answer.json().get("code") or answer.status_code)


# Answers that are certain: the client has the slot, or another one has it.
CERTAIN = ("taken", "slotTaken")


@dataclass
class Tally:
    """The outcomes of the rounds of one race.

    ``one``: as many as the slot admits succeeded, and are there. ``killed``: fewer succeeded, and a
    worker was killed. ``none``: fewer succeeded without such a reason.
    ``two``: more than the slot admits, in the answers or at the provider. ``lost``: a success that is not
    there. ``refused``: requests that were refused for another reason than the time. ``words`` are the answers
    that are neither a success nor 409 ``slotTaken``.
    """

    what: str
    rounds: int = 0
    one: int = 0
    killed: int = 0
    none: int = 0
    two: int = 0
    lost: int = 0
    kills: int = 0
    refused: int = 0
    words: Counter[str] = field(default_factory=Counter)

    TITLES = ("variant", "rounds", "exactly one", "none (killed)", "none", "two", "lost", "kills", "other")

    @property
    def row(self) -> tuple[str, ...]:
        others = ", ".join(f"{name} {count}" for name, count in sorted(self.words.items()))
        numbers = (self.rounds, self.one, self.killed, self.none, self.two, self.lost, self.kills)
        return (self.what, *map(str, numbers), others or "-")

    @property
    def holds_true(self) -> bool:
        return self.two == self.none == self.lost == self.refused == 0


# The first rows of a table in Markdown.
HEAD = (Tally.TITLES, tuple("---" for _ in Tally.TITLES))


def line(row: Sequence[str]) -> str:
    """A row of the table."""
    return f"| {' | '.join(row)} |"


@dataclass
class Race:
    """Rounds for slots of one calendar: all clients at once by each operation, or by all operations.

    ``urls`` are those of the web processes, ``workers`` the parts of the installation that are killed. A slot
    admits ``overlaps`` busy periods besides one.
    """

    installation: Installation
    contested: Contested
    urls: Sequence[str]
    workers: Sequence[str]
    chance: Random
    overlaps: int = 0

    def __post_init__(self) -> None:
        # Each way through each web process.
        ways = [(way, url) for url in self.urls for way in self.contested.ways]
        provider = self.contested.owner.provider
        self.clients = [
            Client(way, provider, url, self.contested.parked(n)) for n, (way, url) in enumerate(ways)
        ]

    def run(self, what: str, operations: Sequence[str], rounds: int, kill: Callable[[int], bool]) -> Tally:
        """``kill`` says in which rounds a worker is killed."""
        tally = Tally(what)
        with ThreadPoolExecutor(len(self.clients) + 1) as threads:
            for number in range(rounds):
                self._round(tally, threads, operations, number, kill(number))
        return tally

    def _round(
        self, tally: Tally, threads: ThreadPoolExecutor, operations: Sequence[str], number: int, killing: bool
    ) -> None:
        slot = Slot.of_round(number)
        names = [operations[(number + n) % len(operations)] for n in range(len(self.clients))]
        keys = [f"{self.contested.owner.email}-{number}-{n}" for n in range(len(self.clients))]
        calls = [
            lambda c=client, o=operation, k=key: c.take(o, slot, k, self.overlaps)
            for client, operation, key in zip(self.clients, names, keys, strict=True)
        ]
        if killing:
            self._ready()
            self.contested.sandbox.fault(latency_ms=LATENCY_MS)
        killer = threads.submit(self._kill) if killing else None
        first = together(threads, calls)
        if killer is not None:
            killer.result()
            self.contested.sandbox.clear_faults()
        there = [self._count(slot)]
        # Every client repeats its request, the winner too, until the answer is certain.
        again = together(threads, [lambda c=call: until_certain(c) for call in calls])
        there.append(self._count(slot))
        tally.refused += sum(is_refused(each) for each in [*first, *again])
        tally.words.update(name for name in map(word, [*first, *again]) if name not in CERTAIN)
        self._judge(tally, [sum(map(won, each)) for each in (first, again)], there, killing)
        self._release(slot)

    def _judge(self, tally: Tally, taken: Sequence[int], there: Sequence[int], killed: bool) -> None:
        """``taken`` are the successes of the first requests and of the repeated ones."""
        admitted = self.overlaps + 1
        tally.rounds += 1
        tally.kills += killed
        if max(*taken, *there) > admitted:
            tally.two += 1
        elif taken[0] > there[0] or taken[1] > there[1]:
            tally.lost += 1
        elif taken[0] == admitted:
            tally.one += 1
        elif killed:
            tally.killed += 1
        else:
            tally.none += 1

    def _count(self, slot: Slot) -> int:
        """How many events and holds there are in a slot."""
        return len(self.contested.events(slot)) + len(set().union(*(c.holds(slot) for c in self.clients)))

    def _release(self, slot: Slot) -> None:
        for client in self.clients:
            for hold in client.holds(slot):
                client.release(hold)

    def _ready(self) -> None:
        """Wait until every worker takes tasks, the one too that was started again after the last kill."""
        count = len(self.workers)
        with create_celery(self.installation.settings) as celery:
            until(lambda: len(celery.control.ping(timeout=5, limit=count) or ()) >= count, START_PATIENCE)

    def _kill(self) -> None:
        """Kill a worker at a random moment, and start it again as a supervisor does."""
        time.sleep(self.chance.uniform(0.0, KILL_WITHIN))
        part = self.chance.choice(self.workers)
        self.installation.kill(part)
        self.installation.start(part)


def together(
    threads: ThreadPoolExecutor, calls: Sequence[Callable[[], requests.Response]]
) -> list[requests.Response]:
    """Make all calls at the same moment."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], requests.Response]) -> requests.Response:
        gate.wait(timeout=PATIENCE)
        return call()

    return [each.result() for each in [threads.submit(run, call) for call in calls]]


def until_certain(call: Callable[[], requests.Response]) -> requests.Response:
    """Repeat a request until its answer is certain; an answer that stays uncertain is returned in the end."""
    give_up = time.monotonic() + PATIENCE
    while word(answer := call()) not in CERTAIN and answer.status_code >= 409:
        if time.monotonic() > give_up:
            break
        time.sleep(PAUSE)
    return answer


def is_refused(answer: requests.Response) -> bool:
    """Whether the service understands the request otherwise than this client."""
    return 400 <= answer.status_code < 500 and answer.status_code not in (409, 429)


def won(answer: requests.Response) -> bool:
    return word(answer) == "taken"
