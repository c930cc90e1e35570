"""Webhook endpoints are served in order of arrival, with limited concurrency."""

from __future__ import annotations

from workers.webhooks.fair_queue import FairQueue


def test_the_first_endpoint_is_served_first():
    queue = FairQueue(2)
    for each in "abcd":
        queue.add(each)
    assert [queue.take() for _ in range(3)] == ["a", "b", None]
    queue.done()
    assert [queue.take() for _ in range(2)] == ["c", None]


def test_a_served_endpoint_goes_behind_the_waiting_ones():
    queue = FairQueue(1)
    queue.add("slow")
    assert queue.take() == "slow"
    for each in ("first", "slow", "second", "first"):
        queue.add(each)
    taken = []
    while queue.has_waiting:
        queue.done()
        taken.append(queue.take())
    assert taken == ["first", "slow", "second"]


def test_the_queue_is_crowded_only_while_an_endpoint_waits():
    queue = FairQueue(1)
    assert (queue.take(), queue.has_waiting) == (None, False)
    queue.add("a")
    assert queue.has_waiting
    assert queue.take() == "a"
    assert not queue.has_waiting
    queue.done()
    assert queue.take() is None
