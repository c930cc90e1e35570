"""Events of Microsoft 365 over a socket: a change writes only the given fields."""

from __future__ import annotations

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from providers.errors import EventNotFound, EventRefused, EventUnreadable, Unavailable
from providers.events import Changes, Day, Moment, ResponseStatus
from providers.timestamps import DAY, instant
from tests.providers.event_calls import HOUR, NINE, START, TEN, TIMED
from tests.providers.microsoft.graph_calls import GET, GOOD, UPDATE, scripted


def test_an_update_writes_what_was_sent_and_nothing_else(calls):
    made = calls.post(
        body={"contentType": "html", "content": "<b>Bold</b>"},
        location={"displayName": "Bar"},
        attendees=[{"emailAddress": {"address": "bob@example.com"}}],
        showAs="oof",
    )
    event = calls.update(made["id"], subject="Dinner")
    assert event.subject == "Dinner"
    after = calls.stored(made["id"])
    kept = made.keys() - {"subject", "changeKey", "lastModifiedDateTime", "@odata.etag"}
    assert {name: after[name] for name in kept} == {name: made[name] for name in kept}


def test_an_update_of_nothing_writes_nothing(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.forget_requests()
    assert calls.update(made.id) == made
    assert UPDATE not in sandbox.requests().by_operation


def test_text_can_be_emptied(calls):
    content = Changes(
        subject="A",
        description="B",
        location="C",
        start=Moment(NINE),
        end=Moment(TEN),
        attendees=("b@x.org",),
    )
    made = calls.create(content).event
    event = calls.update(made.id, subject="", description="", location="", attendees=())
    assert (event.subject, event.description, event.location, event.attendees) == ("", "", "", ())


def test_guests_that_stay_invited_keep_their_response(calls):
    guests = [
        {"emailAddress": {"address": "Bob@example.com", "name": "Bob B."}, "type": "optional"},
        {"emailAddress": {"address": "eve@example.com"}, "status": {"response": "declined"}},
        {"emailAddress": {"address": "dan@example.com"}, "status": {"response": "tentativelyAccepted"}},
    ]
    made = calls.post(attendees=guests)
    event = calls.update(made["id"], attendees=("DAN@example.com", "new@example.com", "bob@Example.com"))
    assert [(each.email, each.response_status) for each in event.attendees] == [
        ("dan@example.com", ResponseStatus.TENTATIVE),
        ("new@example.com", ResponseStatus.NEEDS_ACTION),
        ("Bob@example.com", ResponseStatus.NEEDS_ACTION),
    ]
    bob = calls.stored(made["id"])["attendees"][2]
    assert (bob["type"], bob["emailAddress"]["name"]) == ("optional", "Bob B.")


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 412},
        {"status": 412, "reason": "PreconditionFailed"},
        {"status": 409, "reason": "ErrorIrresolvableConflict"},
    ],
)
def test_an_event_changed_meanwhile_is_read_and_written_again(sandbox, calls, fault):
    made = calls.create(TIMED).event
    sandbox.fault(operation=UPDATE, times=2, **fault)
    sandbox.forget_requests()
    assert calls.update(made.id, attendees=("bob@example.com",)).attendees[0].email == "bob@example.com"
    assert sandbox.requests().by_operation == {GET: 4, UPDATE: 3}


def test_an_event_that_never_holds_still_is_given_up(sandbox, calls, is_fit_for_people):
    made = calls.create(TIMED).event
    sandbox.fault(operation=UPDATE, status=412)
    with pytest.raises(Unavailable, match="others are changing") as raised:
        calls.update(made.id, subject="x")
    is_fit_for_people(raised.value)
    assert sandbox.requests().by_operation[UPDATE] == 4


def test_an_answer_given_while_the_list_is_written_is_not_lost(script, scripted_account):
    """Bob accepts between our read and our write; the etag detects it."""
    calls = scripted(script, scripted_account)
    guest = {"emailAddress": {"address": "bob@example.com"}, "type": "required"}
    before = {"attendees": [guest | {"status": {"response": "none"}}], "@odata.etag": 'W/"1"'}
    after = {"attendees": [guest | {"status": {"response": "accepted"}}], "@odata.etag": 'W/"2"'}
    script.say(200, GOOD | before)
    script.say(412, {"error": {"code": "ErrorIrresolvableConflict"}})
    script.say(200, GOOD | after)
    calls.update("AAMk1", attendees=("bob@example.com",))
    patches = [each for each in script.requests if each["method"] == "PATCH"]
    assert [each["headers"]["If-Match"] for each in patches] == ['W/"1"', 'W/"2"']
    answers = [json.loads(each["body"])["attendees"][0]["status"]["response"] for each in patches]
    assert answers == ["none", "accepted"]


@pytest.mark.parametrize(
    "known",
    [
        GOOD | {"attendees": [None]},
        GOOD | {"attendees": 7},
        GOOD | {"location": "Room"},
        GOOD | {"isAllDay": True, "end": {}},
    ],
    ids=str,
)
def test_an_event_that_makes_no_sense_is_not_written(script, scripted_account, known):
    script.say(200, known)
    changes = {
        "attendees": ("bob@example.com",),
        "meeting_url": "https://zoom.example/1",
        "start": Day("2026-12-03"),
    }
    with pytest.raises(Unavailable, match="unreadable"):
        scripted(script, scripted_account).update("AAMk1", **changes)
    assert {each["method"] for each in script.requests} == {"GET"}


def test_an_event_deleted_between_read_and_write_is_not_there(script, scripted_account):
    script.say(200, GOOD)
    script.say(404, {"error": {"code": "ErrorItemNotFound"}})
    with pytest.raises(EventNotFound):
        scripted(script, scripted_account).update("AAMk1", subject="x")
    assert [each["method"] for each in script.requests] == ["GET", "PATCH"]


def test_update_with_lost_answer_is_sent_again(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.fault(operation=UPDATE, body="reset", times=1)
    assert calls.update(made.id, subject="Again", attendees=("bob@example.com",)).subject == "Again"
    # Executed without an answer, rejected for the etag that it changed, executed again.
    assert sandbox.requests().by_operation[UPDATE] == 3


def test_an_update_that_cannot_be_read_back_was_done(script, scripted_account):
    script.say(200, GOOD)
    script.say(200, GOOD)
    script.say(200, {"odd": True})
    with pytest.raises(EventUnreadable):
        scripted(script, scripted_account).update("AAMk1", subject="x")
    assert [each["method"] for each in script.requests] == ["GET", "PATCH", "GET"]


def test_description_change_keeps_the_online_meeting(calls):
    made = calls.create(Changes(description="Old", start=Moment(NINE), end=Moment(TEN), meeting=True)).event
    for text in ("New <b>\n  indented  & spaced", "", "Third"):
        event = calls.update(made.id, description=text)
        assert event.description == text
        assert event.meeting_url == made.meeting_url
        assert calls.stored(made.id)["isOnlineMeeting"]
    assert calls.stored(made.id)["body"]["content"].count("Meeting ID") == 1


def test_an_event_becomes_an_online_meeting_once(sandbox, calls):
    made = calls.create(Changes(description="Agenda", start=Moment(NINE), end=Moment(TEN))).event
    event = calls.update(made.id, meeting=True, subject="Online")
    assert event.meeting_url is not None
    assert event.description == "Agenda"
    sandbox.forget_requests()
    assert calls.update(made.id, meeting=True) == event
    assert UPDATE not in sandbox.requests().by_operation


ZOOM, OTHER = "https://zoom.example/1", "https://zoom.example/2"


@pytest.mark.parametrize(
    ("before", "sent", "after"),
    [
        ({}, {}, OTHER),
        ({"meeting_url": ZOOM}, {}, OTHER),
        ({"meeting_url": ZOOM, "location": "Room"}, {}, "Room"),
        ({"location": "Room"}, {}, "Room"),
        ({"meeting_url": ZOOM}, {"location": "Room"}, "Room"),
        ({"meeting_url": ZOOM}, {"location": ""}, ""),
    ],
)
def test_the_location_follows_the_meeting_url_where_it_was_that(calls, before, sent, after):
    made = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), **before)).event
    event = calls.update(made.id, meeting_url=OTHER, **sent)
    assert (event.meeting_url, event.location) == (OTHER, after)


def test_of_two_meetings_the_last_one_written_counts(calls):
    made = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting_url=ZOOM)).event
    teams = calls.update(made.id, meeting=True)
    assert teams.meeting_url.startswith("https://teams.microsoft.com/")
    assert teams.location == ""
    back = calls.update(made.id, meeting_url=OTHER)
    assert (back.meeting_url, back.location) == (OTHER, OTHER)
    assert calls.update(made.id, meeting=True).meeting_url == teams.meeting_url


def test_a_meta_id_is_set_and_the_properties_of_others_stay(calls):
    theirs = {"id": "String {66f5a359-4659-4830-9070-00047ec6ac6e} Name theirs", "value": "kept"}
    made = calls.post(singleValueExtendedProperties=[theirs])
    assert calls.update(made["id"], meta_id="m-9").meta_id == "m-9"
    assert calls.find("m-9").id == made["id"]
    expand = {"$expand": f"singleValueExtendedProperties($filter=id eq '{theirs['id']}')"}
    assert calls.stored(made["id"], **expand)["singleValueExtendedProperties"] == [theirs]
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
    later = calls.update(made.id, start=Day("2026-12-04"))
    assert (later.start, later.end) == (days.start + DAY, longer.end)
    timed = calls.update(made.id, start=Moment(NINE), end=Moment(TEN))
    assert (timed.all_day, timed.start, timed.end) == (False, NINE, TEN)
    with pytest.raises(EventRefused):
        calls.update(made.id, end=Day("2026-12-04"))


def test_days_written_in_another_zone_are_moved_by_one_edge(new):
    calls = new(time_zone="Asia/Tokyo")
    when = [{"dateTime": f"2026-12-0{day}T00:00:00", "timeZone": "UTC"} for day in (3, 4)]
    made = calls.post(isAllDay=True, start=when[0], end=when[1])
    event = calls.update(made["id"], end=Day("2026-12-05"))
    assert (event.start, event.end) == (START - 9 * HOUR, START + 2 * DAY - 9 * HOUR)


def test_one_edge_of_a_timed_event_moves_alone(calls):
    made = calls.create(TIMED).event
    event = calls.update(made.id, end=Moment(TEN + HOUR))
    assert (event.start, event.end) == (NINE, TEN + HOUR)
    assert not event.all_day


@pytest.mark.parametrize(
    ("zone", "kept"), [(None, "Eastern Standard Time"), ("Asia/Tokyo", "Tokyo Standard Time")]
)
def test_an_event_keeps_its_zone_by_default(calls, zone, kept):
    new_york = "America/New_York"
    made = calls.create(Changes(start=Moment(NINE, new_york), end=Moment(TEN, new_york))).event
    event = calls.update(made.id, start=Moment(NINE + HOUR, zone), end=Moment(TEN + HOUR, zone))
    assert (event.start, event.end) == (NINE + HOUR, TEN + HOUR)
    assert calls.stored(made.id)["originalStartTimeZone"] == kept


def test_a_series_that_is_moved_follows_the_clock_of_its_zone(new):
    calls = new(time_zone="America/New_York")
    weekly = {"type": "weekly", "interval": 1, "daysOfWeek": ["wednesday"], "firstDayOfWeek": "sunday"}
    when = [
        {"dateTime": f"2026-10-28T{hour}:00:00", "timeZone": "Eastern Standard Time"} for hour in ("09", "10")
    ]
    made = calls.post(
        start=when[0],
        end=when[1],
        recurrence={
            "pattern": weekly,
            "range": {"type": "endDate", "startDate": "2026-10-28", "endDate": "2026-11-12"},
        },
    )
    moved = instant("2026-10-28T11:00:00-04:00")
    calls.update(made["id"], start=Moment(moved), end=Moment(moved + HOUR))
    found = calls.listed(moved - DAY, moved + 21 * DAY)
    new_york = ZoneInfo("America/New_York")
    hours = [datetime.fromtimestamp(event.start / 1000, new_york).hour for event in found]
    assert hours == [11, 11, 11]
    assert found[1].start - found[0].start == 7 * DAY + HOUR
