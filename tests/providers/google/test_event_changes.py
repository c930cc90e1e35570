"""Changing an event of Google Calendar writes only the given fields."""

from __future__ import annotations

import json

import pytest

from providers.errors import EventNotFound, Unavailable
from providers.events import Changes, Moment, ResponseStatus
from providers.google import parse_events
from tests.providers.event_calls import HOUR, NINE, TEN, TIMED
from tests.providers.google.google_calls import GOOD, PATCH, scripted


def test_an_update_writes_what_was_sent_and_nothing_else(sandbox, calls):
    made = calls.post(
        description="<b>Bold</b>",
        location="Bar",
        attendees=[{"email": "bob@example.com", "responseStatus": "accepted"}],
        transparency="transparent",
        reminders={"useDefault": False, "overrides": [{"method": "popup", "minutes": 5}]},
        extendedProperties={"private": {"theirs": "kept"}, "shared": {"too": "kept"}},
    )
    sandbox.forget_requests()
    event = calls.update(made["id"], subject="Dinner")
    assert event.subject == "Dinner"
    assert sandbox.requests().by_operation == {PATCH: 1}
    after = calls.stored(made["id"])
    kept = made.keys() - {"summary", "etag", "updated"}
    assert {name: after[name] for name in kept} == {name: made[name] for name in kept}


def test_guests_that_stay_invited_keep_their_response(calls):
    made = calls.post(
        attendees=[
            {"email": "Bob@example.com", "displayName": "Bob B.", "optional": True},
            {"email": "eve@example.com", "responseStatus": "declined"},
            {"email": "dan@example.com", "responseStatus": "tentative", "comment": "maybe"},
        ]
    )
    event = calls.update(made["id"], attendees=("DAN@example.com", "new@example.com", "bob@Example.com"))
    assert [(each.email, each.response_status) for each in event.attendees] == [
        ("dan@example.com", ResponseStatus.TENTATIVE),
        ("new@example.com", ResponseStatus.NEEDS_ACTION),
        ("Bob@example.com", ResponseStatus.NEEDS_ACTION),
    ]
    dan, _, bob = calls.stored(made["id"])["attendees"]
    assert (dan["comment"], bob["displayName"], bob["optional"]) == ("maybe", "Bob B.", True)


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


def test_a_meta_id_is_set_and_the_properties_of_others_stay(calls):
    theirs = {"private": {"theirs": "kept"}, "shared": {"too": "kept"}}
    made = calls.post(extendedProperties=theirs)
    assert calls.update(made["id"], meta_id="m-9").meta_id == "m-9"
    assert calls.find("m-9").id == made["id"]
    assert calls.stored(made["id"])["extendedProperties"] == {
        "private": {"theirs": "kept", parse_events.META_ID: "m-9"},
        "shared": {"too": "kept"},
    }
    assert calls.update(made["id"], meta_id="m-10").meta_id == "m-10"
    with pytest.raises(EventNotFound):
        calls.find("m-9")


@pytest.mark.parametrize(("zone", "kept"), [(None, "America/New_York"), ("Asia/Tokyo", "Asia/Tokyo")])
def test_an_event_keeps_its_zone_by_default(calls, zone, kept):
    new_york = "America/New_York"
    made = calls.create(Changes(start=Moment(NINE, new_york), end=Moment(TEN, new_york))).event
    event = calls.update(made.id, start=Moment(NINE + HOUR, zone), end=Moment(TEN + HOUR, zone))
    assert (event.start, event.end) == (NINE + HOUR, TEN + HOUR)
    stored = calls.stored(made.id)
    assert [stored[edge]["timeZone"] for edge in ("start", "end")] == [kept, kept]
