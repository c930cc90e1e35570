"""Clients that send requests continuously while a test changes something."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def repeated(requests: Sequence[Callable[[], object]]) -> Iterator[None]:
    """Send each request repeatedly, from a thread of its own; fails when one raised ``AssertionError``."""
    over = threading.Event()
    failures: list[str] = []

    def run(request: Callable[[], object]) -> None:
        try:
            while not over.is_set():
                request()
        except AssertionError as error:
            failures.append(str(error))

    threads = [threading.Thread(target=run, args=(request,)) for request in requests]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=20)
    assert not failures, failures[:3]
