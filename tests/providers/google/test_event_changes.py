"""Changing an event of Google Calendar writes only the given fields."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from providers.errors import EventNotFound, EventRefused, Unavailable
from providers.events import Changes, Day, Moment, ResponseStatus
from providers.google import events as google_events
from providers.google import parse_events
from providers.timestamps import DAY, instant
from tests.providers.event_calls import HOUR, NINE, START, TEN, TIMED
from tests.providers.google.google_calls import FULL, GET, GOOD, PATCH, scripted


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


def test_an_update_of_nothing_writes_nothing(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.forget_requests()
    assert calls.update(made.id) == made
    assert calls.update(made.id, notify=True) == made
    assert sandbox.requests().by_operation == {GET: 2}


def test_text_can_be_emptied(calls):
    made = calls.create(replace(FULL, meeting=False)).event
    event = calls.update(made.id, subject="", description="", location="", attendees=())
    assert (event.subject, event.description, event.location, event.attendees) == ("", "", "", ())


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


def test_an_event_changed_meanwhile_is_read_and_written_again(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.fault(operation=PATCH, times=2, status=412)
    sandbox.forget_requests()
    assert calls.update(made.id, attendees=("bob@example.com",)).attendees[0].email == "bob@example.com"
    assert sandbox.requests().by_operation == {GET: 3, PATCH: 3}


def test_an_event_that_never_holds_still_is_given_up(sandbox, calls, is_fit_for_people):
    made = calls.create(TIMED).event
    sandbox.fault(operation=PATCH, status=412)
    with pytest.raises(Unavailable, match="others are changing") as raised:
        calls.update(made.id, attendees=())
    is_fit_for_people(raised.value)
    assert sandbox.requests().by_operation[PATCH] == google_events.TRIES


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


def test_update_with_lost_answer_is_sent_again(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.fault(operation=PATCH, body="reset", times=1)
    assert calls.update(made.id, subject="Again").subject == "Again"
    assert sandbox.requests().by_operation[PATCH] == 2
    sandbox.fault(operation=PATCH, body="reset", times=1)
    sandbox.forget_requests()
    assert [each.email for each in calls.update(made.id, attendees=("bob@x.org",)).attendees] == ["bob@x.org"]
    # Executed without an answer, rejected for the etag that it changed, executed again.
    assert sandbox.requests().by_operation[PATCH] == 3


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


def test_a_time_becomes_days_and_days_become_a_time(new):
    calls = new(time_zone="America/New_York")
    made = calls.create(TIMED).event
    days = calls.update(made.id, start=Day("2026-12-03"), end=Day("2026-12-05"))
    assert (days.all_day, days.start, days.end) == (True, START + 5 * HOUR, START + 2 * DAY + 5 * HOUR)
    longer = calls.update(made.id, end=Day("2026-12-06"))
    assert (longer.start, longer.end) == (days.start, days.end + DAY)
    timed = calls.update(made.id, start=Moment(NINE), end=Moment(TEN))
    assert (timed.all_day, timed.start, timed.end) == (False, NINE, TEN)
    assert calls.stored(made.id)["start"]["timeZone"] == "America/New_York"
    with pytest.raises(EventRefused):
        calls.update(made.id, end=Day("2026-12-04"))


def test_one_edge_of_a_timed_event_moves_alone(calls):
    made = calls.create(TIMED).event
    event = calls.update(made.id, end=Moment(TEN + HOUR))
    assert (event.start, event.end, event.all_day) == (NINE, TEN + HOUR, False)


@pytest.mark.parametrize(("zone", "kept"), [(None, "America/New_York"), ("Asia/Tokyo", "Asia/Tokyo")])
def test_an_event_keeps_its_zone_by_default(calls, zone, kept):
    new_york = "America/New_York"
    made = calls.create(Changes(start=Moment(NINE, new_york), end=Moment(TEN, new_york))).event
    event = calls.update(made.id, start=Moment(NINE + HOUR, zone), end=Moment(TEN + HOUR, zone))
    assert (event.start, event.end) == (NINE + HOUR, TEN + HOUR)
    stored = calls.stored(made.id)
    assert [stored[edge]["timeZone"] for edge in ("start", "end")] == [kept, kept]


def test_a_series_that_is_moved_follows_the_clock_of_its_zone(calls):
    new_york = "America/New_York"
    made = calls.post(
        start={"dateTime": "2026-10-28T09:00:00", "timeZone": new_york},
        end={"dateTime": "2026-10-28T10:00:00", "timeZone": new_york},
        recurrence=["RRULE:FREQ=WEEKLY;COUNT=3"],
    )
    moved = instant("2026-10-28T11:00:00-04:00")
    assert calls.update(made["id"], start=Moment(moved), end=Moment(moved + HOUR)).start == moved
    found = calls.listed(moved - DAY, moved + 21 * DAY)
    hours = [datetime.fromtimestamp(event.start / 1000, ZoneInfo(new_york)).hour for event in found]
    assert hours == [11, 11, 11]
    assert found[1].start - found[0].start == 7 * DAY + HOUR
