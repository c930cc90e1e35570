"""The flusher thread."""

from __future__ import annotations

import threading

from store.metrics.flusher import Flusher


def test_each_is_flushed_again_and_again_whatever_another_does(caplog):
    flushed = threading.Semaphore(0)

    def fail():
        raise ValueError("broken")

    flusher = Flusher([fail, flushed.release], seconds=0.01)
    flusher.start()

    assert all(flushed.acquire(timeout=10) for _ in range(3))
    flusher.close()
    assert "flush failed" in caplog.text


def test_close_flushes_once_and_stops():
    flushed = []
    flusher = Flusher([lambda: flushed.append(1)], seconds=3600)
    flusher.start()
    flusher.start()
    assert flushed == []

    flusher.close()
    flusher.close()

    assert flushed == [1]
    assert not [each for each in threading.enumerate() if each.name == "flusher" and each.is_alive()]
