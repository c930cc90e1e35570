"""Receivers of webhooks are served in the order in which they came, so many at once."""

from __future__ import annotations

from workers.webhooks.fair_queue import FairQueue


def test_who_came_first_is_first():
    receivers = FairQueue(2)
    for each in "abcd":
        receivers.come(each)
    assert [receivers.take() for _ in range(3)] == ["a", "b", None]
    receivers.leave()
    assert [receivers.take() for _ in range(2)] == ["c", None]


def test_who_has_had_a_turn_comes_after_those_who_wait():
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


def test_nobody_is_waited_for_who_has_a_place():
    receivers = FairQueue(1)
    assert (receivers.take(), receivers.crowded) == (None, False)
    receivers.come("a")
    assert receivers.crowded
    assert receivers.take() == "a"
    assert not receivers.crowded
    receivers.leave()
    assert receivers.take() is None
