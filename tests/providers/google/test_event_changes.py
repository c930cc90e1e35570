"""Changing an event of Google Calendar: only the given fields, its online meeting, and its guests."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from providers.errors import Unavailable
from providers.events import Changes, Day, Moment, Reminders
from providers.google import events as google_events
from tests.providers.event_calls import EVERYTHING, HOUR, NINE, TEN, TIMED
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


@pytest.mark.parametrize(
    ("known", "changes"),
    [
        ({"attendees": "bob"}, {"attendees": ()}),
        ({"attendees": [None]}, {"attendees": ("bob@example.com",)}),
        ({"reminders": {"overrides": [{"method": "popup"}]}}, {"reminders": Reminders((5,))}),
        ({"conferenceData": ["odd"]}, {"meeting": True}),
    ],
    ids=str,
)
def test_a_write_that_must_keep_what_cannot_be_read_is_refused(script, scripted_account, known, changes):
    """A list of events shows such an event without this part."""
    script.say(200, GOOD | known)
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).update("abcde1", **changes)
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


# Fields of other applications.
FOREIGN = {
    "colorId": "7",
    "guestsCanInviteOthers": False,
    "guestsCanModify": True,
    "source": {"title": "Tracker", "url": "https://tracker.example/1"},
    "attachments": [{"fileUrl": "https://drive.example/1", "title": "Plan"}],
    "extendedProperties": {"private": {"crm": "42"}, "shared": {"room": "4"}},
    "conferenceData": {
        "createRequest": {"requestId": "1", "conferenceSolutionKey": {"type": "hangoutsMeet"}}
    },
}
GUEST = {
    "email": "bob@example.com",
    "additionalGuests": 2,
    "comment": "Perhaps",
    "responseStatus": "accepted",
}


def test_a_change_of_every_field_keeps_those_of_other_applications(calls):
    reminders = {"useDefault": False, "overrides": [{"method": "email", "minutes": 60}]}
    before = calls.post(**FOREIGN, attendees=[GUEST], reminders=reminders)

    event = calls.update(before["id"], **EVERYTHING)

    after = calls.stored(event.id)
    for name in FOREIGN.keys() - {"extendedProperties", "conferenceData"}:
        assert after[name] == before[name]
    assert after["conferenceData"] == before["conferenceData"]
    assert after["hangoutLink"] == before["hangoutLink"]
    private, shared = (after["extendedProperties"][each] for each in ("private", "shared"))
    assert private == {"crm": "42", "metaId": "m-1"}
    assert shared == {"room": "4"}
    assert after["attendees"][0] == before["attendees"][0] | {"displayName": "Bob"}
    assert after["reminders"]["overrides"][0] == {"method": "email", "minutes": 60}


def test_methods_of_one_reminder_make_room_for_others(calls):
    """Google allows five overrides; an e-mail and a notification at the same minute are two."""
    both = [{"method": method, "minutes": 10} for method in ("email", "popup")]
    before = calls.post(reminders={"useDefault": False, "overrides": both})

    def overrides(*minutes):
        assert calls.update(before["id"], reminders=Reminders(minutes)).reminders == Reminders(minutes)
        return calls.stored(before["id"])["reminders"]["overrides"]

    assert overrides(10, 20, 30, 40)[:2] == both
    assert len(overrides(10, 20, 30, 40, 50)) == 5
