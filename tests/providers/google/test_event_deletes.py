"""Events deleted from Google Calendar: one, an occurrence or a series."""

from __future__ import annotations

import pytest

from providers.errors import EventNotFound
from providers.timestamps import DAY
from tests.providers.event_calls import MEETING, START, TIMED
from tests.providers.google.google_calls import DELETE, NO_EVENT, TEAM


def test_a_deleted_event_is_gone_and_cannot_be_deleted_twice(calls):
    for calendar in ("primary", TEAM):
        made = calls.create(TIMED, calendar).event
        calls.delete(made.id, calendar)
        with pytest.raises(EventNotFound):
            calls.event(made.id, calendar)
        with pytest.raises(EventNotFound):
            calls.delete(made.id, calendar)


@pytest.mark.parametrize("fault", [{"body": "reset"}, {"status": 503}, {"status": 429}], ids=str)
def test_delete_with_lost_answer_succeeds(sandbox, calls, fault):
    made = calls.create(TIMED).event
    sandbox.fault(operation=DELETE, times=1, **fault)
    calls.delete(made.id)
    assert sandbox.requests().by_operation[DELETE] == 2
    assert calls.listed() == []


def test_an_event_that_never_was_has_not_been_deleted_by_trying_twice(sandbox, calls):
    sandbox.fault(operation=DELETE, status=503, times=1)
    with pytest.raises(EventNotFound):
        calls.delete(NO_EVENT)
    assert sandbox.requests().by_operation[DELETE] == 2


def test_an_occurrence_is_deleted_alone_and_a_series_whole(new):
    calls = new(MEETING | {"recurrence": "RRULE:FREQ=DAILY;COUNT=3"})
    week = {"start": START, "end": START + 7 * DAY}
    first, second, third = calls.listed(**week)
    calls.delete(second.id)
    calls.update(third.id, subject="By itself")
    assert [event.id for event in calls.listed(**week)] == [first.id, third.id]
    calls.delete(first.original["recurringEventId"])
    assert calls.listed(**week) == []
