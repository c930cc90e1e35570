"""Two tenants on one installation, one hostile: the fresh reads of the other one are never refused."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass

import pytest
import requests

from providers.sandbox.client import Sandbox
from store.sql.models import Organization
from store.sql.queries import api_keys, organizations
from tests import people, rsa_keys
from tests.installation.builder import Installation, installed

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

HOSTILE, OTHER = "hostile", "other"
USERS = {HOSTILE: 130, OTHER: 12}
WEEK = {"start": "2026-12-03", "end": "2026-12-10", "slotDuration": "30"}
ROUNDS = 5
BODY = 1_000_000
# How long an account of the hostile tenant takes to answer.
SLOW_MS = 2_000


@dataclass
class Tenant:
    """A client with the key of one organization, for any number of threads."""

    installation: Installation
    slug: str
    key: str

    def call(self, method: str, path: str, **more: object) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.key}", "Cache-Control": "no-cache"}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method, f"{self.installation.url}/v1{path}", headers=headers, timeout=60, **more
            )

    def fresh_read(self, number: int) -> requests.Response:
        return self.call("GET", f"/users/{self.slug}-{number}/scheduling", params=WEEK)


@pytest.fixture(scope="module")
def shared(environment, tmp_path_factory, sandbox_process) -> Iterator[Installation]:
    """Two web processes and two workers."""
    changed = {"ALMANAC_WEBHOOKS_ALLOW_PRIVATE": "true"}
    folder = tmp_path_factory.mktemp("tenants")
    with installed(
        environment, folder, web=2, workers=("worker1", "worker2"), patience=300, **changed
    ) as made:
        fill(made, Sandbox(sandbox_process))
        yield made


def fill(made: Installation, sandbox: Sandbox) -> None:
    """Both organizations, each with users of one account; the accounts of the hostile one are slow."""
    sandbox.reset()
    for slug, count in USERS.items():
        accounts = [sandbox.account("google", f"{slug}-{n}@example.com") for n in range(count)]
        with made.stores.database.writing() as session:
            organization = Organization(slug=slug)
            session.add(organization)
            session.flush()
            users = [
                people.connected(session, made.stores.keyring, f"{slug}-{n}", each).id
                for n, each in enumerate(accounts)
            ]
            organizations.add_members(session, organization.id, users)
    for number in range(USERS[HOSTILE]):
        sandbox.fault(email=f"{HOSTILE}-{number}@example.com", latency_ms=SLOW_MS)


@pytest.fixture(scope="module")
def tenants(shared: Installation) -> dict[str, Tenant]:
    with shared.stores.database.writing() as session:
        ids = organizations.ids(session, list(USERS), organization_id=None)
        return {
            slug: Tenant(
                shared,
                slug,
                api_keys.create(session, prefix="alm_", name=slug, organization_id=ids[slug]),
            )
            for slug in USERS
        }


def slow_reads(hostile: Tenant) -> list[Callable[[], object]]:
    return [lambda number=number: hostile.fresh_read(number) for number in range(USERS[HOSTILE])]


def slow_organization_reads(hostile: Tenant) -> list[Callable[[], object]]:
    """Each needs as many tasks of workers as a request can."""
    path = f"/organizations/{HOSTILE}/scheduling"
    return [lambda: hostile.call("GET", path, params=WEEK)] * 60


def key_files(hostile: Tenant) -> list[Callable[[], object]]:
    robot = f"robot@{HOSTILE}.example"
    file = {"type": "service_account", "client_email": robot, "private_key": rsa_keys.pem(4096)}
    body = {"serviceAccountKey": file, "subject": robot}
    return [lambda: hostile.call("PUT", f"/organizations/{HOSTILE}/grants/google", json=body)] * 20


def holds(hostile: Tenant) -> list[Callable[[], object]]:
    """Holds of many users, as many as the service takes."""
    users = [f"{HOSTILE}-{number}" for number in range(100)]
    numbers = iter(range(10**6))

    def hold() -> object:
        moment = 1_900_000_000 + next(numbers) * 1800
        start, end = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment + each)) for each in (0, 900))
        return hostile.call("POST", "/holds", json={"users": users, "start": start, "end": end})

    return [hold] * 10


def unfinished_bodies(hostile: Tenant) -> list[Callable[[], object]]:
    def send() -> None:
        with ExitStack() as sent:
            for number in range(120):
                head = f"POST /v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY + 1}\r\n"
                head += f"Authorization: Bearer {hostile.key}\r\n" if number % 2 else ""
                with suppress(OSError):
                    port = hostile.installation.port
                    connection = sent.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                    connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode())
                    connection.sendall(b"x" * BODY)

    return [send] * 2


FLOODS = (slow_reads, slow_organization_reads, key_files, holds, unfinished_bodies)


@pytest.mark.parametrize("flood", FLOODS, ids=lambda each: each.__name__)
def test_fresh_reads_of_another_tenant_are_never_refused(tenants, flood):
    hostile, other = tenants[HOSTILE], tenants[OTHER]
    calls = flood(hostile)
    over = threading.Event()
    answers: Counter[int] = Counter()

    def repeat(call: Callable[[], object]) -> None:
        while not over.is_set():
            with suppress(requests.RequestException):
                answer = call()
                if isinstance(answer, requests.Response):
                    answers[answer.status_code] += 1
                    if answer.status_code in (429, 503):
                        over.wait(float(answer.headers.get("Retry-After", 1)))

    with ThreadPoolExecutor(len(calls)) as attackers, ThreadPoolExecutor(USERS[OTHER]) as readers:
        attacks = [attackers.submit(repeat, call) for call in calls]
        try:
            time.sleep(3)
            found: Counter[int] = Counter()
            for _ in range(ROUNDS):
                read = list(readers.map(other.fresh_read, range(USERS[OTHER])))
                found.update(each.status_code for each in read)
        finally:
            over.set()
        for each in attacks:
            each.result()

    assert found == {200: ROUNDS * USERS[OTHER]}, f"to the hostile tenant: {dict(answers)}"
    if flood is slow_reads:
        # The hostile tenant gets its share, and a refusal beyond it.
        assert answers[200] > 0
        assert answers[429] > 0


def test_webhooks_of_another_tenant_arrive_while_those_of_one_hang(tenants, receiver):
    hostile, other = tenants[HOSTILE], tenants[OTHER]
    with socket.create_server(("127.0.0.1", 0), backlog=512) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/"
        for _ in range(100):
            made = hostile.call("POST", "/webhooks", json={"url": url, "events": ["calendar.changed"]})
            hostile.call("POST", f"/webhooks/{made.json()['data']['id']}/test")
        body = {"url": receiver.url, "events": ["calendar.changed"]}
        endpoint = other.call("POST", "/webhooks", json=body).json()["data"]["id"]
        other.call("POST", f"/webhooks/{endpoint}/test")
        receiver.wait(1)
