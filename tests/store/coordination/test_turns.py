"""Turns of a tenant's requests in a web process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context

import pytest

from store.coordination import turns

TENANT, OTHER = 7_001, 7_002


class Requests:
    """Requests on threads: each takes a turn, and keeps it until ``end``."""

    def __init__(self) -> None:
        self.running = threading.Semaphore(0)
        self._end = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, tenant: int, work: Callable[[], None] = lambda: None) -> None:
        def request() -> None:
            turns.take(tenant)
            self.running.release()
            work()
            self._end.wait(20)
            turns.give_back()

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


def test_requests_beyond_the_turns_of_a_tenant_wait_for_one_that_ends(requests):
    for _ in range(turns.AT_ONCE + 1):
        requests.begin(TENANT)
    assert requests.have_begun(turns.AT_ONCE)
    assert not requests.have_begun(1, 0.2)
    requests.end()
    assert requests.have_begun(1)


def test_the_turns_of_a_tenant_are_not_those_of_another(requests):
    for _ in range(turns.AT_ONCE):
        requests.begin(TENANT)
    requests.begin(OTHER)
    assert requests.have_begun(turns.AT_ONCE + 1)


def test_a_request_that_waits_for_something_else_leaves_its_turn_to_others(requests):
    waiting = threading.Event()

    def wait() -> None:
        with turns.paused():
            waiting.wait(20)

    for _ in range(turns.AT_ONCE):
        requests.begin(TENANT, wait)
    requests.begin(TENANT)
    assert requests.have_begun(turns.AT_ONCE + 1)
    waiting.set()


def test_without_a_turn_nothing_is_taken_or_given_back():
    with turns.paused():
        turns.give_back()
    turns.give_back()
    for _ in range(turns.AT_ONCE):
        copy_context().run(turns.take, OTHER + 1)
