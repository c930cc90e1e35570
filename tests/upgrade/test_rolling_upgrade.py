"""A release is replaced by the next one under load, process by process: nothing is lost, no request fails."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox, SandboxAccount
from store.config.settings import new_secrets
from tests import people, services
from tests.app.at_provider import AtProvider
from tests.databases import new_database
from tests.faults import truth
from tests.faults.installation import AS_IN_PRODUCTION, PROVIDERS
from tests.faults.questions import Verdict
from tests.faults.servers import Redis
from tests.faults.truth import Period
from tests.faults.witness import Write
from tests.receiver import Receiver, receiving
from tests.upgrade import clients, release
from tests.upgrade.clients import Clients
from tests.upgrade.rolling import Rolling, running
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

# Seconds of load between two steps, in which old and new processes work side by side.
TOGETHER = 4.0

# A user whose time is held while the upgrade runs, and one whose holds are older.
HOLDER, KEEPER = "holder", "keeper"
HELD = [truth.at(9), truth.at(16)]

# In the log of a process, these mean that a message of the other release was not understood.
NOT_UNDERSTOOD = ("unregistered task", "Traceback", "DecodeError", '"level":"error"', " ERROR ")


@dataclass
class World:
    """A filled installation of the old release."""

    rolling: Rolling
    sandbox: Sandbox
    receiver: Receiver
    key: str
    busy: dict[str, list[Period]] = field(default_factory=dict)
    writers: dict[str, SandboxAccount] = field(default_factory=dict)
    secret: str = ""
    webhook: str = ""

    def call(self, method: str, path: str, status: int, /, **more: Any) -> Any:
        """The ``data`` of an answer of the service behind the balancer."""
        return self.answer(method, path, status, **more)["data"]

    def answer(self, method: str, path: str, status: int, /, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.key}", "Connection": "close"} | more.pop("headers", {})
        with requests.Session() as session:
            session.trust_env = False
            url = f"http://127.0.0.1:{self.rolling.balancer.port}/v1{path}"
            answer = session.request(method, url, headers=headers, timeout=60, **more)
        assert answer.status_code == status, answer.text
        return answer.json()

    def user(self, name: str, provider: str, busy: list[Period]) -> SandboxAccount:
        """Register a user with an account that has these events."""
        events = [truth.body(period) for period in busy]
        account = self.sandbox.account(provider, f"{name}@example.com", events=events)
        self.call("POST", "/users", 201, json={"id": name})
        self.call("POST", f"/users/{name}/oauth/{provider}", 201, json=people.posted(account))
        return account


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.install(tmp_path_factory.mktemp("old"))


@pytest.fixture
def start(
    old: Path, environment: dict[str, str], sandbox: Sandbox, tmp_path: Path
) -> Iterator[Callable[[str], World]]:
    """Starts the old release on a kind of database."""
    with ExitStack() as closing:

        def begin(kind: str) -> World:
            secret, encryption = new_secrets()
            redis_folder = Path(closing.enter_context(tempfile.TemporaryDirectory()))
            redis = Redis(redis_folder)
            closing.callback(redis.stop)
            redis.start()
            ours = environment | {
                "ALMANAC_SECRET_KEY": secret,
                "ALMANAC_ENCRYPTION_KEYS": encryption,
                "ALMANAC_REDIS_URL": redis.url,
                "ALMANAC_DATABASE_URL": closing.enter_context(new_database(kind, tmp_path)),
            }
            for name in AS_IN_PRODUCTION:
                ours.pop(name, None)
            receiver = closing.enter_context(receiving())
            rolling = closing.enter_context(running(old, ours, tmp_path))
            return World(rolling, sandbox, receiver, rolling.run(old, "keys", "create", "clients"))

        yield begin


def preferred() -> str:
    return "postgresql" if services.postgresql().present else "sqlite"


WORKERS_FIRST = ("worker1", "worker2", "web1", "web2", "beat")
# Not the documented order: new web processes send messages to old workers, as after a step back.
WEB_FIRST = ("web1", "web2", "worker1", "worker2", "beat")


@pytest.mark.parametrize(
    ("kind", "order"),
    [(None, WORKERS_FIRST), ("sqlite", WEB_FIRST)],
    ids=["workers-first", "web-first-on-SQLite"],
)
def test_a_rolling_upgrade_under_load(start, kind, order):
    world = start(kind or preferred())
    rolling = world.rolling
    witness = fill(world)
    replayed = before(world)
    witness.wait_for_recovery(60)

    with witness:
        witness.run_for(TOGETHER)
        # The receiver is away for a while: deliveries of old processes wait, and new ones send them.
        world.receiver.down()
        assert "up to date" in rolling.run(rolling.new, "db", "upgrade")
        witness.run_for(TOGETHER)
        for number, part in enumerate(order):
            replace(rolling, part)
            witness.run_for(TOGETHER)
            if number == 2:
                world.receiver.up()
        witness.run_for(TOGETHER)

    assert not witness.wrong, witness.wrong[:5]
    outcomes = Counter((each.question, each.outcome) for each in witness.seen)
    assert set(witness.outcomes()) == {Verdict.RIGHT}, (outcomes, witness.errors[:5])
    assert len(witness.seen) > 200, outcomes
    nothing_is_lost(world, witness)
    for request, made in replayed:
        assert world.call("POST", request.path, 201, json=request.body, headers=key_of(request)) == made
    nothing_is_lost(world, witness)
    for log in rolling.folder.glob("*.log"):
        lines = [line for line in log.read_text().splitlines() if any(bad in line for bad in NOT_UNDERSTOOD)]
        assert not lines, (log.name, lines[:5])


def replace(rolling: Rolling, part: str) -> None:
    """Start the new process of a part, then stop the old one. There is only one beat, so it stops first."""
    start, stop = {
        "web": (rolling.start_web, rolling.stop_web),
        "worker": (rolling.start_worker, rolling.stop_worker),
        "beat": (rolling.start_beat, rolling.stop_beat),
    }[part.rstrip("12")]
    if part == "beat":
        stop(f"old-{part}")
        start(rolling.new, f"new-{part}")
    else:
        start(rolling.new, f"new-{part}")
        stop(f"old-{part}")


def fill(world: World) -> Clients:
    """Users, connections, an organization, holds and an endpoint of webhooks; returns the clients."""
    for n in range(6):
        user = f"person-{n}"
        world.busy[user] = [truth.at(hour) for hour in (8 + n % 3, 12, 14 + n)]
        world.user(user, PROVIDERS[n % 2], world.busy[user])
    world.call("POST", "/organizations", 200, json={"slug": "team", "name": "Team"})
    world.call("POST", "/organizations/team/members", 201, json={"userIds": list(world.busy)})
    for user, provider in (("writer-1", "google"), ("writer-2", "microsoft"), (HOLDER, "google")):
        world.writers[user] = world.user(user, provider, [])
    world.user(KEEPER, "microsoft", [])
    events = ["hold.created", "hold.released", "hold.expired"]
    endpoint = world.call("POST", "/webhooks", 201, json={"url": world.receiver.url, "events": events})
    world.webhook, world.secret = endpoint["id"], endpoint["secret"]
    paths = {
        f"/users/{user}/calendar/events/{account.provider}/primary": f"/users/{user}/calendar/busy"
        for user, account in world.writers.items()
        if user != HOLDER
    }
    asked = clients.questions(world.busy, "team", KEEPER, HELD)
    url = f"http://127.0.0.1:{world.rolling.balancer.port}"
    return Clients(url, world.key, asked, paths, "upgrade", holder=HOLDER, provider="google")


def before(world: World) -> list[tuple[Write, Any]]:
    """Requests with a key that the old release answers, each with what it answered."""
    holds = [{"users": [KEEPER], "expiresIn": clients.KEPT, **truth.body(period)} for period in HELD]
    requests_made = [
        *[Write("/holds", body, f"before-hold-{n}") for n, body in enumerate(holds)],
        Write("/users", {"id": "before"}, "before-user"),
        Write(
            f"/users/{HOLDER}/calendar/events/google/primary",
            {"subject": "upgrade before", **truth.body(truth.written(1000))},
            "before-event",
        ),
    ]
    return [
        (each, world.call("POST", each.path, 201, json=each.body, headers=key_of(each)))
        for each in requests_made
    ]


def key_of(request: Write) -> dict[str, str]:
    return {"Idempotency-Key": request.key}


def nothing_is_lost(world: World, witness: Clients) -> None:
    """Each event is at the provider once, each user and hold is there, each webhook arrived."""
    at_providers = [AtProvider(world.sandbox, account).subjects() for account in world.writers.values()]
    assert sorted(chain.from_iterable(at_providers)) == sorted([*witness.events(), "upgrade before"])
    users = [write.body["id"] for write in witness.writes if "id" in write.body]
    listed = Counter(everything(world, "/users"))
    assert {user: listed[user] for user in [*users, "before"]} == dict.fromkeys([*users, "before"], 1)
    made = {write.made["id"]: int(write.key.rpartition("-")[2]) for write in witness.holds()}
    used = {hold for hold, number in made.items() if number % 2}
    held = everything(world, f"/holds?user={HOLDER}")
    assert sorted(held) == sorted(made.keys() - used)
    kept = everything(world, f"/holds?user={KEEPER}")
    assert len(kept) == len(HELD)
    sent = {("hold.created", hold) for hold in [*made, *kept]} | {("hold.released", hold) for hold in used}
    until(lambda: set(deliveries(world)) >= sent)
    arrived = deliveries(world)
    assert arrived.keys() == sent
    # A webhook may come more than once; each time it has the same id.
    assert all(len(ids) == 1 for ids in arrived.values())


def everything(world: World, path: str) -> list[str]:
    """The ids on all pages of a list."""
    found: list[str] = []
    cursor = ""
    while True:
        query = f"{'&' if '?' in path else '?'}limit=100{cursor and f'&cursor={cursor}'}"
        page = world.answer("GET", f"{path}{query}", 200)
        found += [each["id"] for each in page["data"]]
        if not (cursor := page.get("nextCursor") or ""):
            return found


def deliveries(world: World) -> dict[tuple[str, str], set[str]]:
    """The ids of the webhooks that arrived, by their type and hold; an error for a wrong signature."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for received in list(world.receiver.received):
        event = received.verified(world.secret)
        found[event["type"], event["data"]["holdId"]].add(received.id)
    return found
