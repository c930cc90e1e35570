"""The inner pool: claimed, used and given back under many threads, and never more than there are."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from workers.places import Places


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def test_a_claim_takes_what_is_free_and_waits_for_the_first_place_only():
    places = Places(3)
    assert places.claim(2, until=soon()) == 2
    assert places.claim(5, until=soon()) == 1
    assert places.claim(1, until=0.0) == 0
    places.give_back(2)
    assert places.claim(5, until=soon()) == 2


def test_a_claim_ends_when_a_place_is_given_back():
    places = Places(1)
    places.claim(1, until=soon())
    threading.Timer(0.05, places.give_back, [1]).start()
    assert places.claim(1, until=soon()) == 1


def test_no_more_work_runs_at_once_than_there_are_places():
    places = Places(3)
    running, most, done = 0, 0, threading.Semaphore(0)
    guard = threading.Lock()

    def work():
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with guard:
            running -= 1
        done.release()

    def fan_out(count):
        while count:
            claimed = places.claim(count, until=soon())
            used = max(1, claimed - 1)
            places.give_back(claimed - used)
            for _ in range(used):
                places.run(work)
            count -= used

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(fan_out, [10] * 6))
    for _ in range(60):
        assert done.acquire(timeout=5)
    assert most <= 3


def test_work_that_raises_gives_its_place_back():
    places = Places(1)

    def fail():
        raise RuntimeError("planted")

    for _ in range(5):
        assert places.claim(1, until=soon()) == 1
        places.run(fail)
    assert places.claim(1, until=soon()) == 1
