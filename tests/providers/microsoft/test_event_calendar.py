"""Events of Microsoft 365 over a socket: an id finds an event only through its own calendar."""

from __future__ import annotations

import pytest

from providers.errors import EventNotFound
from providers.timestamps import DAY
from tests.providers.event_calls import MEETING, NINE, START, TIMED
from tests.providers.microsoft.graph_calls import (
    BATCH,
    DELETE,
    GET,
    GOOD,
    MAIN,
    TEAM,
    UPDATE,
    VIEW,
    scripted,
)

SERIES = MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=3"}
WEEK = {"start": START, "end": START + 7 * DAY}


@pytest.mark.parametrize("calendar", ["primary", MAIN, TEAM])
def test_the_calendar_is_checked_without_a_call_more_than_the_read(sandbox, calls, calendar):
    made = calls.create(TIMED, calendar).event
    for act, made_calls in (
        (lambda: calls.event(made.id, calendar), {GET: 1}),
        (lambda: calls.update(made.id, calendar, subject="Changed"), {GET: 2, UPDATE: 1}),
        (lambda: calls.delete(made.id, calendar), {GET: 1, DELETE: 1}),
    ):
        sandbox.forget_requests()
        act()
        assert sandbox.requests().by_operation == made_calls


def test_verified_event_is_deleted_with_one_call(sandbox, calls):
    made = calls.create(TIMED, TEAM).event
    sandbox.forget_requests()
    calls.provider.delete_event(
        calls.account, TEAM, made.id, notify=None, verified=True, deadline=calls.deadline
    )
    assert sandbox.requests().by_operation == {DELETE: 1}
    assert calls.listed(calendar=TEAM) == []


def test_a_series_and_its_occurrences_belong_to_one_calendar(new):
    calls = new(SERIES | {"calendarId": TEAM})
    first, *_ = calls.listed(calendar=TEAM, **WEEK)
    for event_id in (first.id, first.original["seriesMasterId"]):
        assert calls.event(event_id, TEAM).start == NINE
        with pytest.raises(EventNotFound):
            calls.delete(event_id)
    assert len(calls.listed(calendar=TEAM, **WEEK)) == 3


@pytest.mark.parametrize("named", [{}, {"calendar": None}, {"calendar": {"id": "AQMkAnotherSpelling="}}])
@pytest.mark.parametrize("listed", [GOOD, {"id": "AAMk1_day1", "seriesMasterId": GOOD["id"]}])
def test_event_with_unlisted_calendar_id_is_looked_up_in_a_view(script, scripted_account, named, listed):
    """Graph has answered calendar ids that are on no list: microsoft-graph-docs issue 6699."""
    unnamed = {name: value for name, value in GOOD.items() if name != "calendar"} | named
    script.say(200, unnamed)
    script.say(200, {"responses": [{"id": "view", "status": 200, "body": {"value": [listed]}}]})
    assert scripted(script, scripted_account).event(GOOD["id"], TEAM).id == GOOD["id"]
    assert len(script.requests) == 2


def test_an_event_that_is_not_in_that_calendar_either_is_not_found(script, scripted_account):
    script.say(200, GOOD | {"calendar": {"id": "AQMkAnotherSpelling="}})
    script.say(200, {"responses": [{"id": "view", "status": 200, "body": {"value": []}}]})
    with pytest.raises(EventNotFound):
        scripted(script, scripted_account).event(GOOD["id"], TEAM)


def test_event_of_another_calendar_is_not_found_by_one_view(sandbox, calls):
    made = calls.create(TIMED, TEAM).event
    sandbox.forget_requests()
    with pytest.raises(EventNotFound):
        calls.event(made.id)
    assert sandbox.requests().by_operation == {GET: 1, BATCH: 1, VIEW: 1}
