"""Races for the time of users over HTTP, with web processes and workers as in production."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from app.events import conditions, holds
from store.config.settings import new_secrets
from tests import services
from tests.app.at_provider import SUBJECT, AtProvider
from tests.databases import KINDS, new_database
from tests.faults.installation import server_folder
from tests.faults.servers import PostgreSQL
from tests.installation.builder import Installation, installed
from tests.installation.processes import web_server
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CLIENTS, SLOTS = 200, 20
WORKERS = ("worker1", "worker2")
KILL_EVERY = 2.0
# Seconds: how long a client of the race holds its slot, and the deadline of the fan-out.
HOLD_SECONDS, DEADLINE = 30, 10
HELD, PATIENCE = 500, 300.0
MONDAY = datetime.now(UTC).replace(hour=8, minute=0, second=0, microsecond=0) + timedelta(days=7)
HALF_AN_HOUR = timedelta(minutes=30)


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """An empty database; that of PostgreSQL on a server of its own, with a connection for every client."""
    if kind == "sqlite":
        with new_database(kind, folder) as url:
            yield url
        return
    services.postgresql().require()
    with server_folder("race") as data:
        server = PostgreSQL(data)
        server.command += ["-c", "max_connections=400"]
        server.start()
        try:
            yield server.url
        finally:
            server.stop()


@pytest.fixture(params=KINDS)
def installation(request, environment, tmp_path) -> Iterator[Installation]:
    """Two web processes, two workers and beat, on each kind of database."""
    secret, encryption = new_secrets()
    with database(request.param, tmp_path) as url:
        ours = environment | {"ALMANAC_DATABASE_URL": url, "ALMANAC_FANOUT_DEADLINE": f"{DEADLINE}"}
        ours |= {"ALMANAC_SECRET_KEY": secret, "ALMANAC_ENCRYPTION_KEYS": encryption}
        with installed(ours, tmp_path, web=2, workers=WORKERS, beat=True, patience=PATIENCE) as made:
            yield made


def measured(line: str) -> None:
    """Show a figure of a race, with ``pytest -s``."""
    sys.stdout.write(f"{line}\n")


def slot(number: int) -> dict[str, str]:
    start = MONDAY + number * HALF_AN_HOUR
    return {"start": start.isoformat(), "end": (start + HALF_AN_HOUR).isoformat()}


class Client:
    """One client of the race; ``by`` is ``hold`` or ``ifFree``."""

    def __init__(self, installation: Installation, user: str, number: int) -> None:
        self.number, self.user, self.url = number, user, f"{installation.url}/v1"
        # Half of the clients of each slot.
        self.by = "hold" if number // SLOTS % 2 else "ifFree"
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {installation.key}"
        self.statuses: list[int] = []

    def book(self, patience: float = 0.0) -> requests.Response:
        """Hold and create, or create if free; repeated for as long as the outcome is unknown."""
        wanted = slot(self.number % SLOTS)
        query = {"ifFree": "true"}
        if self.by == "hold":
            held = self.post(
                "/holds", wanted | {"users": [self.user], "expiresIn": HOLD_SECONDS}, {}, patience
            )
            if held.status_code != 201:
                return held
            query = {"hold": held.json()["data"]["id"]}
        path = f"/users/{self.user}/calendar/events/google/primary"
        return self.post(path, wanted | {"subject": f"client {self.number}"}, query, patience)

    def post(self, path: str, body: object, query: dict[str, str], patience: float) -> requests.Response:
        end = time.monotonic() + patience
        key = {"Idempotency-Key": f"{self.user}-{self.number}-{path[:6]}"}
        while True:
            answer = self.session.post(f"{self.url}{path}", json=body, params=query, headers=key, timeout=60)
            self.statuses.append(answer.status_code)
            if answer.status_code == 429:
                # All clients of one key want more than its share.
                time.sleep(float(answer.headers["Retry-After"]))
                continue
            in_use = answer.status_code == 409 and answer.json()["code"] == "idempotencyKeyInUse"
            if (answer.status_code in (201, 409) and not in_use) or time.monotonic() > end:
                return answer
            time.sleep(0.5)


def race(clients: list[Client], patience: float = 0.0, spread: float = 0.0) -> list[requests.Response]:
    gate = threading.Barrier(len(clients))

    def run(client: Client) -> requests.Response:
        gate.wait(timeout=60)
        # The clients of one slot begin together; the slots follow each other.
        time.sleep(client.number % SLOTS * spread / SLOTS)
        return client.book(patience)

    with ThreadPoolExecutor(len(clients)) as threads:
        return list(threads.map(run, clients))


def booked(sandbox, account) -> Counter[str]:
    """How many events there are by start."""
    return Counter(
        datetime.fromisoformat(event["start"]["dateTime"]).astimezone(UTC).isoformat()
        for event in AtProvider(sandbox, account).events()
        if event.get(SUBJECT["google"], "").startswith("client ")
    )


def test_200_clients_race_for_20_slots(installation, sandbox, unique):
    account = sandbox.account("google", "race@example.com")
    user = installation.user(unique("race"), account)
    clients = [Client(installation, user, number) for number in range(CLIENTS)]
    began = time.monotonic()

    answers = race(clients)

    took = time.monotonic() - began
    statuses = Counter(each.status_code for each in answers)
    winners = Counter(client.by for client, each in zip(clients, answers, strict=True) if each.ok)
    measured(f"race: {took:.1f} s, {dict(statuses)}, winners {dict(winners)}")
    assert statuses == {201: SLOTS, 409: CLIENTS - SLOTS}
    assert all(each.json()["conflicts"] for each in answers if each.status_code == 409)
    assert booked(sandbox, account) == {slot(n)["start"]: 1 for n in range(SLOTS)}


def test_no_slot_is_booked_twice_while_workers_are_killed(installation, sandbox, unique):
    account = sandbox.account("google", "killed@example.com")
    user = installation.user(unique("killed"), account)
    # A create is in progress for long enough to be killed.
    sandbox.fault(email=account.email, latency_ms=300)
    over = threading.Event()
    kills: list[float] = []

    def kill() -> None:
        began = time.monotonic()
        while not over.wait(max(began + (len(kills) + 1) * KILL_EVERY - time.monotonic(), 0.0)):
            # In turn, so that each has some time between its start and the next kill.
            part = WORKERS[len(kills) % len(WORKERS)]
            installation.kill(part)
            installation.start(part)
            kills.append(time.monotonic() - began)

    killer = threading.Thread(target=kill)
    killer.start()
    clients = [Client(installation, user, number) for number in range(CLIENTS)]
    try:
        answers = race(clients, patience=60.0, spread=20.0)
    finally:
        over.set()
        killer.join()
    assert kills[-1] <= len(kills) * KILL_EVERY + 1.0

    sent = Counter(status for client in clients for status in client.statuses)
    found = booked(sandbox, account)
    measured(f"killed: {len(kills)} kills in {kills[-1]:.1f} s, {dict(sent)}, {len(found)} slots booked")
    assert max(found.values(), default=1) == 1
    winners = [each for each in answers if each.status_code == 201]
    # An event without an answer may be there; an answer without an event may not.
    assert len(winners) <= len(found)
    sandbox.clear_faults()
    until(installation.ready, PATIENCE)
    # The leases of interrupted creates, and the holds of clients that gave up, end: then every other slot can
    # be booked.
    lease = conditions.ONE_EVENT * DEADLINE + holds.MARGIN
    end = time.monotonic() + max(lease, HOLD_SECONDS) + 10.0
    left = {n for n in range(SLOTS) if slot(n)["start"] not in found}
    while left and time.monotonic() < end:
        for n in sorted(left):
            late = Client(installation, user, n)
            late.number += CLIENTS * 2
            late.by = "ifFree"
            with suppress(requests.RequestException):
                if late.book().status_code == 201:
                    left.discard(n)
        time.sleep(1.0)
    assert not left
    assert booked(sandbox, account) == {slot(n)["start"]: 1 for n in range(SLOTS)}


def test_holds_are_respected_by_warm_reads_of_another_process(installation, sandbox, unique):
    users = [
        installation.user(unique("warm"), sandbox.account("google", f"warm{n}@example.com")) for n in range(3)
    ]
    query = {"start": slot(0)["start"], "end": slot(SLOTS)["start"], "slotDuration": "30"}
    promised: dict[str, tuple[str, str]] = {}
    over, wrong, reads = threading.Event(), [], Counter()

    def offered(url: str, user: str, session: requests.Session) -> set[str]:
        answer = session.get(f"{url}/v1/users/{user}/scheduling", params=query, timeout=30)
        assert answer.status_code == 200, answer.text
        return {each["start"][:19] for each in answer.json()["data"]["availableSlots"]}

    def read(url: str, number: int) -> None:
        chance = random.Random(number)
        with requests.Session() as session:
            session.headers["Authorization"] = f"Bearer {installation.key}"
            while not over.is_set():
                user = chance.choice(users)
                before = {hold: start for hold, (whose, start) in promised.copy().items() if whose == user}
                found = offered(url, user, session)
                # The holds that lasted for the whole request.
                reads["concurrent"] += 1
                wrong.extend(start for hold, start in before.items() if hold in promised and start in found)

    with web_server(installation.environment) as port:
        other = f"http://127.0.0.1:{port}"
        readers = [threading.Thread(target=read, args=(other, n)) for n in range(3)]
        for reader in readers:
            reader.start()
        chance = random.Random(7)
        try:
            with requests.Session() as session:
                session.headers["Authorization"] = f"Bearer {installation.key}"
                while reads["holds"] < HELD:
                    user, n = chance.choice(users), chance.randrange(SLOTS)
                    if len(promised) > 20 or chance.random() < 0.2:
                        hold = chance.choice([*promised, ""])
                        if promised.pop(hold, None):
                            assert installation.call("DELETE", f"/holds/{hold}").status_code == 200
                        continue
                    answer = installation.call("POST", "/holds", json={"users": [user], **slot(n)})
                    if answer.status_code == 201:
                        reads["holds"] += 1
                        start = slot(n)["start"][:19]
                        promised[answer.json()["data"]["id"]] = (user, start)
                        if start in offered(other, user, session):
                            wrong.append(start)
                    else:
                        assert answer.json()["code"] == "slotTaken", answer.text
        finally:
            over.set()
            for reader in readers:
                reader.join()
    measured(f"warm: {dict(reads)}, wrong {len(wrong)}")
    assert reads["concurrent"] > HELD
    assert wrong == []
