"""A provider fails in an installation with two workers: fast failures, a single probe, and recovery."""

from __future__ import annotations

import time
from typing import Any

import pytest

from store.coordination.provider_limits import Access, Circuit, record_key
from tests.installation.builder import Installation, installed
from tests.observability.scraping import scrape
from tests.waiting import no_read_is_under_way, until

# Starts a whole installation, which is too slow for the default run.
pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

WEEK = {"start": "2026-12-03", "end": "2026-12-10"}
ACCOUNTS, PAUSE, DEADLINE = 10, 4.0, 12.0
OPERATION = {"google": "google.freebusy.query", "microsoft": "microsoft.batch"}


@pytest.fixture(scope="module")
def made(environment, tmp_path_factory, sandbox_process):
    settings = {
        "ALMANAC_BREAKER_ACCOUNTS": str(ACCOUNTS),
        "ALMANAC_BREAKER_FAILURES": "3",
        "ALMANAC_BREAKER_PAUSE": str(PAUSE),
        "ALMANAC_FANOUT_DEADLINE": str(DEADLINE),
    }
    folder = tmp_path_factory.mktemp("breakers")
    with installed(environment, folder, workers=("worker1", "worker2"), **settings) as made:
        yield made


@pytest.fixture
def members(made, sandbox, unique):
    """Create an organization with ``count`` members of a provider and three of the other.

    Returns its slug and the ids of the ``count`` members.
    """

    def make(provider: str, count: int = 2 * ACCOUNTS) -> tuple[str, set[str]]:
        slug, other = unique("acme"), {"google": "microsoft", "microsoft": "google"}[provider]
        assert made.call("POST", "/organizations", json={"slug": slug, "name": None}).ok
        people = {
            made.user(unique(each), sandbox.account(each, f"{n}@{each}.example")): each
            for each, number in ((provider, count), (other, 3))
            for n in range(number)
        }
        added = made.call("POST", f"/organizations/{slug}/members", json={"userIds": list(people)})
        assert added.ok, added.text
        return slug, {user for user, each in people.items() if each == provider}

    yield make
    if found := made.stores.redis.keys("pause:*"):
        made.stores.redis.delete(*found)


def ask(made: Installation, slug: str) -> tuple[dict[str, Any], float]:
    """The organization's slots, read without the cache, and the duration in seconds."""
    began = time.monotonic()
    answer = made.get(f"/organizations/{slug}/scheduling", {"Cache-Control": "no-cache"}, **WEEK)
    assert answer.status_code == 200, answer.text
    return answer.json(), time.monotonic() - began


def named(answer: dict[str, Any]) -> set[str]:
    return {each["customId"] for each in answer["failedUsers"]}


def offered(answer: dict[str, Any]) -> set[str]:
    return {each["userId"] for each in answer["data"]["availableSlots"]}


def breaker(made: Installation, provider: str) -> Any:
    circuit = Circuit(provider, Access.READS)
    return made.stores.provider_limits.states([circuit])[circuit]


def pause_ends(made: Installation, provider: str, moment: float) -> None:
    key = record_key(Circuit(provider, Access.READS))
    _, reason, *rest = made.stores.redis.get(key).decode().split()
    made.stores.redis.set(key, " ".join([f"{moment * 1000:.0f}", reason, *rest]), keepttl=True)


@pytest.mark.parametrize("provider", ["google", "microsoft"])
@pytest.mark.parametrize("fault", [{"status": 503}, {"body": "reset"}, {"latency_ms": 60_000}], ids=str)
def test_a_provider_fails_and_recovers(made, members, sandbox, provider, fault):
    slug, dead = members(provider)
    answer, _ = ask(made, slug)
    assert named(answer) == set()

    sandbox.fault(provider=provider, **fault)
    answer, _ = ask(made, slug)
    assert named(answer) == dead
    # A read that hangs continues beyond the deadline of its request.
    until(lambda: breaker(made, provider).open)
    pause_ends(made, provider, time.time() + 600)
    # Reads that were in flight when the breaker opened end.
    until(lambda: no_read_is_under_way(made.stores.redis))
    sandbox.forget_requests()
    for _ in range(3):
        answer, took = ask(made, slug)
        assert named(answer) == dead
        assert len(offered(answer)) == 3
        assert took < DEADLINE / 3
    assert calls(sandbox, provider) == 0
    assert {each["message"] for each in answer["failedUsers"]} == {
        f"{'Google Calendar' if provider == 'google' else 'Microsoft 365'} has not been answering; "
        "try again in a moment"
    }
    told = scrape(made)
    assert told("almanac_breaker_open", provider=provider, calls="reads") == 1
    assert told.sum("almanac_breaker_open") == 1
    assert made.session.get(f"{made.url}/readyz", timeout=10).ok

    # The breaker's pause is over, and both workers have many reads that could be the probe.
    pause_ends(made, provider, 0.0)
    answer, _ = ask(made, slug)
    assert named(answer) == dead
    until(lambda: not breaker(made, provider).probed)
    # A read that hangs is retried once.
    assert calls(sandbox, provider) == (2 if "latency_ms" in fault else 1)
    assert breaker(made, provider).open

    sandbox.clear_faults()

    def well() -> bool:
        return not named(ask(made, slug)[0])

    until(well)
    assert not breaker(made, provider).open
    assert scrape(made).sum("almanac_breaker_open") == 0


def calls(sandbox: Any, provider: str) -> int:
    return sandbox.requests().by_operation.get(OPERATION[provider], 0)
