"""Parsing of Google's events, unusual ones included."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from providers.errors import ProviderError, Unavailable
from providers.events import Event, EventStatus, Organizer, Reminders, ResponseStatus, ShowAs, Visibility
from providers.google import parse_events
from providers.google.parse import canonical
from providers.google.parse_events import Reader
from providers.timestamps import instant

OPERATION = "calendar.events.get"
MEET, ZOOM = "https://meet.google.com/abc-mnop-xyz", "https://zoom.example/1"

# After https://developers.google.com/workspace/calendar/api/v3/reference/events, in the service's format.
REVIEW: dict[str, Any] = {
    "kind": "calendar#event",
    "etag": '"3529324800000000"',
    "id": "7c1f0a6e2b9d4f3c8a5e6d7b9f0c1a2e",
    "status": "confirmed",
    "htmlLink": "https://www.google.com/calendar/event?eid=N2MxZjBh",
    "created": "2026-12-02T08:00:00Z",
    "updated": "2026-12-02T08:00:00.123Z",
    "summary": "Design review",
    "description": "Bring <b>drawings</b>",
    "location": "Room 1",
    "creator": {"email": "ada@example.com", "self": True},
    "organizer": {"email": "ada@example.com", "self": True},
    "start": {"dateTime": "2026-12-03T10:00:00+01:00", "timeZone": "Europe/Berlin"},
    "end": {"dateTime": "2026-12-03T11:30:00+01:00", "timeZone": "Europe/Berlin"},
    "iCalUID": "7c1f0a6e2b9d4f3c8a5e6d7b9f0c1a2e@google.com",
    "sequence": 0,
    "attendees": [
        {"email": "ada@example.com", "organizer": True, "self": True, "responseStatus": "accepted"},
        {"email": "bob@example.com", "responseStatus": "needsAction"},
    ],
    "extendedProperties": {"private": {"metaId": "m-42", "almanacRequest": "f.0"}, "shared": {"metaId": "x"}},
    "reminders": {"useDefault": True},
    "eventType": "default",
}


def read(zone: str = "Europe/Berlin", email: str | None = "ada@example.com", **more: Any) -> Event:
    record = {name: value for name, value in (REVIEW | more).items() if value is not ...}
    own = frozenset([canonical(email)]) if email else frozenset()
    return Reader("cal", own, OPERATION).event(record, zone)


def met(*entries: Any, status: str = "success") -> dict[str, Any]:
    """Conference data with entry points, requested and created."""
    key = {"type": "hangoutsMeet"}
    request = {"requestId": "r", "conferenceSolutionKey": key, "status": {"statusCode": status}}
    return {"createRequest": request} | ({"entryPoints": list(entries)} if entries else {})


EMAIL, POPUP = {"method": "email", "minutes": 60}, {"method": "popup", "minutes": 10}
VIDEO = {"entryPointType": "video", "uri": MEET, "label": MEET[8:]}
PHONE = {"entryPointType": "phone", "uri": "tel:+49-30-1", "label": "+49 30 1"}


def test_google_event_is_parsed():
    event = read()
    assert event == Event(
        id="7c1f0a6e2b9d4f3c8a5e6d7b9f0c1a2e",
        calendar_id="cal",
        provider="google",
        meta_id="m-42",
        subject="Design review",
        description="Bring <b>drawings</b>",
        description_html="Bring <b>drawings</b>",
        location="Room 1",
        start=instant("2026-12-03T09:00:00Z"),
        end=instant("2026-12-03T10:30:00Z"),
        all_day=False,
        meeting_url=None,
        mark="f.0",
        attendees=event.attendees,
        original=REVIEW,
        status=EventStatus.CONFIRMED,
        show_as=ShowAs.BUSY,
        organizer=Organizer("ada@example.com", is_self=True),
        web_link="https://www.google.com/calendar/event?eid=N2MxZjBh",
        recurring_event_id=None,
        updated_at=instant("2026-12-02T08:00:00.123Z"),
        etag='W/"3529324800000000"',
        shown_as=ShowAs.BUSY,
        visibility=Visibility.DEFAULT,
        reminders=Reminders(),
        time_zone="Europe/Berlin",
    )


@pytest.mark.parametrize(
    ("field", "value", "name", "parsed"),
    [
        ("status", "tentative", "status", EventStatus.TENTATIVE),
        ("status", "cancelled", "status", EventStatus.CANCELLED),
        ("status", "notYetInvented", "status", None),
        ("status", ..., "status", None),
        ("transparency", "transparent", "show_as", ShowAs.FREE),
        ("transparency", "opaque", "show_as", ShowAs.BUSY),
        ("transparency", "transparent", "shown_as", ShowAs.FREE),
        ("visibility", "public", "visibility", Visibility.PUBLIC),
        ("visibility", "confidential", "visibility", Visibility.PRIVATE),
        ("visibility", "notYetInvented", "visibility", Visibility.PRIVATE),
        ("reminders", ..., "reminders", None),
        ("reminders", {"useDefault": False}, "reminders", Reminders(())),
        ("reminders", {"overrides": [EMAIL, POPUP, EMAIL]}, "reminders", Reminders((10, 60))),
        ("organizer", ..., "organizer", None),
        ("organizer", {"id": "1"}, "organizer", Organizer("", is_self=False)),
        ("organizer", {"email": "ADA@example.com"}, "organizer", Organizer("ADA@example.com", is_self=True)),
        (
            "organizer",
            {"email": "c_1@group.calendar.google.com", "displayName": "Team"},
            "organizer",
            Organizer("c_1@group.calendar.google.com", is_self=False, name="Team"),
        ),
        ("htmlLink", ..., "web_link", None),
        ("recurringEventId", "weekly0001", "recurring_event_id", "weekly0001"),
        ("updated", ..., "updated_at", None),
        ("etag", ..., "etag", None),
        ("etag", 'no "tag"', "etag", None),
        ("etag", '"a\r\nSet-Cookie: b"', "etag", None),
    ],
)
def test_what_a_scheduler_needs_is_there_when_google_gives_it(field, value, name, parsed):
    assert getattr(read(**{field: value}), name) == parsed


@pytest.mark.parametrize(
    ("field", "value", "name", "parsed"),
    [
        ("updated", "yesterday", "updated_at", None),
        ("updated", 5, "updated_at", None),
        ("updated", "2026-12-02T08:00:00z", "updated_at", instant("2026-12-02T08:00:00Z")),
        ("summary", 5, "subject", ""),
        ("description", {}, "description", ""),
        ("description", {}, "description_html", None),
        ("location", {"x": 1}, "location", ""),
        ("htmlLink", ["x"], "web_link", None),
        ("hangoutLink", {}, "meeting_url", None),
        ("conferenceData", [VIDEO], "meeting_url", None),
        ("conferenceData", {"entryPoints": [None, "odd", VIDEO | {"uri": 7}, VIDEO]}, "meeting_url", MEET),
        ("status", 7, "status", None),
        ("status", [], "status", None),
        ("visibility", {}, "visibility", Visibility.PRIVATE),
        ("transparency", {}, "show_as", ShowAs.BUSY),
        ("reminders", [], "reminders", None),
        ("reminders", {"overrides": {"minutes": 5}}, "reminders", Reminders(())),
        ("reminders", {"overrides": [{"method": "email"}, None, POPUP]}, "reminders", Reminders((10,))),
        ("reminders", {"overrides": [{"minutes": "10"}, {"minutes": 5}]}, "reminders", Reminders((5,))),
        ("originalStartTime", {"timeZone": "UTC"}, "original_start", None),
        ("originalStartTime", "2026-12-03", "original_start", None),
        # Another, unknown organizer: only the organizer may split a series.
        ("organizer", "ada@example.com", "organizer", Organizer("", is_self=False)),
        ("organizer", {"email": 5, "displayName": {}}, "organizer", Organizer("", is_self=False)),
        ("attendees", {}, "attendees", ()),
        ("extendedProperties", {"private": {"theirs": 5}, "shared": 7}, "meta_id", None),
    ],
)
def test_a_field_that_is_only_shown_counts_as_missing_if_it_cannot_be_read(field, value, name, parsed):
    event = read(**{field: value})
    assert getattr(event, name) == parsed
    assert (event.id, event.start) == (REVIEW["id"], instant("2026-12-03T09:00:00Z"))


def test_an_attendee_that_cannot_be_read_is_skipped():
    odd = {"email": "bob@example.com", "optional": "true", "displayName": 5, "responseStatus": []}
    (bob, hidden) = read(attendees=[None, 7, odd, {"email": None, "self": True}]).attendees
    assert (bob.email, bob.name, bob.optional) == ("bob@example.com", None, False)
    assert bob.response_status is ResponseStatus.NEEDS_ACTION
    assert (hidden.email, hidden.is_self) == ("", True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"etag": 5},
        {"recurringEventId": 5},
        {"extendedProperties": {"private": "x"}},
        {"extendedProperties": {"private": {"almanacRequest": 5}}},
    ],
    ids=str,
)
def test_what_decides_about_a_write_must_be_readable(wrong):
    with pytest.raises(Unavailable):
        read(**wrong)


def test_a_time_without_an_offset_is_one_of_its_zone():
    edges = {
        "start": {"dateTime": "2026-12-03T10:00:00", "timeZone": "Europe/Berlin"},
        "end": {"dateTime": "2026-12-03T11:30:00", "timeZone": "Europe/Berlin"},
    }
    event = read("Asia/Tokyo", **edges)
    found = instant("2026-12-03T09:00:00Z"), instant("2026-12-03T10:30:00Z")
    assert (event.start, event.end) == found
    assert parse_events.busy([REVIEW | edges], None, OPERATION, without="other") == [found]


@pytest.mark.parametrize("end", [None, ...])
def test_an_unspecified_end_that_is_left_out_is_the_start(end):
    event = read(end=end, endTimeUnspecified=True)
    assert event.start == event.end == instant("2026-12-03T09:00:00Z")
    with pytest.raises(Unavailable):
        read(end=end)


def test_an_edge_that_is_null_is_no_edge():
    start, end = instant("2026-12-03T09:00:00Z"), instant("2026-12-03T10:30:00Z")
    timed = read(start=REVIEW["start"] | {"date": None}, end=REVIEW["end"] | {"date": None})
    assert (timed.start, timed.end, timed.all_day) == (start, end, False)
    day = read(start={"date": "2026-12-03", "dateTime": None}, end={"date": "2026-12-04", "dateTime": None})
    assert day.all_day


def test_a_day_in_a_calendar_without_a_zone_is_busy_in_every_zone():
    day = {"start": {"date": "2026-12-03"}, "end": {"date": "2026-12-04"}}
    widest = instant("2026-12-02T10:00:00Z"), instant("2026-12-04T12:00:00Z")
    timed = instant("2026-12-03T09:00:00Z"), instant("2026-12-03T10:30:00Z")
    assert parse_events.busy([day, REVIEW], None, OPERATION, without="other") == [widest, timed]


def test_a_record_is_checked_once_however_many_attendees_it_has(monkeypatch):
    looked = []
    monkeypatch.setattr(parse_events, "original", lambda record: looked.append(record) or record)
    event = read()
    assert looked == [event.original]
    assert [each.original for each in event.attendees] == REVIEW["attendees"]


def test_attendee_nested_too_deep_makes_event_unreadable():
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"deeper": deep}
    with pytest.raises(Unavailable):
        read(attendees=[{"email": "bob@example.com", "more": deep}])


@pytest.mark.parametrize("name", ["summary", "description", "location", "attendees", "extendedProperties"])
def test_missing_event_fields_are_empty(name):
    event = read(**{name: ...})
    shown = {
        "summary": event.subject,
        "description": event.description,
        "location": event.location,
        "attendees": event.attendees,
        "extendedProperties": event.meta_id,
    }
    assert [field for field, value in shown.items() if not value] == [name]


def test_an_event_with_only_its_times_is_parsed():
    shown = {"kind", "etag", "id", "status", "start", "end", "transparency", "eventType", "iCalUID"}
    event = read(**dict.fromkeys(REVIEW.keys() - shown, ...), visibility="private")
    assert (event.subject, event.attendees, event.meta_id, event.meeting_url) == ("", (), None, None)
    assert event.start == instant("2026-12-03T09:00:00Z")


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("accepted", ResponseStatus.ACCEPTED),
        ("declined", ResponseStatus.DECLINED),
        ("tentative", ResponseStatus.TENTATIVE),
        ("needsAction", ResponseStatus.NEEDS_ACTION),
        ("notYetInvented", ResponseStatus.NEEDS_ACTION),
        (None, ResponseStatus.NEEDS_ACTION),
    ],
)
def test_answers(word, status):
    (guest,) = read(attendees=[{"email": "bob@example.com", "responseStatus": word}]).attendees
    assert guest.response_status is status


@pytest.mark.parametrize(
    ("entry", "email", "own"),
    [
        ({"email": "x@example.com", "self": True}, "ada@example.com", True),
        ({"email": "ADA@Example.com"}, "ada@example.com", True),
        ({"email": "adab@googlemail.com"}, "Ada.B@gmail.com", True),
        ({"email": "adab@example.com"}, "ada.b@example.com", False),
        ({"email": "bob@example.com"}, "ada@example.com", False),
        ({"email": "ada@example.com"}, None, False),
        ({"id": "1234", "displayName": "Without an address"}, "ada@example.com", False),
        ({"displayName": "Without an address"}, None, False),
    ],
)
def test_self_is_marked_by_google_or_found_by_address(entry, email, own):
    (guest,) = read(email=email, attendees=[entry]).attendees
    assert guest.is_self is own
    assert guest.email == entry.get("email", "")
    assert guest.original == entry


@pytest.mark.parametrize(
    ("shown", "url"),
    [
        ({}, None),
        ({"hangoutLink": MEET}, MEET),
        ({"hangoutLink": MEET, "conferenceData": met(VIDEO)}, MEET),
        ({"conferenceData": met(PHONE, VIDEO | {"uri": ZOOM})}, ZOOM),
        ({"conferenceData": met(PHONE)}, None),
        ({"conferenceData": met(status="pending")}, None),
        ({"conferenceData": {}}, None),
        ({"extendedProperties": {"private": {"meetingUrl": ZOOM}}}, ZOOM),
        ({"extendedProperties": {"private": {"meetingUrl": ZOOM}}, "hangoutLink": MEET}, ZOOM),
        ({"extendedProperties": {"private": {"meetingUrl": ""}}, "hangoutLink": MEET}, MEET),
        ({"extendedProperties": {"shared": {"meetingUrl": ZOOM}}}, None),
        ({"extendedProperties": {"private": {}}}, None),
    ],
    ids=str,
)
def test_where_it_is_held_online(shown, url):
    assert read(**shown).meeting_url == url


@pytest.mark.parametrize(
    ("shown", "has", "pending"),
    [
        ({}, False, False),
        ({"hangoutLink": MEET}, True, False),
        ({"conferenceData": met(VIDEO)}, True, False),
        ({"conferenceData": met(status="pending")}, True, True),
        ({"conferenceData": met(status="failure")}, False, False),
        ({"conferenceData": {"createRequest": {}}}, False, False),
        ({"conferenceData": {"createRequest": {"status": None}}}, False, False),
        ({"conferenceData": {"createRequest": "odd"}}, False, False),
    ],
    ids=str,
)
def test_whether_google_holds_it_online(shown, has, pending):
    assert parse_events.has_meeting(shown) is has
    assert parse_events.is_pending(shown) is pending


def test_an_all_day_event_that_ends_on_its_first_day_has_that_day():
    one = {"start": {"date": "2026-12-03"}, "end": {"date": "2026-12-03"}}
    day = read("Europe/Berlin", **one)
    assert (day.start, day.end) == (instant("2026-12-02T23:00:00Z"), instant("2026-12-03T23:00:00Z"))
    (busy,) = parse_events.busy([REVIEW | one], "Europe/Berlin", OPERATION, without="other")
    assert busy == (day.start, day.end)


@pytest.mark.parametrize(
    "zone", ["UTC", "Pacific/Auckland", "America/New_York", "Asia/Kolkata", "Africa/Cairo", "Asia/Beirut"]
)
@pytest.mark.parametrize("date", ["2026-12-03", "2026-03-29", "2026-04-24"])
def test_day_begins_at_midnight_or_after_a_skipped_midnight(zone, date):
    event = read(zone, start={"date": date}, end={"date": "2026-12-31"})
    begin = datetime.fromisoformat(date).replace(tzinfo=ZoneInfo(zone))
    assert event.start == begin.timestamp() * 1000
    local = datetime.fromtimestamp(event.start / 1000, ZoneInfo(zone))
    assert local.date() == begin.date()
    assert event.all_day


@pytest.mark.parametrize("written", ["Europe/Berlin", "GMT+01:00", "America", "", None, 7])
def test_the_offset_of_a_time_counts_whatever_its_zone(written):
    event = read("Nowhere/City", start=REVIEW["start"] | {"timeZone": written})
    assert event.start == instant("2026-12-03T09:00:00Z")


@pytest.mark.parametrize("zone", ["Nowhere/City", "America", "", "../etc/passwd", "GMT+01:00"])
def test_a_day_in_an_unknown_zone_is_unreadable(zone, is_fit_for_people):
    with pytest.raises(Unavailable, match="unreadable") as raised:
        read(zone, start={"date": "2026-12-03"}, end={"date": "2026-12-04"})
    is_fit_for_people(raised.value)


@pytest.mark.parametrize(
    "bad",
    [
        {"id": ...},
        {"id": 7},
        {"start": ...},
        {"start": {}},
        {"start": "2026-12-03"},
        {"start": {"date": 20261203}},
        {"start": {"dateTime": "2026-12-03T09:00:00"}},
        {"start": {"dateTime": "2026-12-03T09:00:00", "timeZone": "Nowhere/City"}},
        {"end": {"dateTime": None}},
        {"extendedProperties": {"private": {"metaId": {}}}},
    ],
    ids=str,
)
def test_what_is_no_event_is_unreadable(bad):
    with pytest.raises(ProviderError, match="unreadable"):
        read(**bad)
