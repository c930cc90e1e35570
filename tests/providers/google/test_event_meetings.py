"""Online meetings of Google Calendar, and the URLs of external meetings."""

from __future__ import annotations

import time

import pytest

from providers.events import Changes, Day, Moment
from providers.google import events as google_events
from tests.providers.event_calls import NINE, TEN, TIMED
from tests.providers.google.google_calls import GET, INSERT, PATCH


def test_an_online_meeting_has_a_link(sandbox, calls):
    event = calls.create(Changes(start=Moment(NINE), end=Moment(TEN), meeting=True)).event
    assert (event.meeting_url or "").startswith("https://meet.google.com/")
    assert event.meeting_url == calls.stored(event.id)["hangoutLink"]
    assert sandbox.requests().by_operation == {INSERT: 1, GET: 1}


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


def test_an_event_becomes_an_online_meeting_once(sandbox, calls):
    made = calls.create(TIMED).event
    sandbox.fault(operation=PATCH, body="pending", times=1)
    event = calls.update(made.id, meeting=True, subject="Online")
    assert (event.meeting_url or "").startswith("https://meet.google.com/")
    assert event.subject == "Online"
    sandbox.forget_requests()
    assert calls.update(made.id, meeting=True) == event
    assert sandbox.requests().by_operation == {GET: 1}


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


@pytest.mark.parametrize(("location", "read"), [(None, ZOOM), ("Room", "Room"), ("", "")])
def test_external_meeting_url_is_the_location_if_none_is_set(calls, location, read):
    content = Changes(start=Moment(NINE), end=Moment(TEN), meeting_url=ZOOM, location=location)
    event = calls.create(content).event
    assert (event.meeting_url, event.location) == (ZOOM, read)
    assert calls.listed() == [event]


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
    meet = calls.update(made.id, meeting=True)
    assert (meet.meeting_url or "").startswith("https://meet.google.com/")
    assert meet.location == ""
    back = calls.update(made.id, meeting_url=OTHER)
    assert (back.meeting_url, back.location) == (OTHER, OTHER)
    assert calls.update(made.id, meeting=True).meeting_url == meet.meeting_url
