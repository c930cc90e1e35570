"""Changing an event of Google Calendar writes only the given fields."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from providers.errors import Unavailable
from tests.providers.event_calls import TIMED
from tests.providers.google.google_calls import DELETE, GOOD, INSERT, PATCH, PUT, scripted


def test_an_answer_given_while_the_list_is_written_is_not_lost(script, scripted_account):
    """Bob accepts between our read and our write; the etag detects it."""
    calls = scripted(script, scripted_account)
    guest = {"email": "bob@example.com"}
    before = {"attendees": [guest | {"responseStatus": "needsAction"}], "etag": '"1"'}
    after = {"attendees": [guest | {"responseStatus": "accepted"}], "etag": '"2"'}
    script.say(200, GOOD | before)
    script.say(412, {"error": {"errors": [{"reason": "conditionNotMet"}], "code": 412}})
    script.say(200, GOOD | after)
    calls.update("abcde1", attendees=("bob@example.com",))
    patches = [each for each in script.requests if each["method"] == "PATCH"]
    assert [each["headers"]["If-Match"] for each in patches] == ['"1"', '"2"']
    answers = [json.loads(each["body"])["attendees"][0]["responseStatus"] for each in patches]
    assert answers == ["needsAction", "accepted"]


def test_an_event_that_makes_no_sense_is_not_written(script, scripted_account):
    script.say(200, GOOD | {"attendees": "bob"})
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).update("abcde1", attendees=())
    assert [each["method"] for each in script.requests] == ["GET"]


def test_meeting_with_lost_answer_is_not_created_twice(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.fault(operation=PATCH, body="reset", times=1)
    event = calls.update(made.id, meeting=True)
    assert event.meeting_url == calls.stored(made.id)["hangoutLink"]
    assert sandbox.requests().by_operation[PATCH] == 2


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
