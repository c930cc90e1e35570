"""Events of Microsoft 365 over a socket: a change writes only the given fields."""

from __future__ import annotations

import json

import pytest

from providers.errors import EventNotFound, EventUnreadable, Unavailable
from providers.events import Changes, Day, Moment
from providers.microsoft import parse
from providers.timestamps import DAY
from tests.providers.event_calls import EVERYTHING, HOUR, NINE, START, TEN, TIMED
from tests.providers.microsoft.graph_calls import GET, GOOD, UPDATE, scripted


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


ZOOM, OTHER = "https://zoom.example/1", "https://zoom.example/2"


def test_days_written_in_another_zone_are_moved_by_one_edge(new):
    calls = new(time_zone="Asia/Tokyo")
    when = [{"dateTime": f"2026-12-0{day}T00:00:00", "timeZone": "UTC"} for day in (3, 4)]
    made = calls.post(isAllDay=True, start=when[0], end=when[1])
    event = calls.update(made["id"], end=Day("2026-12-05"))
    assert (event.start, event.end) == (START - 9 * HOUR, START + 2 * DAY - 9 * HOUR)


# Fields of other applications, and a property of another property set.
FOREIGN = {
    "categories": ["Red category"],
    "importance": "high",
    "hideAttendees": True,
    "allowNewTimeProposals": False,
    "responseRequested": False,
}
OTHERS = "String {00000000-0000-0000-0000-00000000c042} Name crm"
GUEST = {"emailAddress": {"address": "bob@example.com", "name": "Robert"}, "type": "optional"}
HTML = "<html><body><p>Agenda: <b>one</b></p></body></html>"


@pytest.mark.parametrize("described", [True, False])
def test_a_change_of_every_field_keeps_those_of_other_applications(calls, described):
    accepted = {"response": "accepted", "time": "2026-11-27T00:00:00Z"}
    before = calls.post(
        **FOREIGN,
        attendees=[GUEST | {"status": accepted}],
        body={"contentType": "html", "content": HTML},
        singleValueExtendedProperties=[{"id": OTHERS, "value": "42"}],
        isOnlineMeeting=True,
        onlineMeetingProvider="teamsForBusiness",
    )
    changes = EVERYTHING if described else {n: v for n, v in EVERYTHING.items() if n != "description"}

    event = calls.update(before["id"], **changes)

    expand = {"$expand": f"singleValueExtendedProperties($filter=id eq '{OTHERS}')"}
    after = calls.stored(event.id, **expand)
    for name in (*FOREIGN, "onlineMeeting", "isOnlineMeeting"):
        assert after[name] == before[name]
    assert after["singleValueExtendedProperties"] == [{"id": OTHERS, "value": "42"}]
    assert after["attendees"][0]["status"] == accepted
    assert after["attendees"][0]["type"] == "optional"
    if not described:
        assert after["body"] == calls.stored(event.id)["body"] == before["body"]


def test_no_time_is_derived_from_one_in_an_unknown_zone(script, scripted_account):
    """A list shows the time in another zone; a series that moves would be written with that guess."""
    weekly = {
        "pattern": {"type": "weekly", "interval": 1, "daysOfWeek": ["thursday"]},
        "range": {"type": "noEnd", "startDate": "2026-12-03"},
    }
    edges = {edge: GOOD[edge] | {"timeZone": "Customized Time Zone"} for edge in ("start", "end")}
    script.say(200, GOOD | edges | {"type": "seriesMaster", "recurrence": weekly})
    with pytest.raises(parse.UnknownZone):
        scripted(script, scripted_account).update("AAMk1", start=Day("2026-12-03"))
    assert {each["method"] for each in script.requests} == {"GET"}
