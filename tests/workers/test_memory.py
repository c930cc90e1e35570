"""A worker that exceeds its memory limit restarts itself when it is idle."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from store.coordination.heartbeats import STEPPED_OUT
from workers import memory
from workers.memory import MEBIBYTE, Ceiling, resident


class Scene:
    """A worker whose memory and load the test sets."""

    def __init__(self, presence, name: str, sizes: list[int], busy: int = 0) -> None:
        self.left = threading.Event()
        self._sizes = sizes
        self._busy = busy
        self.ceiling = Ceiling(name, 100, presence, self.quiet, self.left.set)

    def size(self) -> int:
        return self._sizes.pop(0) if len(self._sizes) > 1 else self._sizes[0]

    def quiet(self) -> bool:
        self._busy -= 1
        return self._busy < 0


@pytest.fixture
def scene(runtime, monkeypatch) -> Callable[..., Scene]:
    monkeypatch.setattr(memory, "CHECK", 0.001)
    monkeypatch.setattr(memory, "CHECK_IDLE", 0.001)

    def make(name: str = "worker1", *, sizes: list[int], busy: int = 0) -> Scene:
        made = Scene(runtime.stores.heartbeats, name, sizes, busy)
        monkeypatch.setattr(memory, "resident", made.size)
        return made

    return make


def test_it_knows_what_it_holds():
    before = resident()
    assert before > 20 * MEBIBYTE
    held = bytearray(b"x" * (64 * MEBIBYTE))
    assert 60 * MEBIBYTE < resident() - before < 300 * MEBIBYTE
    del held


def test_it_leaves_once_it_holds_too_much(scene):
    made = scene(sizes=[50, 100, 101])
    made.ceiling.watch()
    assert made.left.is_set()


def test_it_waits_for_a_quiet_moment(scene):
    made = scene(sizes=[101], busy=5)
    made.ceiling.watch()
    assert made._busy == -1


def test_one_that_is_never_quiet_leaves_at_last(scene, monkeypatch):
    monkeypatch.setattr(memory, "PATIENCE", 0.05)
    made = scene(sizes=[101], busy=10**9)
    made.ceiling.watch()
    assert made.left.is_set()


def test_one_leaves_at_a_time(runtime, scene):
    presence = runtime.stores.heartbeats
    first = scene("worker1", sizes=[101])
    first.ceiling.watch()
    second = scene("worker2", sizes=[101])
    thread = threading.Thread(target=second.ceiling.watch)
    thread.start()
    assert not second.left.wait(0.2)
    presence.come_back("worker2")
    assert runtime.stores.redis.get(STEPPED_OUT) == b"worker1"

    presence.come_back("worker1")

    assert second.left.wait(30)
    thread.join(timeout=30)


@pytest.fixture
def ended(monkeypatch) -> list[str]:
    """The commands that would have replaced this process."""
    started: list[str] = []
    monkeypatch.setattr(os, "execv", lambda program, _: started.append(program))
    monkeypatch.setattr(memory, "state", SimpleNamespace(should_stop=None))
    monkeypatch.setattr(memory.atexit, "register", lambda _: None)
    return started


def test_a_worker_that_is_stopped_from_outside_does_not_restart(ended):
    replacement = memory._Replacement()
    replacement.begin()
    memory.worker_shutting_down.send(sender="worker", sig="SIGTERM", how="Warm", exitcode=0)
    replacement._restart()
    assert ended == []

    memory.state.should_stop = None
    replacement.begin()
    replacement._restart()
    assert len(ended) == 1


def test_a_worker_that_is_shutting_down_does_not_restart(ended):
    memory.state.should_stop = 0
    replacement = memory._Replacement()
    replacement.begin()
    replacement._restart()
    assert ended == []
