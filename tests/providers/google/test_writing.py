"""The JSON written to Google."""

from __future__ import annotations

from typing import Any

import pytest

from providers.events import Changes, Day, Draft, Moment
from providers.google import parse_events, writing
from providers.timestamps import instant

NOON = instant("2026-12-03T17:00:00Z")
HOUR = 3_600_000
NEW_YORK = "America/New_York"
KEY = "0" * 64
MEET, ZOOM, OTHER = "https://meet.google.com/a-b-c", "https://zoom.example/1", "https://zoom.example/2"
TIMED: dict[str, Any] = {
    "id": "abcde1",
    "etag": '"1"',
    "start": {"dateTime": "2026-12-03T12:00:00-05:00", "timeZone": NEW_YORK},
    "end": {"dateTime": "2026-12-03T13:00:00-05:00", "timeZone": NEW_YORK},
}
AT_ZOOM = TIMED | {"location": ZOOM, "extendedProperties": {"private": {"meetingUrl": ZOOM}}}
AT_MEET = TIMED | {"hangoutLink": MEET}


def new(id: str | None = None, **content: Any) -> Any:
    edges = {"start": Moment(NOON), "end": Moment(NOON + HOUR)}
    return writing.create_payload(Draft(Changes(**(edges | content)), KEY, "f" * 64, "now", id=id), "r-1")


def changed(known: Any = TIMED, **changes: Any) -> Any:
    return writing.update_payload(Changes(**changes), known, "r-1")


def meet(request_id: str) -> dict[str, Any]:
    return {
        "createRequest": {"requestId": request_id, "conferenceSolutionKey": {"type": "hangoutsMeet"}},
    }


def test_new_event_has_only_the_requested_fields():
    assert new() == {
        "id": KEY,
        "status": "confirmed",
        "start": {"dateTime": "2026-12-03T17:00:00.000Z", "timeZone": "UTC"},
        "end": {"dateTime": "2026-12-03T18:00:00.000Z", "timeZone": "UTC"},
        "extendedProperties": {"private": {"almanacRequest": "f" * 64 + ".now"}},
    }


@pytest.mark.parametrize(("tombstone", "sequence"), [({"id": KEY, "sequence": 3}, 3), ({"id": KEY}, 0)])
def test_a_restored_event_continues_the_sequence(tombstone, sequence):
    """https://developers.google.com/workspace/calendar/api/v3/reference/events#sequence"""
    body = new(subject="Lunch")
    assert writing.restore_payload(body, tombstone) == body | {"sequence": sequence}


def test_everything_of_a_new_event():
    written = new(
        id="chosen0",
        subject="Lunch",
        description="Hungry?",
        location="",
        start=Day("2026-12-03"),
        end=Day("2026-12-04"),
        attendees=("a@x.org", "A@X.org", "b@x.org"),
        meeting=True,
        meta_id="m-1",
        notify=True,
    )
    assert written == {
        "id": "chosen0",
        "status": "confirmed",
        "summary": "Lunch",
        "description": "Hungry?",
        "location": "",
        "start": {"date": "2026-12-03"},
        "end": {"date": "2026-12-04"},
        "attendees": [{"email": "a@x.org"}, {"email": "b@x.org"}],
        "conferenceData": meet("r-1"),
        "extendedProperties": {"private": {"metaId": "m-1", "almanacRequest": "f" * 64 + ".now"}},
    }


@pytest.mark.parametrize(("location", "written"), [(None, ZOOM), ("Room", "Room"), ("", "")])
def test_the_url_of_a_meeting_is_its_location_when_none_is_given(location, written):
    body = new(meeting_url=ZOOM, location=location)
    assert body["location"] == written
    assert body["extendedProperties"]["private"][parse_events.MEETING_URL] == ZOOM
    assert "conferenceData" not in body


def test_a_moment_is_an_instant_and_the_zone_to_keep_it_in():
    body = new(start=Moment(NOON + 1, NEW_YORK))
    assert body["start"] == {"dateTime": "2026-12-03T17:00:00.001Z", "timeZone": NEW_YORK}


@pytest.mark.parametrize(
    ("sent", "written"),
    [
        ({}, {}),
        ({"notify": True}, {}),
        ({"subject": ""}, {"summary": ""}),
        ({"description": "d"}, {"description": "d"}),
        ({"location": ""}, {"location": ""}),
        ({"meta_id": "m"}, {"extendedProperties": {"private": {"metaId": "m"}}}),
        ({"attendees": ()}, {"attendees": []}),
    ],
    ids=str,
)
def test_a_change_is_what_was_sent_and_no_more(sent, written):
    assert changed(**sent) == written


def test_start_and_end_are_written_with_time_or_date():
    assert changed(start=Moment(NOON)) == {"start": {"date": None, "dateTime": "2026-12-03T17:00:00.000Z"}}
    assert changed(end=Moment(NOON, NEW_YORK)) == {
        "end": {"date": None, "dateTime": "2026-12-03T17:00:00.000Z", "timeZone": NEW_YORK}
    }
    assert changed(start=Day("2026-12-03"), end=Day("2026-12-04")) == {
        "start": {"date": "2026-12-03", "dateTime": None, "timeZone": None},
        "end": {"date": "2026-12-04", "dateTime": None, "timeZone": None},
    }


def test_kept_guests_keep_their_entry_in_the_new_order():
    bob = {"email": "Bob@x.org", "responseStatus": "accepted", "optional": True}
    known = TIMED | {"attendees": [{"email": "eve@x.org"}, bob, {"displayName": "Nobody"}]}
    assert changed(known, attendees=("new@x.org", "BOB@X.org", "New@x.org"))["attendees"] == [
        {"email": "new@x.org"},
        bob,
    ]


@pytest.mark.parametrize(
    ("known", "sent", "written"),
    [
        (TIMED, {"meeting": True}, {"conferenceData": meet("r-1")}),
        (AT_MEET, {"meeting": True}, {}),
        (
            TIMED | {"conferenceData": {"createRequest": {"status": {"statusCode": "failure"}}}},
            {"meeting": True},
            {"conferenceData": meet("r-1")},
        ),
        (
            TIMED | {"conferenceData": {"createRequest": {"status": {"statusCode": "pending"}}}},
            {"meeting": True},
            {},
        ),
        (
            AT_ZOOM,
            {"meeting": True},
            {
                "conferenceData": meet("r-1"),
                "location": "",
                "extendedProperties": {"private": {"meetingUrl": None}},
            },
        ),
        (
            AT_ZOOM | {"location": "Room"},
            {"meeting": True, "meta_id": "m"},
            {
                "conferenceData": meet("r-1"),
                "extendedProperties": {"private": {"metaId": "m", "meetingUrl": None}},
            },
        ),
        (
            AT_ZOOM,
            {"meeting_url": OTHER},
            {"location": OTHER, "extendedProperties": {"private": {"meetingUrl": OTHER}}},
        ),
        (
            AT_ZOOM,
            {"meeting_url": OTHER, "location": "Room"},
            {"location": "Room", "extendedProperties": {"private": {"meetingUrl": OTHER}}},
        ),
        (
            TIMED | {"location": "Room"},
            {"meeting_url": OTHER},
            {"extendedProperties": {"private": {"meetingUrl": OTHER}}},
        ),
        (
            AT_MEET,
            {"meeting_url": OTHER},
            {"location": OTHER, "extendedProperties": {"private": {"meetingUrl": OTHER}}},
        ),
    ],
    ids=str,
)
def test_where_it_is_held_online(known, sent, written):
    assert changed(known, **sent) == written


@pytest.mark.parametrize(
    ("sent", "needed"),
    [
        ({"attendees": ()}, True),
        ({"meeting": True}, True),
        ({"meeting_url": ZOOM}, True),
        ({"subject": "x", "location": "y", "start": Day("2026-12-03"), "meta_id": "m"}, False),
        ({}, False),
    ],
    ids=str,
)
def test_what_depends_on_the_event_needs_it(sent, needed):
    assert writing.needs_the_event(Changes(**sent)) is needed


@pytest.mark.parametrize(
    ("notify", "query"), [(None, {}), (True, {"sendUpdates": "all"}), (False, {"sendUpdates": "none"})]
)
def test_send_updates_follows_notify(notify, query):
    assert writing.send_updates(notify) == query
