"""Heartbeats: workers and beat count as alive until their heartbeats stop."""

from __future__ import annotations

import time

import pytest
from redis import Redis

from store.config import embedded_redis
from store.coordination.heartbeats import BEAT, BEAT_SECONDS, FORGOTTEN, WORKER_SECONDS, WORKERS, Heartbeats


@pytest.fixture
def redis(tmp_path):
    socket = tmp_path / "redis.sock"
    server = embedded_redis.start(tmp_path, socket)
    with Redis(unix_socket_path=str(socket)) as redis:
        yield redis
    server.terminate()
    server.wait(timeout=30)


def test_workers_are_there_with_their_places_until_they_leave(redis):
    presence = Heartbeats(redis)
    assert presence.live_processes().workers == {}
    presence.record_worker("worker1@a", used=3, places=64)
    presence.record_worker("worker2@a", used=0, places=64)
    presence.record_worker("worker1@a", used=4, places=64)

    assert presence.live_processes().workers == {"worker1@a": (4, 64), "worker2@a": (0, 64)}
    presence.record_worker_exit("worker1@a")
    assert presence.live_processes().workers == {"worker2@a": (0, 64)}


def test_silent_worker_is_absent_and_later_removed(redis):
    presence = Heartbeats(redis)
    now = time.time()
    for name, ago in (("young", 0.0), ("silent", WORKER_SECONDS + 1), ("long gone", FORGOTTEN + 1)):
        redis.hset(WORKERS, name, f"{now - ago}:0:1")

    assert set(presence.live_processes().workers) == {"young"}
    assert set(redis.hkeys(WORKERS)) == {b"young", b"silent"}


def test_absent_workers_differ_from_no_worker_yet(redis):
    presence = Heartbeats(redis)
    redis.hset(WORKERS, "long gone", f"{time.time() - FORGOTTEN - 1}:0:1")
    assert presence.live_processes().workers == {}
    assert redis.hkeys(WORKERS) == [b"long gone"]


def test_beat_is_there_while_its_tick_is_young(redis):
    presence = Heartbeats(redis)
    assert (presence.live_processes().beat_is_alive, presence.live_processes().beat_seconds) == (False, None)
    presence.record_beat()
    assert presence.live_processes().beat_is_alive
    assert presence.live_processes().beat_seconds < 5
    redis.set(BEAT, time.time() - BEAT_SECONDS - 1)
    assert not presence.live_processes().beat_is_alive


def test_worker_is_isolated_only_if_another_reaches_the_provider(redis):
    presence = Heartbeats(redis)
    presence.record_worker("worker1@a", used=0, places=64, unreachable=["microsoft", "google"])
    assert presence.live_processes().unreachable == {"worker1@a": {"google", "microsoft"}}
    # Alone it knows of no worker that does better: the provider may be down.
    assert presence.live_processes().isolated() == {}
    presence.record_worker("worker2@a", used=0, places=64, unreachable=["google"])
    assert presence.live_processes().isolated() == {"worker1@a": ["microsoft"]}
    presence.record_worker("worker2@a", used=0, places=64)
    assert presence.live_processes().isolated() == {"worker1@a": ["google", "microsoft"]}
    assert presence.live_processes().reaching("google") == ["worker2@a"]
    presence.record_worker_exit("worker2@a")
    assert presence.live_processes().isolated() == {}
    presence.record_worker("worker1@a", used=0, places=64)
    assert presence.live_processes().unreachable == {"worker1@a": frozenset()}
