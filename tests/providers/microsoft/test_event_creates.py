"""Events of Microsoft 365 over a socket: repeated creates make one event."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from providers.errors import EventExists, EventUnreadable, Unavailable
from providers.events import Changes, CreateResult, Day, Moment
from providers.microsoft import properties
from tests.providers.event_calls import NINE, TEN, TIMED
from tests.providers.microsoft.graph_calls import GET, GOOD, INSERT, SETTINGS, TEAM, scripted


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


def test_create_refused_as_its_own_duplicate_succeeds(script, scripted_account):
    """The first attempt was executed without an answer; Graph rejects the second as a duplicate."""
    script.say(503)
    script.say(409, USED)
    script.act(lambda handler: posted_event(script, handler))

    assert scripted(script, scripted_account).create(TIMED).made


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
