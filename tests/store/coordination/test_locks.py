"""Locks across processes: one holder, waiting until a deadline, expiry."""

from __future__ import annotations

import threading
import time

import pytest
from redis.exceptions import ConnectionError

from store.coordination.locks import MARGIN, LockTimeout, hold
from store.stores import Stores


def test_one_holder_at_a_time(stores: Stores):
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        with hold(stores.redis, "refresh:one", deadline=time.monotonic() + 10):
            inside += 1
            most = max(most, inside)
            time.sleep(0.01)
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1


def test_waiting_ends_with_the_deadline(stores: Stores):
    with (
        hold(stores.redis, "refresh:two", deadline=time.monotonic() + 1),
        pytest.raises(LockTimeout),
        hold(stores.redis, "refresh:two", deadline=time.monotonic() + 0.05),
    ):
        pytest.fail("held twice")


def test_other_connections_do_not_wait(stores: Stores):
    with (
        hold(stores.redis, "refresh:three", deadline=time.monotonic() + 1),
        hold(stores.redis, "refresh:four", deadline=time.monotonic() + 1),
    ):
        assert stores.redis.exists("lock:refresh:three", "lock:refresh:four") == 2


@pytest.mark.parametrize("seconds", [-1, 0.5, 120])
@pytest.mark.parametrize("wait", [None, 0.0])
def test_a_lock_outlives_the_deadline_of_its_holder_and_not_by_much(stores: Stores, wait, seconds):
    left, key = max(0, seconds), "lock:refresh:six"
    with hold(stores.redis, "refresh:six", deadline=time.monotonic() + seconds, wait=wait):
        ends = stores.redis.pttl(key) / 1000
    assert left + MARGIN - 1 < ends <= left + MARGIN
    assert not stores.redis.exists(key)


def test_a_round_does_not_wait_for_another(stores: Stores):
    began = time.monotonic()
    with (
        hold(stores.redis, "round:sweep", deadline=began + 60, wait=0.0),
        pytest.raises(LockTimeout),
        hold(stores.redis, "round:sweep", deadline=began + 60, wait=0.0),
    ):
        pytest.fail("held twice")
    assert time.monotonic() - began < 20


def test_a_lock_lost_while_held_is_no_error(stores: Stores):
    with hold(stores.redis, "refresh:five", deadline=time.monotonic() + 1):
        stores.redis.delete("lock:refresh:five")


def test_a_lock_that_cannot_be_released_costs_nothing(stores, monkeypatch, caplog):
    def away(self):
        raise ConnectionError("Redis is away")

    monkeypatch.setattr("redis.lock.Lock.release", away)
    with hold(stores.redis, "seven", deadline=time.monotonic() + 1):
        done = True
    assert done
    assert "lock not released, it expires by itself: ConnectionError" in caplog.text
