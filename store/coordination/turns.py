"""Turns: how many requests of one tenant are worked on at once in a web process.

All threads of a process share one interpreter lock. When many slow reads of one tenant end at the same
moment, their threads would all run before those of other tenants. So a request takes a turn of its tenant,
and pauses it while it waits for workers or for a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Some may wait for Redis or the database while another one uses the processor.
AT_ONCE = 4

_turns: dict[int, threading.Semaphore] = {}
_held: ContextVar[threading.Semaphore | None] = ContextVar("turn", default=None)


def take(tenant: int) -> None:
    """Wait for a turn of a tenant, for the rest of this request."""
    turns = _turns.setdefault(tenant, threading.Semaphore(AT_ONCE))
    turns.acquire()
    _held.set(turns)


def give_back() -> None:
    """End the turn of this request, if it has one."""
    if (turns := _held.get()) is not None:
        _held.set(None)
        turns.release()


@contextmanager
def paused() -> Iterator[None]:
    """Context in which this request waits for something else than the processor."""
    turns = _held.get()
    if turns is None:
        yield
        return
    turns.release()
    try:
        yield
    finally:
        turns.acquire()
