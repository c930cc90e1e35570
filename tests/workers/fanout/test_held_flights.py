"""The leases of one drain's flights are renewed in time, and only while the reads run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from store.coordination.single_flight import LEASE
from workers.fanout import held_flights
from workers.fanout.held_flights import RENEW, HeldFlights

# Milliseconds; longer than any renewal sets.
LONG = 60_000


@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that a test sets."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(held_flights, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def shared(runtime, clock):
    return HeldFlights(runtime.stores.single_flight)


@pytest.fixture
def tell(runtime, shared):
    """One round trip of the drain."""

    def send() -> None:
        with runtime.stores.redis.pipeline(transaction=False) as pipe:
            shared.send(pipe, "replies")
            pipe.execute()

    return send


def test_a_lease_is_renewed_each_time_that_it_is_due_and_not_before(runtime, shared, clock, tell):
    redis = runtime.stores.redis
    redis.hset("flight:a", "at", 1)
    shared.take(["a", None])
    for _ in range(2):
        redis.pexpire("flight:a", LONG)
        due = clock.now + RENEW
        assert shared.until() == [due]
        assert not shared.urgent(due - 0.01)
        tell()
        assert redis.pttl("flight:a") > LEASE

        clock.now = due
        assert shared.urgent(due)
        tell()
        assert 0 < redis.pttl("flight:a") <= LEASE
        assert not shared.urgent(due)


@pytest.mark.parametrize("end", ["land", "abandon"])
def test_a_read_that_is_over_is_held_no_longer(shared, clock, tell, end):
    shared.take(["a", "b"])
    for flight in ("a", "b"):
        if end == "land":
            shared.complete(flight, b"", failed=False, whole=True)
        else:
            shared.abandon([flight])
        assert shared.urgent(clock.now)
        tell()
    clock.now += 2 * RENEW
    assert shared.until() == []
    assert not shared.urgent(clock.now)
