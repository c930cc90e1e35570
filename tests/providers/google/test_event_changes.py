"""Changing an event of Google Calendar: only the given fields, its online meeting, and its guests."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from providers.errors import Unavailable
from providers.events import Changes, Day, Moment
from providers.google import events as google_events
from tests.providers.event_calls import HOUR, NINE, TEN, TIMED
from tests.providers.google.google_calls import DELETE, GET, GOOD, INSERT, PATCH, PUT, scripted


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


@pytest.mark.parametrize(("zone", "kept"), [(None, "America/New_York"), ("Asia/Tokyo", "Asia/Tokyo")])
def test_an_event_keeps_its_zone_by_default(calls, zone, kept):
    new_york = "America/New_York"
    made = calls.create(Changes(start=Moment(NINE, new_york), end=Moment(TEN, new_york))).event
    event = calls.update(made.id, start=Moment(NINE + HOUR, zone), end=Moment(TEN + HOUR, zone))
    assert (event.start, event.end) == (NINE + HOUR, TEN + HOUR)
    stored = calls.stored(made.id)
    assert [stored[edge]["timeZone"] for edge in ("start", "end")] == [kept, kept]


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


@pytest.mark.parametrize("looks", [1, 2])
def test_a_meeting_that_google_is_still_making_is_waited_for(sandbox, calls, looks):
    sandbox.fault(operation=INSERT, body="pending", times=1)
    sandbox.fault(operation=GET, body="pending", times=looks - 1)
    created = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting=True))
    assert created.made
    assert created.event.meeting_url is not None
    assert sandbox.requests().by_operation == {INSERT: 1, GET: looks}


@pytest.mark.parametrize("fault", [{"body": "pending"}, {"status": 503}, {"status": 404}], ids=str)
def test_a_meeting_that_stays_in_the_making_fails_nothing(sandbox, new, monkeypatch, fault):
    monkeypatch.setattr(google_events, "MEETING_SECONDS", 0.7)
    calls = new(left=60)
    sandbox.fault(operation=INSERT, body="pending")
    sandbox.fault(operation=GET, **fault)
    began = time.monotonic()
    created = calls.create(Changes(subject="x", start=Moment(NINE), end=Moment(TEN), meeting=True))
    assert time.monotonic() - began < 20
    assert (created.made, created.event.subject, created.event.meeting_url) == (True, "x", None)
    sandbox.clear_faults()
    assert calls.event(created.event.id).meeting_url is not None


def test_an_online_meeting_stays_when_the_event_is_changed(calls):
    made = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting=True)).event
    for changes in (
        {"subject": "x"},
        {"attendees": ("bob@example.com",)},
        {"start": Day("2026-12-03"), "end": Day("2026-12-04")},
        {"meta_id": "m"},
    ):
        assert calls.update(made.id, **changes).meeting_url == made.meeting_url


ZOOM, OTHER = "https://zoom.example/1", "https://zoom.example/2"
