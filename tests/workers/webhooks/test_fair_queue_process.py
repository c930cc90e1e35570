"""A process that serves its maximum of endpoints serves the next one when another is done."""

from __future__ import annotations

import pytest

from store.coordination import shares
from workers.queues import MAX_WEBHOOK_ENDPOINTS
from workers.webhooks import delivery as sending


def occupy(runtime, places):
    """Occupy this many of the process's places with endpoints of other tenants; returns the turns."""
    turns = []
    for number in range(places):
        runtime.webhook_queue.add(f"wh_{number}", 1 + number % 4)
        turns.append(runtime.webhook_queue.take())
        assert turns[-1].endpoint_id == f"wh_{number}"
    return turns


def test_waiting_endpoint_is_served_by_the_first_free_thread(runtime, receiver, register, record_event):
    first, second = (register(receiver.url)[0] for _ in range(2))
    record_event()
    turns = occupy(runtime, MAX_WEBHOOK_ENDPOINTS)
    sending.deliver(runtime, first)
    assert receiver.received == []
    assert set(sending.due(runtime)) == {first, second}
    runtime.webhook_queue.done(turns[0])
    sending.deliver(runtime, second)
    assert len(receiver.received) == 2
    assert sending.due(runtime) == []


def test_a_turn_is_short_while_others_wait(runtime, receiver, register, record_event, monkeypatch):
    monkeypatch.setattr(sending, "MAX_SERVE_SECONDS_WHILE_OTHERS_WAIT", 0.0)
    slow, quick = (register(receiver.url)[0] for _ in range(2))
    for _ in range(3):
        record_event()
    served, attempt = [], sending._attempt
    monkeypatch.setattr(
        sending, "_attempt", lambda *args: served.append(args[1].endpoint_id) or attempt(*args)
    )
    occupy(runtime, MAX_WEBHOOK_ENDPOINTS - 1)
    # It arrives while the first one is being served.
    receiver.meanwhile = lambda _: served == [slow] and sending.deliver(runtime, quick)
    sending.deliver(runtime, slow)
    assert served == [slow] + [quick] * 3
    assert sending.due(runtime) == [slow]
    sending.deliver(runtime, slow)
    assert served[4:] == [slow] * 2


def test_an_endpoint_that_fails_unexpectedly_leaves_its_place(runtime, register, record_event, monkeypatch):
    endpoint, _ = register("http://127.0.0.1:9/")
    record_event()

    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr(sending, "_attempt", broken)
    occupy(runtime, MAX_WEBHOOK_ENDPOINTS - 1)
    with pytest.raises(RuntimeError):
        sending.deliver(runtime, endpoint)
    assert runtime.webhook_turns.has_room(shares.UNBOUND)
