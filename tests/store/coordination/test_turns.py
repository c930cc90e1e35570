"""Turns of a tenant's requests in a web process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context

import pytest

from store.coordination import shares

TENANT, OTHER = 7_001, 7_002


class Requests:
    """Requests on threads: each takes a turn, and keeps it until ``end``."""

    def __init__(self) -> None:
        self.running = threading.Semaphore(0)
        self._end = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, tenant: int, work: Callable[[], None] = lambda: None) -> None:
        def request() -> None:
            shares.take_turn(tenant)
            self.running.release()
            work()
            self._end.wait(20)
            shares.end_turn()

        thread = threading.Thread(target=copy_context().run, args=(request,))
        thread.start()
        self._threads.append(thread)

    def have_begun(self, number: int, seconds: float = 20.0) -> bool:
        return all(self.running.acquire(timeout=seconds) for _ in range(number))

    def end(self) -> None:
        self._end.set()
        for each in self._threads:
            each.join(20)
            assert not each.is_alive()


@pytest.fixture
def requests():
    made = Requests()
    yield made
    made.end()


@pytest.fixture
def patient(monkeypatch):
    """Requests wait for a turn as long as a test may take."""
    monkeypatch.setattr(shares, "TURN_SECONDS", 60.0)


def test_requests_beyond_the_turns_of_a_tenant_wait_for_one_that_ends(requests, patient):
    for _ in range(shares.TURNS + 1):
        requests.begin(TENANT)
    assert requests.have_begun(shares.TURNS)
    assert not requests.have_begun(1, 0.2)
    requests.end()
    assert requests.have_begun(1)


def test_the_turns_of_a_tenant_are_not_those_of_another(requests):
    for _ in range(shares.TURNS):
        requests.begin(TENANT)
    requests.begin(OTHER)
    assert requests.have_begun(shares.TURNS + 1)


def test_a_request_that_waits_for_something_else_leaves_its_turn_to_others(requests, patient):
    waiting = threading.Event()

    def wait() -> None:
        with shares.turn_paused():
            waiting.wait(20)

    for _ in range(shares.TURNS):
        requests.begin(TENANT, wait)
    requests.begin(TENANT)
    assert requests.have_begun(shares.TURNS + 1)
    waiting.set()


def test_a_request_goes_on_without_a_turn_if_none_is_given_back(requests, monkeypatch):
    monkeypatch.setattr(shares, "TURN_SECONDS", 0.05)
    for _ in range(shares.TURNS + 2):
        requests.begin(TENANT)
    assert requests.have_begun(shares.TURNS + 2)
    requests.end()
    for _ in range(shares.TURNS):
        requests.begin(TENANT)
    assert requests.have_begun(shares.TURNS)


def test_a_burst_waits_for_its_turns_as_long_as_they_end(monkeypatch):
    """If its requests stopped to wait, they would all run at once, beside those of other tenants."""
    monkeypatch.setattr(shares, "TURN_SECONDS", 0.25)
    running = threading.Semaphore(shares.TURNS)
    beside: list[int] = []

    def request() -> None:
        shares.take_turn(TENANT)
        if running.acquire(blocking=False):
            time.sleep(0.05)
            running.release()
        else:
            beside.append(1)
        shares.end_turn()

    threads = [threading.Thread(target=copy_context().run, args=(request,)) for _ in range(20)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    assert not beside


def test_without_a_turn_nothing_is_taken_or_given_back():
    with shares.turn_paused():
        shares.end_turn()
    shares.end_turn()
    for _ in range(shares.TURNS):
        copy_context().run(shares.take_turn, OTHER + 1)
