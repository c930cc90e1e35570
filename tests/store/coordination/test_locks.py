"""The refresh lock."""

from __future__ import annotations

import threading
import time

import pytest
from redis.exceptions import ConnectionError

from store.coordination.locks import MARGIN, LockTimeout, refresh_lock, try_lock, unified_lock
from store.stores import Stores


def test_one_holder_at_a_time(stores: Stores):
    inside = 0
    most = 0

    def hold() -> None:
        nonlocal inside, most
        with refresh_lock(stores.redis, "one", deadline=time.monotonic() + 10):
            inside += 1
            most = max(most, inside)
            time.sleep(0.01)
            inside -= 1

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1


def test_waiting_ends_with_the_deadline(stores: Stores):
    with (
        refresh_lock(stores.redis, "two", deadline=time.monotonic() + 1),
        pytest.raises(LockTimeout),
        refresh_lock(stores.redis, "two", deadline=time.monotonic() + 0.05),
    ):
        pytest.fail("held twice")


def test_other_connections_do_not_wait(stores: Stores):
    with (
        refresh_lock(stores.redis, "three", deadline=time.monotonic() + 1),
        refresh_lock(stores.redis, "four", deadline=time.monotonic() + 1),
    ):
        assert stores.redis.exists("lock:refresh:three", "lock:refresh:four") == 2


@pytest.mark.parametrize("seconds", [-1, 0.5, 120])
@pytest.mark.parametrize(("lock", "key"), [(refresh_lock, "lock:refresh:six"), (try_lock, "lock:round:six")])
def test_a_lock_outlives_the_deadline_of_its_holder_and_not_by_much(stores: Stores, lock, key, seconds):
    left = max(0, seconds)
    with lock(stores.redis, "six", deadline=time.monotonic() + seconds):
        ends = stores.redis.pttl(key) / 1000
    assert left + MARGIN - 1 < ends <= left + MARGIN
    assert not stores.redis.exists(key)


def test_a_round_does_not_wait_for_another(stores: Stores):
    began = time.monotonic()
    with (
        try_lock(stores.redis, "sweep", deadline=began + 60),
        pytest.raises(LockTimeout),
        try_lock(stores.redis, "sweep", deadline=began + 60),
    ):
        pytest.fail("held twice")
    assert time.monotonic() - began < 20


def test_a_lock_lost_while_held_is_no_error(stores: Stores):
    with refresh_lock(stores.redis, "five", deadline=time.monotonic() + 1):
        stores.redis.delete("lock:refresh:five")


def test_a_unified_lock_outlasts_the_work_that_it_is_held_for(stores):
    with unified_lock(stores.redis, "ada", "m-1", timeout=1.0, lifetime=240.0):
        assert stores.redis.pttl("lock:unified:ada:m-1") > 240_000
        with (
            pytest.raises(LockTimeout),
            unified_lock(stores.redis, "ada", "m-1", timeout=0.05, lifetime=1.0),
        ):
            pass
        with unified_lock(stores.redis, "ada", "m-2", timeout=0.05, lifetime=1.0):
            pass


def test_a_lock_that_cannot_be_released_costs_nothing(stores, monkeypatch, caplog):
    def away(self):
        raise ConnectionError("Redis is away")

    monkeypatch.setattr("redis.lock.Lock.release", away)
    with unified_lock(stores.redis, "ada", "m-3", timeout=0.05, lifetime=1.0):
        done = True
    assert done
    assert "lock not released, it expires by itself: ConnectionError" in caplog.text
