"""Holds and conditional creates whose web process, database or Redis is killed in the middle.

An event is never created twice, and its time is free again after the lease at the latest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from app.events import conditions, holds
from store.config.settings import new_secrets
from tests import services
from tests.app.at_provider import INSERT, SUBJECT, AtProvider
from tests.faults.installation import server_folder
from tests.faults.servers import PostgreSQL, Redis
from tests.installation.builder import Installation, installed
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

# Seconds: the fan-out's deadline, and the delay of the call that is in progress when something is killed.
DEADLINE, DELAY = 4.0, 3.0
PATIENCE = 300.0
SHORT_LEASE = DEADLINE + holds.MARGIN
LONG_LEASE = conditions.ONE_EVENT * DEADLINE + holds.MARGIN
READ = "google.freebusy.query"
MONDAY = datetime.now(UTC).replace(hour=8, minute=0, second=0, microsecond=0) + timedelta(days=7)
SLOT = {"start": MONDAY.isoformat(), "end": (MONDAY + timedelta(minutes=30)).isoformat()}


@dataclass
class Sent:
    """A request in a thread of its own, and its answer; None when the connection broke."""

    send: Callable[[], requests.Response]
    answer: requests.Response | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.answer = self.send()
        except requests.ConnectionError:
            self.answer = None

    def wait(self) -> requests.Response | None:
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.answer


class Booking:
    """One user of an installation on servers of its own, and what clients send about the same slot."""

    def __init__(self, installation: Installation, sandbox, user: str) -> None:
        self.installation, self.sandbox = installation, sandbox
        self.account = sandbox.account("google", f"{user}@example.com")
        self.user = installation.user(user, self.account)

    def post(self, path: str, body: Any, key: str, **query: str) -> requests.Response:
        headers = {
            "Authorization": f"Bearer {self.installation.key}",
            "Idempotency-Key": f"{self.user}-{key}",
        }
        url = f"{self.installation.url}/v1{path}"
        return requests.post(url, json=body, params=query, headers=headers, timeout=60)

    def create(self, client: str, **query: str) -> requests.Response:
        path = f"/users/{self.user}/calendar/events/google/primary"
        return self.post(path, SLOT | {"subject": client}, client, **(query or {"ifFree": "true"}))

    def hold(self, client: str) -> requests.Response:
        return self.post("/holds", {"users": [self.user], **SLOT}, client)

    def in_progress(self, operation: str, send: Callable[[], requests.Response]) -> Sent:
        """Send a request; returns when the provider has received that call of it, and delays its answer."""
        self.sandbox.forget_requests()
        self.sandbox.fault(email=self.account.email, operation=operation, latency_ms=DELAY * 1000)
        sent = Sent(send)
        until(lambda: self.calls(operation), PATIENCE)
        self.sandbox.clear_faults()
        return sent

    def calls(self, operation: str) -> int:
        return self.sandbox.requests().by_operation.get(operation, 0)

    def subjects(self) -> list[str]:
        """The subjects of the events at the provider."""
        found = AtProvider(self.sandbox, self.account).events()
        return [event.get(SUBJECT["google"], "") for event in found]

    def restart(self, part: str) -> None:
        self.installation.start(part)
        until(self.installation.ready, PATIENCE)

    def first_success(self, send: Callable[[], requests.Response], within: float) -> requests.Response:
        """Repeat a request until it is not refused any more."""
        end = time.monotonic() + within
        while (answer := send()).status_code in (409, 503) and time.monotonic() < end:
            time.sleep(0.2)
        return answer


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[Redis, PostgreSQL]]:
    services.postgresql().require()
    with server_folder("kill-redis") as one, server_folder("kill-postgresql") as other:
        redis, postgresql = Redis(one), PostgreSQL(other)
        redis.start(), postgresql.start()
        try:
            yield redis, postgresql
        finally:
            redis.stop(), postgresql.stop()


@pytest.fixture(scope="module")
def installation(servers, environment, tmp_path_factory) -> Iterator[Installation]:
    redis, postgresql = servers
    secret, encryption = new_secrets()
    ours = environment | {
        "ALMANAC_DATABASE_URL": postgresql.url,
        "ALMANAC_REDIS_URL": redis.url,
        "ALMANAC_FANOUT_DEADLINE": f"{DEADLINE:g}",
        "ALMANAC_SECRET_KEY": secret,
        "ALMANAC_ENCRYPTION_KEYS": encryption,
    }
    folder = tmp_path_factory.mktemp("killed")
    with installed(ours, folder, web=1, beat=True, patience=PATIENCE) as made:
        yield made


@pytest.fixture
def booking(installation, sandbox, unique) -> Booking:
    until(lambda: installation.ready(), PATIENCE)
    return Booking(installation, sandbox, unique("booking"))


def test_web_killed_between_lock_and_create_blocks_slot_for_a_lease(booking):
    sent = booking.in_progress(READ, lambda: booking.create("first"))
    booking.installation.kill("web")
    killed = time.monotonic()
    assert sent.wait() is None
    booking.restart("web")

    if time.monotonic() - killed < SHORT_LEASE - DELAY - 1:
        assert booking.create("early").status_code == 409
    answer = booking.first_success(lambda: booking.create("second"), within=SHORT_LEASE + 5)

    assert answer.status_code == 201, answer.text
    assert booking.subjects() == ["second"]


def test_web_killed_between_create_and_answer_creates_one_event(booking):
    sent = booking.in_progress(INSERT["google"], lambda: booking.create("first"))
    booking.installation.kill("web")
    assert sent.wait() is None
    booking.restart("web")

    assert booking.create("other").status_code == 409
    repeated = booking.first_success(lambda: booking.create("first"), within=LONG_LEASE + 30)

    assert repeated.status_code == 201, repeated.text
    assert booking.subjects() == ["first"]
    assert booking.create("later").status_code == 409


def test_hold_of_a_killed_create_can_be_used_by_its_repeat(booking):
    held = booking.hold("holder")
    assert held.status_code == 201
    hold = held.json()["data"]["id"]
    sent = booking.in_progress(INSERT["google"], lambda: booking.create("first", hold=hold))
    booking.installation.kill("web")
    assert sent.wait() is None
    booking.restart("web")

    assert booking.create("other").status_code == 409
    repeated = booking.first_success(lambda: booking.create("first", hold=hold), within=LONG_LEASE + 30)

    assert repeated.status_code == 201, repeated.text
    assert booking.subjects() == ["first"]


def test_web_killed_while_taking_a_hold_creates_no_hold(booking):
    sent = booking.in_progress(READ, lambda: booking.hold("first"))
    booking.installation.kill("web")
    assert sent.wait() is None
    booking.restart("web")

    assert booking.installation.get("/holds", user=booking.user).json()["data"] == []
    assert booking.first_success(lambda: booking.hold("second"), within=SHORT_LEASE + 5).status_code == 201


@pytest.mark.parametrize("part", ["postgresql", "redis"])
def test_hold_during_database_or_redis_failure_frees_its_time(booking, servers, part):
    server = servers[part == "postgresql"]
    sent = booking.in_progress(READ, lambda: booking.hold("first"))
    server.stop()
    answer = sent.wait()
    server.start()
    until(booking.installation.ready, PATIENCE)

    assert answer is not None
    assert answer.status_code in (500, 502, 503), answer.text
    again = booking.first_success(lambda: booking.hold("second"), within=LONG_LEASE + 30)
    assert again.status_code == 201, again.text
    listed = booking.installation.get("/holds", user=booking.user).json()["data"]
    assert [each["id"] for each in listed] == [again.json()["data"]["id"]]


@pytest.mark.parametrize("part", ["postgresql", "redis"])
def test_create_during_database_or_redis_failure_makes_one_event(booking, servers, part):
    server = servers[part == "postgresql"]
    sent = booking.in_progress(INSERT["google"], lambda: booking.create("first"))
    server.stop()
    answer = sent.wait()
    server.start()
    until(booking.installation.ready, PATIENCE)

    # The provider had the create: whatever the answer, its event is the only one.
    assert answer is not None
    assert booking.create("other").status_code in (409, 503)
    repeated = booking.first_success(lambda: booking.create("first"), within=LONG_LEASE + 30)
    assert repeated.status_code == 201, repeated.text
    assert booking.subjects() == ["first"]
    assert booking.first_success(lambda: booking.create("later"), within=1).status_code == 409
