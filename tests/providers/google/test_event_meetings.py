"""Online meetings of Google Calendar, and the URLs of external meetings."""

from __future__ import annotations

import time

import pytest

from providers.events import Changes, Day, Moment
from providers.google import events as google_events
from tests.providers.event_calls import NINE, TEN
from tests.providers.google.google_calls import GET, INSERT


@pytest.mark.parametrize("looks", [1, 2])
def test_a_meeting_that_google_is_still_making_is_waited_for(sandbox, calls, looks):
    sandbox.fault(operation=INSERT, body="pending", times=1)
    sandbox.fault(operation=GET, body="pending", times=looks - 1)
    created = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting=True))
    assert created.made
    assert created.event.meeting_url is not None
    assert sandbox.requests().by_operation == {INSERT: 1, GET: looks}


@pytest.mark.parametrize("fault", [{"body": "pending"}, {"status": 503}, {"status": 404}], ids=str)
def test_a_meeting_that_stays_in_the_making_fails_nothing(sandbox, new, monkeypatch, fault):
    monkeypatch.setattr(google_events, "MEETING_SECONDS", 0.7)
    calls = new(left=60)
    sandbox.fault(operation=INSERT, body="pending")
    sandbox.fault(operation=GET, **fault)
    began = time.monotonic()
    created = calls.create(Changes(subject="x", start=Moment(NINE), end=Moment(TEN), meeting=True))
    assert time.monotonic() - began < 20
    assert (created.made, created.event.subject, created.event.meeting_url) == (True, "x", None)
    sandbox.clear_faults()
    assert calls.event(created.event.id).meeting_url is not None


def test_an_online_meeting_stays_when_the_event_is_changed(calls):
    made = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting=True)).event
    for changes in (
        {"subject": "x"},
        {"attendees": ("bob@example.com",)},
        {"start": Day("2026-12-03"), "end": Day("2026-12-04")},
        {"meta_id": "m"},
    ):
        assert calls.update(made.id, **changes).meeting_url == made.meeting_url


ZOOM, OTHER = "https://zoom.example/1", "https://zoom.example/2"
