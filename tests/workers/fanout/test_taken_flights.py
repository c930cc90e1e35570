"""The leases of one drain's flights are renewed in time, and only while the reads run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from store.coordination.single_flight import LEASE, Completion
from tests.flights import place
from workers.fanout import taken_flights
from workers.fanout.taken_flights import RENEW, TakenFlights

# Milliseconds; longer than any renewal sets.
LONG = 60_000


@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that a test sets."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(taken_flights, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def held(runtime, clock):
    return TakenFlights(runtime.stores.single_flight)


@pytest.fixture
def send_changes(runtime, held):
    """One round trip of the drain."""

    def send() -> None:
        with runtime.stores.redis.pipeline(transaction=False) as pipe:
            held.send(pipe, "replies:leader")
            pipe.execute()

    return send


def test_a_lease_is_renewed_each_time_that_it_is_due_and_not_before(runtime, held, clock, send_changes):
    redis = runtime.stores.redis
    place(redis, "a:1")
    held.take(["a:1", None])
    for _ in range(2):
        redis.pexpire("flight:a", LONG)
        due = clock.now + RENEW
        assert held.next_renewal() == [due]
        assert not held.urgent(due - 0.01)
        send_changes()
        assert redis.pttl("flight:a") > LEASE

        clock.now = due
        assert held.urgent(due)
        send_changes()
        assert 0 < redis.pttl("flight:a") <= LEASE
        assert not held.urgent(due)


@pytest.mark.parametrize("end", ["complete", "abandon"])
def test_a_read_that_is_over_is_held_no_longer(held, clock, send_changes, end):
    held.take(["a", "b"])
    for flight in ("a", "b"):
        if end == "complete":
            held.complete(Completion(flight, b"", failed=False, whole=True))
        else:
            held.abandon([flight])
        assert held.urgent(clock.now)
        send_changes()
    clock.now += 2 * RENEW
    assert held.next_renewal() == []
    assert not held.urgent(clock.now)
