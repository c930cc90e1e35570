"""Admission under overload: some requests wait, the others fail at once, and nothing is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait

import pytest
import requests
from flask import Flask

from app.server import commands
from app.services import EXTENSION, Services
from store.coordination.heartbeats import WORKERS
from store.sql.queries import api_keys
from tests.app.days import DAY, meeting
from tests.conftest import Api, application, connect, settings_of
from tests.installation.builder import installed
from tests.installation.processes import (
    START_SECONDS,
    free_port,
    listens,
    running_worker,
    wait_until,
)
from workers.queues import Queue

pytestmark = [pytest.mark.long, pytest.mark.timeout(400)]

READS, WRITES = 4, 2
# Long enough for a worker to start, on a busy machine too.
DEADLINE = 90


@pytest.fixture
def apart(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an installation with small queues; tests may kill its processes. Redis runs."""
    folder = tmp_path_factory.mktemp("full")
    changed = {
        "ALMANAC_FANOUT_DEADLINE": str(DEADLINE),
        "ALMANAC_BUSY_TTL": "3600",
        "ALMANAC_WAITING_READS": str(READS),
        "ALMANAC_WAITING_WRITES": str(WRITES),
        "ALMANAC_ORGANIZATION_SHARE": "100",
    }
    with installed(environment, folder, web=0, workers=(), **changed) as made:
        yield made.environment


@pytest.fixture
def own_app(apart: dict[str, str]) -> Iterator[Flask]:
    with application(settings_of(apart)) as made:
        yield made


@pytest.fixture
def wired(own_app: Flask) -> Services:
    services: Services = own_app.extensions[EXTENSION]
    return services


@pytest.fixture
def own_api(own_app: Flask, wired: Services) -> Api:
    with wired.stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="full")
    return Api(own_app.test_client(), key)


@pytest.fixture
def people(own_api: Api, sandbox) -> list[str]:
    """Users with one account each, busy at nine."""
    users = []
    for number in range(10):
        account = sandbox.account("google", f"u{number}@example.com", events=[meeting("09:00", "10:00")])
        assert own_api.post("/users", {"id": f"user{number}"}).status_code == 201
        connect(own_api, f"user{number}", account)
        users.append(f"user{number}")
    return users


def caller(api: Api) -> Api:
    """The same client for another thread."""
    return Api(api.client.application.test_client(), api.key)


def busy(api: Api, user: str, **headers: str):
    return caller(api).get(f"/users/{user}/calendar/busy", headers=headers, **DAY)


def create(api: Api, user: str):
    body = {"subject": "x", "start": "2026-12-03T14:00:00Z", "end": "2026-12-03T15:00:00Z"}
    return caller(api).post(f"/users/{user}/calendar/events/google/primary", body)


def settled(futures: list[Future], count: int) -> list[Future]:
    """The finished futures, once there are ``count``; they must finish long before the deadline."""
    give_up = time.monotonic() + DEADLINE / 2
    while sum(each.done() for each in futures) < count:
        assert time.monotonic() < give_up, "no request is refused"
        time.sleep(0.02)
    return [each for each in futures if each.done()]


def test_a_limited_number_waits_and_the_others_fail_at_once(own_api, wired, apart, people, sandbox):
    warm, *cold = people
    redis = wired.stores.redis
    with running_worker(settings_of(apart), apart, "own"):
        assert busy(own_api, warm).status_code == 200
    # As in a new installation, where a first worker may be about to start.
    redis.delete(WORKERS)

    with ThreadPoolExecutor(20) as threads:
        reads = [threads.submit(busy, own_api, user) for user in cold]
        turned_away = settled(reads, len(cold) - READS)
        writes = [threads.submit(create, own_api, user) for user in cold[:5]]
        refused = settled(writes, 5 - WRITES)

        assert len(turned_away) == len(cold) - READS
        assert len(refused) == 5 - WRITES
        for answer in [each.result() for each in [*turned_away, *refused]]:
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
            assert answer.json["data"] is None
            assert "try again in 2 s" in answer.json["error"]
        # Cached answers still work.
        assert busy(own_api, warm).status_code == 200
        assert redis.zcard("waiting:reads") == READS

        with running_worker(settings_of(apart), apart, "own"):
            wait([*reads, *writes], timeout=DEADLINE)
            assert sorted(each.result().status_code for each in reads) == [200] * READS + [503] * (
                len(cold) - READS
            )
            assert sorted(each.result().status_code for each in writes) == [201] * WRITES + [503] * (
                5 - WRITES
            )
            again = [busy(own_api, user) for user in cold]
    assert {each.status_code for each in again} == {200}
    # Refused requests have written nothing.
    inserted = sandbox.requests().by_operation["google.events.insert"]
    assert inserted == WRITES
    assert nothing_is_left(redis)


def nothing_is_left(redis) -> bool:
    """Redis has no lists or queue entries of finished requests, and no task that no worker takes."""
    left = [*redis.keys("waiting:*"), *redis.keys("fanout:*")]
    return left == [] and not any(redis.llen(queue) for queue in Queue)


def test_the_queue_entries_of_a_killed_web_process_expire(own_api, wired, apart, people):
    short = apart | {"ALMANAC_FANOUT_DEADLINE": "4", "PATH": os.environ["PATH"]}
    redis = wired.stores.redis
    port = free_port()
    command = commands.web("127.0.0.1", port, 1)
    with subprocess.Popen(command, env=short, start_new_session=True) as server:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: listens(port), [server])
        give_up = time.monotonic() + START_SECONDS
        with ThreadPoolExecutor(READS) as threads:
            waiting = [threads.submit(ask, url, own_api.key, user) for user in people[:READS]]
            while redis.zcard("waiting:reads") < READS:
                assert time.monotonic() < give_up + 60
                time.sleep(0.01)
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()
            assert [each.result() for each in waiting] == [None] * READS
    # The entries of the killed process expire.
    assert all(redis.pttl(key) > 0 for key in [*redis.keys("waiting:*"), *redis.keys("fanout:*")])

    give_up = time.monotonic() + 60
    while redis.zcount("waiting:reads", redis.time()[0] * 1000, "+inf"):
        assert time.monotonic() < give_up, "the entries of the killed process do not expire"
        time.sleep(0.1)
    with running_worker(settings_of(apart), apart, "own"):
        assert {busy(own_api, user).status_code for user in people} == {200}


def ask(url: str, key: str, user: str) -> int | None:
    """The status of an answer, None without an answer."""
    headers = {"Authorization": f"Bearer {key}"}
    try:
        path = f"/v1/users/{user}/calendar/busy"
        return requests.get(f"{url}{path}", DAY, headers=headers, timeout=60).status_code
    except requests.RequestException:
        return None


def test_without_workers_for_a_while_requests_fail_at_once(own_api, wired, people):
    redis = wired.stores.redis
    redis.hset(WORKERS, "gone", f"{redis.time()[0] - 60}:0:64")
    began = time.monotonic()
    answer = busy(own_api, people[0])
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "No worker is running" in answer.json["error"]
    assert time.monotonic() - began < DEADLINE / 2
    # Requests that need no worker still succeed: the grant is deleted.
    assert own_api.delete(f"/users/{people[0]}/oauth/google").status_code == 200
