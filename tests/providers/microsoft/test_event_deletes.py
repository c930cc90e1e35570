"""Events of Microsoft 365 over a socket: deleted, once."""

from __future__ import annotations

import pytest

from providers.errors import EventNotFound
from providers.timestamps import DAY
from tests.providers.event_calls import MEETING, START, TIMED
from tests.providers.microsoft.graph_calls import DELETE, TEAM


def test_a_deleted_event_is_gone_and_cannot_be_deleted_twice(calls):
    for calendar in ("primary", TEAM):
        made = calls.create(TIMED, calendar).event
        calls.delete(made.id, calendar)
        with pytest.raises(EventNotFound):
            calls.event(made.id, calendar)
        with pytest.raises(EventNotFound):
            calls.delete(made.id, calendar)


def test_delete_with_lost_answer_succeeds(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.fault(operation=DELETE, body="reset", times=1)
    calls.delete(made.id)
    assert sandbox.requests().by_operation[DELETE] == 2
    assert calls.listed() == []


def test_an_occurrence_is_deleted_alone_and_a_series_whole(new):
    calls = new(MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=3"})
    week = {"start": START, "end": START + 7 * DAY}
    first, second, third = calls.listed(**week)
    calls.delete(second.id)
    assert [event.id for event in calls.listed(**week)] == [first.id, third.id]
    calls.delete(first.original["seriesMasterId"])
    assert calls.listed(**week) == []
