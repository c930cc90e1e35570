"""A worker is killed during writes of events: a repeated create makes no second event, others are unknown."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from app.services import EXTENSION, Services
from store.sql.queries import api_keys
from tests.app.days import PROVIDERS
from tests.conftest import Api, application, connect, settings_of
from tests.installation.builder import installed
from tests.installation.processes import running_worker
from tests.providers.sandbox import callers

EVENTS = 200
AT_ONCE = 24


@pytest.fixture(scope="module")
def apart(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of an installation whose worker the test may kill; its Redis runs."""
    folder = tmp_path_factory.mktemp("killed")
    with installed(environment, folder, web=0, workers=()) as made:
        yield made.environment


@pytest.fixture
def own_app(apart: dict[str, str]) -> Iterator[Flask]:
    with application(settings_of(apart)) as made:
        yield made


@pytest.fixture
def own_api(own_app: Flask) -> Api:
    services: Services = own_app.extensions[EXTENSION]
    with services.stores.database.writing() as session:
        key = api_keys.create(session, prefix="alm_", name="killed")
    return Api(own_app.test_client(), key)


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_creates_that_a_killed_worker_has_begun_are_made_once(
    provider, apart, own_app, own_api, sandbox, unique
):
    api = own_api
    account = sandbox.account(provider, f"{provider}-killed@example.com")
    user = unique("killed")
    assert api.post("/users", {"id": user}).status_code == 201
    connect(api, user, account)
    sandbox.fault(email=account.email, latency_ms=40)

    def create(number: int) -> int:
        body = {
            "subject": f"event {number}",
            "start": f"2026-12-{1 + number % 28:02d}T09:00:00Z",
            "end": f"2026-12-{1 + number % 28:02d}T10:00:00Z",
        }
        path = f"/users/{user}/calendar/events/{provider}/primary"
        caller = Api(own_app.test_client(), api.key)
        return caller.post(path, body, headers={"Idempotency-Key": f"create-{number}"}).status_code

    settings = settings_of(apart)
    with ThreadPoolExecutor(AT_ONCE) as threads, running_worker(settings, apart, "victim") as worker:
        first = [threads.submit(create, number) for number in range(EVENTS)]
        while sum(each.done() for each in first) < EVENTS // 4:
            time.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        worker.wait(timeout=10)
        with running_worker(settings, apart, "successor"):
            statuses = [each.result() for each in first]
            again = [threads.submit(create, number) for number in range(EVENTS)]
            assert {each.result() for each in again} == {201}

    # The test is meaningful only if some creates were answered and some were interrupted.
    assert {201, 502} <= set(statuses), sorted(set(statuses))
    assert sorted(subjects(sandbox, account)) == sorted(f"event {number}" for number in range(EVENTS))


def subjects(sandbox, account) -> list[str]:
    """The events at the provider, read without Almanac."""
    if account.provider == "google":
        page = callers.google(sandbox, account).get("calendars/primary/events", maxResults="2500")
        assert "nextPageToken" not in page
        return [event["summary"] for event in page["items"]]
    page = callers.graph(sandbox, account).get("me/events", **{"$top": "1000"})
    assert "@odata.nextLink" not in page
    return [event["subject"] for event in page["value"]]
