"""Events of Microsoft 365 over a socket: repeated creates make one event."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from providers.errors import EventExists, EventUnreadable, Unavailable
from providers.events import Changes, CreateResult, Day, Moment, ResponseStatus
from providers.microsoft import properties
from tests.providers.event_calls import NINE, TEN, TIMED
from tests.providers.microsoft.graph_calls import GET, GOOD, INSERT, SETTINGS, TEAM, scripted


def test_everything_of_a_draft_is_created_and_read_back(calls):
    content = Changes(
        subject="Übersicht",
        description="One\n\n two <b> & three",
        location="Room 1",
        start=Moment(NINE, "America/New_York"),
        end=Moment(TEN, "Europe/Berlin"),
        attendees=("Bob@Example.com", "alice@contoso.com", "bob@example.com"),
        meta_id="m-1",
    )
    created = calls.create(content, TEAM, id="chosen")
    event = created.event
    assert created.made
    assert (event.subject, event.description, event.location) == (
        content.subject,
        content.description,
        content.location,
    )
    assert (event.start, event.end, event.meta_id, event.meeting_url) == (NINE, TEN, "m-1", None)
    assert [(each.email, each.is_self, each.response_status) for each in event.attendees] == [
        ("Bob@Example.com", False, ResponseStatus.NEEDS_ACTION),
        ("alice@contoso.com", True, ResponseStatus.ACCEPTED),
    ]
    stored = calls.stored(event.id)
    assert stored["originalStartTimeZone"] == "Eastern Standard Time"
    assert stored["originalEndTimeZone"] == "W. Europe Standard Time"
    assert event.id != "chosen"
    assert calls.event(event.id, TEAM) == event


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "UTC"])
def test_days_are_created_as_the_days_of_the_mailbox(new, zone):
    calls = new(time_zone=zone)
    event = calls.create(Changes(start=Day("2026-12-03"), end=Day("2026-12-05"))).event
    midnights = [datetime(2026, 12, day, tzinfo=ZoneInfo(zone)) for day in (3, 5)]
    assert [event.start, event.end] == [int(each.timestamp() * 1000) for each in midnights]
    assert event.all_day
    stored = calls.stored(event.id)
    assert stored["start"]["dateTime"] == "2026-12-03T00:00:00.0000000"
    assert stored["originalStartTimeZone"] == calls.raw.get("me/mailboxSettings/timeZone")["value"]


def test_days_are_not_created_while_the_zone_cannot_be_read(sandbox, new):
    calls = new(left=10)
    sandbox.fault(operation=SETTINGS, status=503)
    with pytest.raises(Unavailable):
        calls.create(Changes(start=Day("2026-12-03"), end=Day("2026-12-04")))
    assert INSERT not in sandbox.requests().by_operation


def test_an_event_of_the_same_meta_id_made_by_others_exists(calls):
    calls.post(singleValueExtendedProperties=[{"id": properties.META_ID, "value": "m-1"}])
    with pytest.raises(EventExists):
        calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meta_id="m-1"))


def test_a_deleted_event_is_created_again_each_time(calls):
    ids = set()
    for _ in range(4):
        created = calls.create(TIMED, key="k")
        assert created.made
        assert calls.create(TIMED, key="k") == CreateResult(created.event, made=False)
        calls.delete(created.event.id)
        ids.add(created.event.id)
    assert len(ids) == 4
    assert calls.listed() == []


def test_a_meta_id_is_free_again_when_its_event_was_deleted(calls):
    content = Changes(start=Moment(NINE), end=Moment(TEN), meta_id="m-1")
    calls.delete(calls.create(content, key="k").event.id)
    assert calls.create(content, key="k").made


def older(fingerprint: str) -> dict[str, Any]:
    mark = {"id": properties.REQUEST, "value": f"{sha256(fingerprint.encode()).hexdigest()}.0123456789abcdef"}
    return GOOD | {"singleValueExtendedProperties": [mark]}


def test_an_event_that_was_there_before_is_not_taken_for_a_new_one(script, scripted_account):
    calls = scripted(script, scripted_account)
    script.say(201, GOOD)
    script.say(200, older("a"))
    assert not calls.create(TIMED).made
    script.answers.clear()
    script.say(201, GOOD)
    script.say(200, older("another"))
    with pytest.raises(EventExists):
        calls.create(TIMED)


@pytest.mark.parametrize("status", [400, 409])
@pytest.mark.parametrize("extra", [{}, {"@event.existingEventId": "AAMk1"}])
def test_used_transaction_is_looked_up_by_the_returned_event_id(script, scripted_account, status, extra):
    calls = scripted(script, scripted_account)
    script.say(status, {"error": {"code": "ErrorDuplicateTransactionId", "message": "used", **extra}})
    script.say(200, older("a"))
    if extra:
        assert calls.create(TIMED) == CreateResult(calls.event("AAMk1"), made=False)
        assert script.requests[1]["path"].startswith("/me/events/AAMk1?")
    else:
        with pytest.raises(EventExists):
            calls.create(TIMED)


def test_create_refused_as_its_own_duplicate_succeeds(script, scripted_account):
    """The first attempt was executed without an answer; Graph rejects the second as a duplicate."""

    def look_up(handler: Any) -> None:
        posted = json.loads(script.requests[1]["body"])
        event = GOOD | {"singleValueExtendedProperties": posted["singleValueExtendedProperties"]}
        content = json.dumps(event).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    extra = {"code": "ErrorDuplicateTransactionId", "@event.existingEventId": "AAMk1"}
    script.say(503)
    script.say(409, {"error": extra})
    script.act(look_up)
    assert scripted(script, scripted_account).create(TIMED).made


CANCELLED = GOOD | {"isCancelled": True}
USED = {"error": {"code": "ErrorDuplicateTransactionId", "@event.existingEventId": "AAMk1"}}


def posted_event(script: Any, handler: Any) -> None:
    """Answer with the event of the last POST, in the form of a read."""
    posted = [json.loads(each["body"]) for each in script.requests if each["method"] == "POST"][-1]
    kept = {"id": "AAMk2", "singleValueExtendedProperties": posted["singleValueExtendedProperties"]}
    content = json.dumps(GOOD | kept).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


@pytest.mark.parametrize("first", [(400, USED), (409, USED), (201, CANCELLED)], ids=["400", "409", "201"])
def test_a_cancelled_event_of_the_transaction_is_created_again(script, scripted_account, first):
    script.say(*first)
    script.say(200, CANCELLED)
    script.say(201, GOOD | {"id": "AAMk2"})
    script.act(lambda handler: posted_event(script, handler))
    created = scripted(script, scripted_account).create(TIMED)
    assert (created.event.id, created.made) == ("AAMk2", True)
    used = [json.loads(each["body"])["transactionId"] for each in script.requests if each["method"] == "POST"]
    assert len(set(used)) == 2


def test_a_create_is_not_repeated_while_its_event_cannot_be_found(script, scripted_account):
    """A second event must not be created only because the first is not visible yet."""
    script.say(201, GOOD)
    script.say(404, {"error": {"code": "ErrorItemNotFound", "message": "not there"}})
    with pytest.raises(EventUnreadable):
        scripted(script, scripted_account).create(TIMED)
    assert [each["method"] for each in script.requests] == ["POST", "GET"]


def test_event_of_the_key_in_another_calendar_raises_exists(script, scripted_account):
    script.say(409, USED)
    script.say(200, older("a") | {"calendar": {"id": TEAM, "isDefaultCalendar": False}})
    script.say(200, {"responses": [{"id": "view", "status": 200, "body": {"value": []}}]})
    with pytest.raises(EventExists):
        scripted(script, scripted_account).create(TIMED)
    assert [each["method"] for each in script.requests] == ["POST", "GET", "POST"]
    assert script.requests[-1]["path"] == "/$batch"


@pytest.mark.parametrize("answer", [b"<html>", {}, {"id": None}, []])
def test_create_answered_without_event_is_unreadable(script, scripted_account, answer):
    script.say(201, answer)
    with pytest.raises(EventUnreadable):
        scripted(script, scripted_account).create(TIMED)
    assert [each["method"] for each in script.requests] == ["POST"]


def test_a_create_that_cannot_be_read_back_was_done(sandbox, new, is_fit_for_people):
    calls = new(left=10)
    sandbox.fault(operation=GET, status=503)
    with pytest.raises(EventUnreadable) as raised:
        calls.create(TIMED)
    is_fit_for_people(raised.value)
    sandbox.clear_faults()
    assert [event.subject for event in calls.listed()] == ["Review"]


def test_online_meeting_has_a_link_and_a_clean_description(calls):
    content = Changes(description="Agenda:\n- one", start=Moment(NINE), end=Moment(TEN), meeting=True)
    event = calls.create(content).event
    assert event.meeting_url == calls.stored(event.id)["onlineMeeting"]["joinUrl"]
    assert event.description == "Agenda:\n- one"
    assert "Meeting ID" in event.original["body"]["content"]
    bare = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting=True)).event
    assert bare.description == ""
