"""Events created in Google Calendar: once for each key, or rejected."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest

from providers.errors import (
    EventExists,
    EventNotFound,
    EventRefused,
    EventUnreadable,
    Unavailable,
)
from providers.events import Changes, CreateResult, Day
from providers.google import parse_events
from tests.providers.event_calls import TIMED
from tests.providers.google.google_calls import (
    GET,
    GOOD,
    INSERT,
    LIST,
    PATCH,
    TEAM,
    scripted,
)


def test_days_are_not_written_while_the_zone_cannot_be_read(sandbox, new):
    calls = new(left=10)
    made = calls.create(TIMED).event
    sandbox.fault(operation=LIST, status=503)
    sandbox.forget_requests()
    with pytest.raises(Unavailable) as raised:
        calls.create(Changes(start=Day("2026-12-03"), end=Day("2026-12-04")))
    assert raised.value.operation == "calendar.events.insert"
    with pytest.raises(Unavailable):
        calls.update(made.id, start=Day("2026-12-03"), end=Day("2026-12-04"))
    assert set(sandbox.requests().by_operation) == {LIST}


def test_event_has_id_of_its_key_and_request_fingerprint(calls):
    made = calls.create(TIMED, key="k").event
    assert made.id == sha256(b"k").hexdigest()
    mark = made.original["extendedProperties"]["private"][parse_events.REQUEST]
    assert mark.partition(".")[0] == sha256(b"a").hexdigest()


def test_an_id_that_others_have_used_is_taken(calls):
    made = calls.post(id="chosen0")
    with pytest.raises(EventExists):
        calls.create(TIMED, id="chosen0")
    assert calls.stored("chosen0") == made


def test_an_id_that_is_taken_by_what_cannot_be_seen_is_taken(sandbox, calls):
    sandbox.fault(operation=INSERT, status=409, reason="duplicate")
    with pytest.raises(EventExists):
        calls.create(TIMED)


def test_ids_are_taken_in_one_calendar_alone(calls):
    assert calls.create(TIMED, key="k").made
    assert calls.create(TIMED, TEAM, key="k", fingerprint="another").made


@pytest.mark.parametrize("own", ["abcde", "0123456789abcdefghijklmnopqrstuv", "a" * 1024])
def test_an_id_that_google_takes_is_taken(calls, own):
    event = calls.create(TIMED, id=own).event
    assert event.id == own
    assert calls.update(own, subject="x").subject == "x"
    calls.delete(own)
    with pytest.raises(EventNotFound):
        calls.event(own)


def test_create_with_all_answers_lost_is_found_by_next_try(sandbox, new):
    calls = new(left=10)
    sandbox.fault(operation=INSERT, body="reset")
    sandbox.fault(operation=GET, body="reset")
    with pytest.raises(Unavailable):
        calls.create(TIMED, key="k")
    sandbox.clear_faults()
    (event,) = calls.listed()
    assert calls.create(TIMED, key="k") == CreateResult(event, made=False)


def test_of_creates_at_once_one_has_made_the_event(calls):
    with ThreadPoolExecutor(6) as pool:
        outcomes = list(pool.map(lambda _: calls.create(TIMED, key="k"), range(6)))
    assert [outcome.made for outcome in outcomes].count(True) == 1
    assert len({outcome.event.id for outcome in outcomes}) == 1
    assert len(calls.listed()) == 1


def test_a_conflict_is_tried_again(sandbox, calls):
    sandbox.fault(operation=INSERT, status=409, reason="conflict", times=1)
    assert calls.create(TIMED).made


REFUSALS = [
    (400, "timeRangeEmpty", "ends before it starts"),
    (400, "required", "misses something"),
    (400, "invalid", "a value"),
    (400, "invalidParameter", "a value"),
    (400, "badRequest", "this event"),
    (400, "parseError", "this event"),
    (400, "notYetInvented", "this event"),
    (413, "requestTooLarge", "this event"),
]


@pytest.mark.parametrize(("status", "reason", "words"), REFUSALS)
def test_what_google_finds_fault_with_is_refused(sandbox, calls, is_fit_for_people, status, reason, words):
    made = calls.create(TIMED).event
    for operation, call in (
        (INSERT, lambda: calls.create(TIMED)),
        (PATCH, lambda: calls.update(made.id, subject="x")),
    ):
        sandbox.fault(operation=operation, status=status, reason=reason)
        with pytest.raises(EventRefused, match=words) as raised:
            call()
        is_fit_for_people(raised.value)


@pytest.mark.parametrize("answer", [b"<html>", {}, {"id": None}, [], GOOD | {"start": 7}], ids=str)
def test_write_answered_without_event_is_unreadable(script, scripted_account, is_fit_for_people, answer):
    script.say(200, answer)
    calls = scripted(script, scripted_account)
    for call in (lambda: calls.create(TIMED), lambda: calls.update("abcde1", subject="x")):
        with pytest.raises(EventUnreadable) as raised:
            call()
        is_fit_for_people(raised.value)
    assert [each["method"] for each in script.requests] == ["POST", "PATCH"]
