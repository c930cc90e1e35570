"""Webhook endpoints are served in order of arrival, with limited concurrency."""

from __future__ import annotations

from workers.webhooks.fair_queue import FairQueue


def test_the_first_endpoint_is_served_first():
    receivers = FairQueue(2)
    for each in "abcd":
        receivers.come(each)
    assert [receivers.take() for _ in range(3)] == ["a", "b", None]
    receivers.leave()
    assert [receivers.take() for _ in range(2)] == ["c", None]


def test_a_served_endpoint_goes_behind_the_waiting_ones():
    receivers = FairQueue(1)
    receivers.come("slow")
    assert receivers.take() == "slow"
    for each in ("first", "slow", "second", "first"):
        receivers.come(each)
    taken = []
    while receivers.crowded:
        receivers.leave()
        taken.append(receivers.take())
    assert taken == ["first", "slow", "second"]


def test_a_share_with_a_place_has_no_claim_to_the_spare_one():
    receivers = FairQueue(1)
    assert (receivers.take(), receivers.crowded) == (None, False)
    receivers.come("a")
    assert receivers.crowded
    assert receivers.take() == "a"
    assert not receivers.crowded
    receivers.leave()
    assert receivers.take() is None
