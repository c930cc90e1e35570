"""Webhook endpoints are served in order of arrival, with limited concurrency, and in turn for each tenant."""

from __future__ import annotations

from store.coordination.shares import Quota, SharedPlaces
from workers.webhooks.fair_queue import FairQueue, Turn

ACME, OTHER = 1, 2


def queue_of(total: int, share: int | None = None) -> FairQueue:
    return FairQueue(SharedPlaces(Quota.WEBHOOK_TURNS, total, share or total))


def add(queue: FairQueue, endpoints: str, tenant: int = ACME) -> None:
    for each in endpoints:
        queue.add(each, tenant)


def take(queue: FairQueue) -> str | None:
    turn = queue.take()
    return None if turn is None else turn.endpoint_id


def test_the_first_endpoint_is_served_first():
    queue = queue_of(2)
    add(queue, "abcd")
    assert [take(queue) for _ in range(3)] == ["a", "b", None]
    queue.done(Turn("a", ACME))
    assert [take(queue) for _ in range(2)] == ["c", None]


def test_a_served_endpoint_goes_behind_the_waiting_ones():
    queue = queue_of(1)
    add(queue, "s")
    turn = queue.take()
    assert turn == Turn("s", ACME)
    add(queue, "asb")
    add(queue, "a")
    taken = []
    while queue.others_wait_for(turn):
        queue.done(turn)
        turn = queue.take()
        taken.append(turn.endpoint_id)
    assert taken == ["a", "s", "b"]


def test_others_wait_only_while_an_endpoint_waits():
    queue = queue_of(1)
    assert take(queue) is None
    add(queue, "ab")
    turn = queue.take()
    assert queue.others_wait_for(turn)
    queue.done(turn)
    turn = queue.take()
    assert not queue.others_wait_for(turn)
    queue.done(turn)
    assert take(queue) is None


def test_a_tenant_has_no_more_turns_than_its_share():
    queue = queue_of(4, share=2)
    add(queue, "abcdef")
    assert [take(queue) for _ in range(3)] == ["a", "b", None]
    add(queue, "xy", OTHER)
    assert [take(queue) for _ in range(3)] == ["x", "y", None]
    # Endpoints of a tenant that is at its share wait for the turns of this tenant only, until all are taken.
    queue.done(Turn("x", OTHER))
    assert not queue.others_wait_for(Turn("y", OTHER))
    assert queue.others_wait_for(Turn("a", ACME))


def test_the_tenant_with_the_fewest_turns_is_next():
    queue = queue_of(4)
    add(queue, "abcd")
    add(queue, "xy", OTHER)
    assert [take(queue) for _ in range(5)] == ["a", "x", "b", "y", None]
    add(queue, "z", OTHER)
    queue.done(Turn("a", ACME))
    assert take(queue) == "c"
