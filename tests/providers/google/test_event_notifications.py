"""Google Calendar notifies an event's guests of a write on request."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.providers.event_calls import TIMED
from tests.providers.google.google_calls import DELETE, GOOD, INSERT, PATCH, PUT, scripted


@pytest.mark.parametrize(("notify", "notified"), [(None, False), (True, True), (False, False)])
def test_guests_are_notified_on_request(sandbox, calls, notify, notified):
    content = replace(TIMED, attendees=("bob@example.com", "alice@example.com"), notify=notify)
    made = calls.create(content, key="k").event
    calls.update(made.id, subject="x", notify=notify)
    calls.update(made.id, attendees=("eve@example.com",), notify=notify)
    calls.delete(made.id, notify=notify)
    calls.create(content, key="k")
    bob, eve = "bob@example.com", "eve@example.com"
    writes = [(INSERT, [bob]), (PATCH, [bob]), (PATCH, [bob, eve]), (DELETE, [eve]), (PUT, [eve, bob])]
    assert [(each["operation"], each["guests"]) for each in sandbox.notices()] == (writes if notified else [])


def test_send_updates_is_omitted_for_the_default(script, scripted_account):
    script.say(200, GOOD)
    calls = scripted(script, scripted_account)
    for notify in (None, True, False):
        calls.create(replace(TIMED, notify=notify))
        calls.update("abcde1", subject="x", notify=notify)
        calls.delete("abcde1", notify=notify)
    said = ["sendUpdates=all" in each["path"] for each in script.requests]
    assert said == [False] * 3 + [True] * 3 + [False] * 3
    said = ["sendUpdates=none" in each["path"] for each in script.requests]
    assert said == [False] * 6 + [True] * 3
