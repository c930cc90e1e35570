"""Everything is killed while the provider executes a create: its time is not offered from the cache."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import requests

from store.cache.busy_cache import MARK_MARGIN_SECONDS
from tests.app.at_provider import INSERT, AtProvider
from tests.app.days import PROVIDERS
from tests.installation.builder import Installation, installed
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

DEADLINE = 3.0
# For the start of processes on a busy machine.
PATIENCE = 150.0
DAY = {"start": "2026-12-03", "end": "2026-12-04"}
NOON = {"start": "2026-12-03T12:00:00Z", "end": "2026-12-03T13:00:00Z"}


@pytest.fixture
def installation(environment, tmp_path) -> Iterator[Installation]:
    with installed(environment, tmp_path, ALMANAC_FANOUT_DEADLINE=f"{DEADLINE:g}") as made:
        yield made


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_create_during_which_everything_is_killed_is_seen_by_warm_reads(installation, sandbox, provider):
    account = sandbox.account(provider, "ada@example.com")
    # Another connection of the same mailbox.
    users = [installation.user("ada", account), installation.user("eva", account)]

    def busy(user: str) -> list[str]:
        answer = installation.get(f"/users/{user}/scheduling", slotDuration="60", **DAY)
        assert answer.status_code == 200, answer.text
        offered = {each["start"][11:16] for each in answer.json()["data"]["availableSlots"]}
        return [hour for hour in (f"{n:02d}:00" for n in range(24)) if hour not in offered]

    assert [busy(user) for user in users] == [[], []]
    sandbox.fault(email=account.email, operation=INSERT[provider], latency_ms=DEADLINE * 900)
    sandbox.forget_requests()

    def create() -> None:
        with suppress(requests.RequestException):
            installation.call("POST", f"/users/ada/calendar/events/{provider}/primary", json=NOON)

    creating = threading.Thread(target=create)
    creating.start()
    until(lambda: sandbox.requests().by_operation.get(INSERT[provider]))
    began = time.monotonic()
    for part in ("worker1", "web"):
        installation.kill(part)
    creating.join()
    until(lambda: AtProvider(sandbox, account).events())
    for part in ("worker1", "web"):
        installation.start(part)
    until(installation.ready, PATIENCE)
    # Reads meanwhile are not cached either.
    busy("eva")
    time.sleep(max(0.0, began + DEADLINE + MARK_MARGIN_SECONDS - time.monotonic()))

    assert [busy(user) for user in users] == [["12:00"], ["12:00"]]
