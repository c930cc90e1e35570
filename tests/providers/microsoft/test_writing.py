"""The JSON written to Graph."""

from __future__ import annotations

from typing import Any

import pytest

from providers.errors import EventRefused
from providers.events import Changes, Day, Draft, Guest, Moment
from providers.microsoft import properties, writing
from providers.timestamps import instant
from tests.providers.microsoft.test_body import HTML_BLOCK, JOIN, page

NOON = instant("2026-12-03T17:00:00Z")
HOUR = 3_600_000
NEW_YORK = "America/New_York"
TIMED = {
    "@odata.etag": 'W/"1"',
    "id": "AAMk1",
    "isAllDay": False,
    "isOnlineMeeting": False,
    "originalStartTimeZone": "Eastern Standard Time",
    "originalEndTimeZone": "tzone://Microsoft/Custom",
    "start": {"dateTime": "2026-12-03T17:00:00.0000000", "timeZone": "UTC"},
    "end": {"dateTime": "2026-12-03T18:00:00.0000000", "timeZone": "UTC"},
    "location": {"displayName": ""},
    "attendees": [],
}
DAYS = TIMED | {
    "isAllDay": True,
    "start": {"dateTime": "2026-12-03T00:00:00.0000000", "timeZone": "UTC"},
    "end": {"dateTime": "2026-12-05T00:00:00.0000000", "timeZone": "UTC"},
}
TEAMS = TIMED | {"isOnlineMeeting": True, "onlineMeeting": {"joinUrl": JOIN}}


def at(text: str, zone: str) -> dict[str, str]:
    return {"dateTime": text, "timeZone": zone}


def new(**content: Any) -> Any:
    edges = {"start": Moment(NOON), "end": Moment(NOON + HOUR)}
    draft = Draft(Changes(**(edges | content)), "0" * 64, "f" * 64, "now", id="chosen")
    return writing.create_payload(draft, "t-1", "Asia/Tokyo")


def changed(known: Any = TIMED, **changes: Any) -> Any:
    return writing.update_payload(Changes(**changes), known, "Asia/Tokyo")


def test_new_event_has_only_the_requested_fields():
    assert new() == {
        "transactionId": "t-1",
        "start": at("2026-12-03T17:00:00.000", "UTC"),
        "end": at("2026-12-03T18:00:00.000", "UTC"),
        "isAllDay": False,
        "singleValueExtendedProperties": [{"id": properties.REQUEST, "value": "f" * 64 + ".now"}],
    }


def test_everything_of_a_new_event():
    written = new(
        subject="Lunch",
        description="Hungry?",
        location="",
        start=Day("2026-12-03"),
        end=Day("2026-12-04"),
        attendees=("a@x.org", "A@X.org", "b@x.org"),
        meeting=True,
        meta_id="m-1",
    )
    assert written == {
        "transactionId": "t-1",
        "subject": "Lunch",
        "body": {"contentType": "text", "content": "Hungry?"},
        "location": {"displayName": ""},
        "start": at("2026-12-03T00:00:00", "Asia/Tokyo"),
        "end": at("2026-12-04T00:00:00", "Asia/Tokyo"),
        "isAllDay": True,
        "attendees": [
            {"type": "required", "emailAddress": {"address": "a@x.org"}},
            {"type": "required", "emailAddress": {"address": "b@x.org"}},
        ],
        "isOnlineMeeting": True,
        "onlineMeetingProvider": "teamsForBusiness",
        "singleValueExtendedProperties": [
            {"id": properties.META_ID, "value": "m-1"},
            {"id": properties.REQUEST, "value": "f" * 64 + ".now"},
        ],
    }


@pytest.mark.parametrize(("location", "place"), [(None, "https://z/1"), ("Room", "Room"), ("", "")])
def test_the_meeting_url_is_the_location_of_a_new_event_that_has_none(location, place):
    written = new(meeting_url="https://z/1", location=location)
    assert written["location"] == {"displayName": place}
    assert {"id": properties.MEETING_URL, "value": "https://z/1"} in written["singleValueExtendedProperties"]


@pytest.mark.parametrize(
    ("changes", "body"),
    [
        ({}, {}),
        ({"notify": True}, {}),
        ({"subject": ""}, {"subject": ""}),
        ({"description": "x"}, {"body": {"contentType": "text", "content": "x"}}),
        ({"location": "x"}, {"location": {"displayName": "x"}}),
        ({"attendees": ()}, {"attendees": []}),
        ({"meta_id": "m"}, {"singleValueExtendedProperties": [{"id": properties.META_ID, "value": "m"}]}),
        ({"meeting": True}, {"isOnlineMeeting": True, "onlineMeetingProvider": "teamsForBusiness"}),
        ({"start": Moment(NOON)}, {"start": at("2026-12-03T12:00:00.000", NEW_YORK)}),
        ({"end": Moment(NOON)}, {"end": at("2026-12-03T17:00:00.000", "UTC")}),
        ({"end": Moment(NOON, "Asia/Tokyo")}, {"end": at("2026-12-04T02:00:00.000", "Asia/Tokyo")}),
        ({"start": Day("2026-12-03")}, {"start": at("2026-12-03T00:00:00", "Asia/Tokyo"), "isAllDay": True}),
    ],
    ids=str,
)
def test_a_change_is_written_alone(changes, body):
    assert changed(**changes) == body


def test_both_times_make_a_timed_event_of_days():
    body = changed(DAYS, start=Moment(NOON), end=Moment(NOON + HOUR))
    assert body["isAllDay"] is False
    assert body["start"] == at("2026-12-03T12:00:00.000", NEW_YORK)


@pytest.mark.parametrize(
    ("changes", "first", "last"),
    [
        ({"start": Day("2026-12-01")}, "2026-12-01", "2026-12-05"),
        ({"end": Day("2026-12-09")}, "2026-12-03", "2026-12-09"),
    ],
)
def test_both_edges_of_days_are_written_in_one_zone(changes, first, last):
    assert changed(DAYS, **changes) == {
        "start": at(f"{first}T00:00:00", "Asia/Tokyo"),
        "end": at(f"{last}T00:00:00", "Asia/Tokyo"),
        "isAllDay": True,
    }


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-11-01T04:59:59.999Z", at("2026-11-01T00:59:59.999", NEW_YORK)),
        ("2026-11-01T05:30:00Z", at("2026-11-01T05:30:00.000", "UTC")),
        ("2026-11-01T06:30:00Z", at("2026-11-01T06:30:00.000", "UTC")),
        ("2026-11-01T07:00:00Z", at("2026-11-01T02:00:00.000", NEW_YORK)),
        ("2026-03-08T06:59:59Z", at("2026-03-08T01:59:59.000", NEW_YORK)),
        ("2026-03-08T07:00:00Z", at("2026-03-08T03:00:00.000", NEW_YORK)),
    ],
)
def test_an_hour_that_occurs_twice_is_written_in_utc(text, written):
    assert new(start=Moment(instant(text), NEW_YORK))["start"] == written


def test_kept_guests_keep_their_entry_in_the_new_order():
    bob = {
        "emailAddress": {"address": "Bob@x.org", "name": "Bob"},
        "type": "optional",
        "status": {"response": "accepted"},
    }
    nobody = {"emailAddress": {"name": "Left"}, "type": "required"}
    known = TIMED | {"attendees": [nobody, bob]}
    body = changed(known, attendees=("eve@x.org", "BOB@x.org", "bob@X.org"))
    assert body == {"attendees": [{"type": "required", "emailAddress": {"address": "eve@x.org"}}, bob]}


def test_the_description_of_an_online_meeting_goes_above_its_block():
    known = TEAMS | {"body": {"contentType": "html", "content": page(f"Old{HTML_BLOCK}")}}
    body = changed(known, description="New")["body"]
    assert body["contentType"] == "html"
    assert body["content"].index("New") < body["content"].index("me-email-text")
    assert "Old" not in body["content"]


def test_an_online_meeting_is_not_made_twice():
    assert changed(TEAMS, meeting=True) == {}


def zoomed(location: str, **more: Any) -> Any:
    kept = [{"id": properties.MEETING_URL, "value": "https://z/1"}]
    return TIMED | {"location": {"displayName": location}, "singleValueExtendedProperties": kept} | more


@pytest.mark.parametrize(
    ("known", "changes", "location"),
    [
        (TIMED, {}, "https://z/2"),
        (zoomed("https://z/1"), {}, "https://z/2"),
        (zoomed(""), {}, "https://z/2"),
        (zoomed("Room"), {}, None),
        (zoomed("https://z/1"), {"location": "Room"}, "Room"),
        (zoomed("https://z/1"), {"location": ""}, ""),
        (TEAMS | {"location": {"displayName": JOIN}}, {}, "https://z/2"),
    ],
)
def test_the_location_follows_the_meeting_url(known, changes, location):
    body = changed(known, meeting_url="https://z/2", **changes)
    assert body.get("location") == (None if location is None else {"displayName": location})
    assert body["singleValueExtendedProperties"] == [{"id": properties.MEETING_URL, "value": "https://z/2"}]


@pytest.mark.parametrize(
    ("place", "location"), [("https://z/1", {"displayName": ""}), ("Room", None), ("", None)]
)
@pytest.mark.parametrize("online", [False, True])
def test_graphs_own_meeting_takes_the_place_of_anothers(place, location, online):
    body = changed(zoomed(place, isOnlineMeeting=online), meeting=True)
    assert body["singleValueExtendedProperties"] == [{"id": properties.MEETING_URL, "value": ""}]
    assert body.get("location") == location
    assert ("isOnlineMeeting" in body) is not online


@pytest.mark.parametrize(
    ("kind", "stated", "written"),
    [
        ("resource", {"optional": True}, None),
        ("optional", {"resource": True}, None),
        ("resource", {"optional": False}, "resource"),
        ("resource", {"optional": True, "resource": False}, "optional"),
        ("optional", {"optional": False, "resource": True}, "resource"),
    ],
)
def test_an_attendee_is_not_given_a_second_type(kind, stated, written):
    known = TIMED | {"attendees": [{"type": kind, "emailAddress": {"address": "room@example.com"}}]}
    guests = (Guest("room@example.com", **stated),)
    if written is not None:
        assert changed(known, attendees=guests)["attendees"][0]["type"] == written
        return
    with pytest.raises(EventRefused) as raised:
        changed(known, attendees=guests)
    assert raised.value.param == "attendees"
