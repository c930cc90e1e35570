"""Parsing of Graph's events, unusual ones included."""

from __future__ import annotations

from typing import Any

import pytest

from providers.errors import ProviderError, Unavailable
from providers.events import Event, EventStatus, Organizer, Reminders, ResponseStatus, ShowAs, Visibility
from providers.microsoft import parse, parse_events, properties
from providers.microsoft.parse_events import Reader
from providers.timestamps import DAY, instant

OPERATION = "calendar.events.get"
NEVER = "0001-01-01T00:00:00Z"

# After https://learn.microsoft.com/en-us/graph/api/calendar-post-events (the answer), with our query.
LUNCH: dict[str, Any] = {
    "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#users('5d8d')/events/$entity",
    "@odata.etag": 'W/"/IUUrIl3PkG1JCSsPfU+8wAAGXjEpA=="',
    "id": "AAMkAGViNDU7zAAAAA7zAAAZb2ckAAA=",
    "createdDateTime": "2019-02-28T21:17:57.56197Z",
    "lastModifiedDateTime": "2019-02-28T21:17:59.044919Z",
    "webLink": "https://outlook.office365.com/owa/?itemid=AAMkAGVi",
    "organizer": {
        "emailAddress": {"name": "Samantha Booth", "address": "samanthab@contoso.onmicrosoft.com"},
    },
    "isOrganizer": True,
    "seriesMasterId": None,
    "showAs": "busy",
    "originalStartTimeZone": "Pacific Standard Time",
    "subject": "Let's go for lunch",
    "bodyPreview": "Does mid month work for you?",
    "isAllDay": False,
    "isCancelled": False,
    "isOnlineMeeting": False,
    "onlineMeeting": None,
    "responseStatus": {"response": "organizer", "time": NEVER},
    "body": {"contentType": "text", "content": "Does mid month work for you?\r\nPlease tell.\r\n"},
    "start": {"dateTime": "2019-03-15T19:00:00.0000000", "timeZone": "UTC"},
    "end": {"dateTime": "2019-03-15T21:00:00.0000000", "timeZone": "UTC"},
    "location": {"displayName": "Harry's Bar", "locationType": "default", "uniqueIdType": "private"},
    "attendees": [
        {
            "type": "required",
            "status": {"response": "none", "time": NEVER},
            "emailAddress": {"name": "Adele Vance", "address": "AdeleV@contoso.OnMicrosoft.com"},
        }
    ],
    "singleValueExtendedProperties": [{"id": properties.META_ID, "value": "m-42"}],
}
NOON = instant("2019-03-15T19:00:00Z")


def read(zone: Any = "UTC", email: str | None = "adelev@contoso.onmicrosoft.com", **more: Any) -> Event:
    record = {name: value for name, value in (LUNCH | more).items() if value is not ...}
    own = frozenset([email]) if email else frozenset()
    return Reader("cal", own, zone, OPERATION).event(record)


def test_a_record_is_checked_once_however_many_attendees_it_has(monkeypatch):
    looked = []
    monkeypatch.setattr(parse_events, "original", lambda record: looked.append(record) or record)
    event = read()
    assert looked == [event.original]
    assert [each.original for each in event.attendees] == LUNCH["attendees"]


def test_graph_event_is_parsed():
    event = read()
    assert event == Event(
        id="AAMkAGViNDU7zAAAAA7zAAAZb2ckAAA=",
        calendar_id="cal",
        provider="microsoft",
        meta_id="m-42",
        subject="Let's go for lunch",
        description="Does mid month work for you?\nPlease tell.",
        location="Harry's Bar",
        start=NOON,
        end=NOON + DAY // 12,
        all_day=False,
        meeting_url=None,
        mark=None,
        attendees=event.attendees,
        original=LUNCH,
        status=EventStatus.CONFIRMED,
        show_as=ShowAs.BUSY,
        organizer=Organizer("samanthab@contoso.onmicrosoft.com", is_self=True, name="Samantha Booth"),
        web_link="https://outlook.office365.com/owa/?itemid=AAMkAGVi",
        recurring_event_id=None,
        updated_at=instant("2019-02-28T21:17:59.044Z"),
        etag='W/"/IUUrIl3PkG1JCSsPfU+8wAAGXjEpA=="',
        shown_as=ShowAs.BUSY,
        visibility=None,
        reminders=None,
        time_zone="America/Los_Angeles",
    )


def organized_by(**entry: Any) -> dict[str, Any]:
    return {"emailAddress": entry}


@pytest.mark.parametrize(
    ("fields", "name", "parsed"),
    [
        ({"isCancelled": True}, "status", EventStatus.CANCELLED),
        ({"showAs": "tentative"}, "status", EventStatus.TENTATIVE),
        ({"showAs": ...}, "status", None),
        *(({"showAs": each}, "show_as", ShowAs.FREE) for each in ("free", "workingElsewhere")),
        *(
            ({"showAs": each}, "show_as", ShowAs.BUSY)
            for each in ("busy", "oof", "tentative", "unknown", "notYetInvented")
        ),
        ({"showAs": None}, "show_as", None),
        ({"organizer": None}, "organizer", None),
        ({"organizer": {"emailAddress": None}}, "organizer", None),
        (
            {"organizer": organized_by(address="AdeleV@contoso.OnMicrosoft.com"), "isOrganizer": False},
            "organizer",
            Organizer("AdeleV@contoso.OnMicrosoft.com", is_self=True),
        ),
        (
            {"organizer": organized_by(name="Bob", address="bob@x.org"), "isOrganizer": False},
            "organizer",
            Organizer("bob@x.org", is_self=False, name="Bob"),
        ),
        ({"webLink": None}, "web_link", None),
        ({"seriesMasterId": "AAMkSeries"}, "recurring_event_id", "AAMkSeries"),
        ({"lastModifiedDateTime": None}, "updated_at", None),
        ({"@odata.etag": ...}, "etag", None),
    ],
    ids=str,
)
def test_what_a_scheduler_needs_is_there_when_graph_gives_it(fields, name, parsed):
    assert getattr(read(**fields), name) == parsed


@pytest.mark.parametrize(
    ("fields", "name", "parsed"),
    [
        ({"lastModifiedDateTime": "yesterday"}, "updated_at", None),
        ({"lastModifiedDateTime": "2019-02-28T21:17:59"}, "updated_at", None),
        ({"lastModifiedDateTime": "2019-02-28T21:17:59z"}, "updated_at", instant("2019-02-28T21:17:59Z")),
        ({"seriesMasterId": "s", "originalStart": "2019-03-15T19:00:00"}, "original_start", None),
        ({"seriesMasterId": "s", "originalStart": 5}, "original_start", None),
        ({"subject": 5}, "subject", ""),
        ({"body": "text"}, "description", ""),
        ({"body": {"content": 5}, "isOnlineMeeting": True}, "description", ""),
        ({"location": "Room 1"}, "location", ""),
        ({"location": {"displayName": 5}}, "location", ""),
        ({"onlineMeeting": "https://teams.example/1"}, "meeting_url", None),
        ({"webLink": 7}, "web_link", None),
        ({"showAs": []}, "show_as", ShowAs.BUSY),
        ({"sensitivity": {}}, "visibility", Visibility.PRIVATE),
        ({"isCancelled": "false"}, "status", EventStatus.CONFIRMED),
        ({"isAllDay": "false"}, "all_day", False),
        ({"isReminderOn": "true", "reminderMinutesBeforeStart": 5}, "reminders", None),
        ({"isReminderOn": True, "reminderMinutesBeforeStart": "5"}, "reminders", None),
        ({"isReminderOn": True, "reminderMinutesBeforeStart": 5}, "reminders", Reminders((5,))),
        # Another, unknown organizer: only the organizer may split a series.
        ({"organizer": "Bob", "isOrganizer": "yes"}, "organizer", Organizer("", is_self=False)),
        ({"organizer": {"emailAddress": "b@x.org"}, "isOrganizer": True}, "organizer", Organizer("", True)),
        ({"attendees": {}}, "attendees", ()),
        ({"singleValueExtendedProperties": [{"id": "theirs", "value": 5}]}, "meta_id", None),
    ],
    ids=str,
)
def test_a_field_that_is_only_shown_counts_as_missing_if_it_cannot_be_read(fields, name, parsed):
    event = read(**fields)
    assert getattr(event, name) == parsed
    assert (event.id, event.start) == (LUNCH["id"], NOON)


def test_an_attendee_that_cannot_be_read_is_skipped():
    odd = {"emailAddress": "a@x.org", "type": [], "status": "accepted"}
    (guest,) = read(attendees=[None, "bob", odd]).attendees
    assert (guest.email, guest.name, guest.is_self, guest.original) == ("", None, False, odd)
    assert guest.response_status is ResponseStatus.NEEDS_ACTION


@pytest.mark.parametrize(
    "wrong",
    [
        {"@odata.etag": 5},
        {"seriesMasterId": 5},
        {"singleValueExtendedProperties": [{"id": properties.META_ID, "value": 5}]},
        {"singleValueExtendedProperties": "odd"},
    ],
    ids=str,
)
def test_what_decides_about_a_write_must_be_readable(wrong):
    with pytest.raises(Unavailable):
        read(**wrong)


@pytest.mark.parametrize("nothing", [None, ...])
@pytest.mark.parametrize(
    "name", ["subject", "body", "location", "attendees", "onlineMeeting", "responseStatus"]
)
def test_hidden_fields_of_private_events_are_empty(name, nothing):
    event = read(**{name: nothing})
    told = {
        "subject": event.subject,
        "body": event.description,
        "location": event.location,
        "attendees": event.attendees,
    }
    assert [field for field, value in told.items() if not value] == [name][: name in told]


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("none", ResponseStatus.NEEDS_ACTION),
        ("notResponded", ResponseStatus.NEEDS_ACTION),
        ("accepted", ResponseStatus.ACCEPTED),
        ("organizer", ResponseStatus.ACCEPTED),
        ("tentativelyAccepted", ResponseStatus.TENTATIVE),
        ("declined", ResponseStatus.DECLINED),
        ("unknownFutureValue", ResponseStatus.NEEDS_ACTION),
        (None, ResponseStatus.NEEDS_ACTION),
    ],
)
def test_answers(word, status):
    (guest,) = read(email=None, attendees=[LUNCH["attendees"][0] | {"status": {"response": word}}]).attendees
    assert guest.response_status is status


@pytest.mark.parametrize(
    ("entry", "own", "status"),
    [
        ("none", "tentativelyAccepted", ResponseStatus.TENTATIVE),
        (None, "declined", ResponseStatus.DECLINED),
        ("accepted", "notResponded", ResponseStatus.ACCEPTED),
        ("none", None, ResponseStatus.NEEDS_ACTION),
    ],
)
def test_own_response_comes_from_the_event_if_entry_has_none(entry, own, status):
    guests = [
        LUNCH["attendees"][0] | {"status": {"response": entry}},
        {"emailAddress": {"address": "bob@example.com"}, "status": {"response": entry}},
    ]
    mine, bob = read(attendees=guests, responseStatus={"response": own}).attendees
    assert (mine.is_self, mine.response_status) == (True, status)
    assert not bob.is_self
    assert bob.response_status is (
        ResponseStatus.ACCEPTED if entry == "accepted" else ResponseStatus.NEEDS_ACTION
    )


@pytest.mark.parametrize("email", [None, "", "alice@example.com"])
@pytest.mark.parametrize("named", [None, {}, {"name": "Left"}, {"name": "Left", "address": None}])
def test_an_attendee_without_an_address_is_listed_and_is_not_self(email, named):
    (guest,) = read(email=email, attendees=[{"emailAddress": named, "status": None}]).attendees
    assert (guest.email, guest.is_self) == ("", False)
    assert guest.original == {"emailAddress": named, "status": None}


def test_a_day_lies_in_the_zone_it_is_read_for():
    midnights = {
        "isAllDay": True,
        "start": {"dateTime": "2026-03-08T00:00:00.0000000", "timeZone": "UTC"},
        "end": {"dateTime": "2026-03-09T00:00:00.0000000", "timeZone": "UTC"},
    }
    event = read("America/New_York", **midnights)
    assert event.all_day
    assert (event.start, event.end) == (
        instant("2026-03-08T05:00:00Z"),
        instant("2026-03-09T04:00:00Z"),
    )
    with pytest.raises(ProviderError, match="no zone"):
        read(ProviderError("no zone"), **midnights)
    assert read(ProviderError("no zone")).start == NOON


@pytest.mark.parametrize(
    ("zone", "one"),
    [
        (None, "UTC"),
        ("Asia/Tokyo", "Asia/Tokyo"),
    ],
)
def test_the_zone_of_days(zone, one):
    assert parse_events.one_zone(zone) == one


def test_a_zone_that_cannot_be_read_just_now_is_no_utc():
    failure = Unavailable("down")
    assert parse_events.one_zone(failure) is failure


@pytest.mark.parametrize(
    ("name", "hour"), [("tzone://Microsoft/Utc", 19), ("Pacific Standard Time", 26), ("Asia/Tokyo", 10)]
)
def test_a_label_other_than_utc_is_converted(name, hour):
    moved = {"dateTime": "2019-03-15T19:00:00.0000000", "timeZone": name}
    assert read(start=moved, end=moved).start == instant("2019-03-15T00:00:00Z") + hour * DAY // 24


@pytest.mark.parametrize("name", ["Customized Time Zone", "tzone://Microsoft/Custom", "", None, 5])
def test_a_time_in_an_unknown_zone_is_guessed_for_a_list_only(name):
    """The event was written in "Pacific Standard Time"; without that, the zone of the mailbox is left."""
    edges = {
        edge: {"dateTime": f"2019-03-15T{hour}:00:00.0000000", "timeZone": name}
        for edge, hour in (("start", 12), ("end", 14))
    }
    for zone, stated, start in (
        ("UTC", "Pacific Standard Time", NOON),
        ("Asia/Tokyo", None, instant("2019-03-15T03:00:00Z")),
        ("Asia/Tokyo", name, instant("2019-03-15T03:00:00Z")),
        ("UTC", ..., instant("2019-03-15T12:00:00Z")),
    ):
        event = read(zone, **edges, originalStartTimeZone=stated)
        assert (event.start, event.end) == (start, start + DAY // 12)
    with pytest.raises(parse.UnknownZone):
        parse.period(LUNCH | edges, "UTC", OPERATION)
    with pytest.raises(ProviderError, match="no zone"):
        read(ProviderError("no zone"), **edges, originalStartTimeZone=None)


def test_dates_at_the_ends_of_the_calendar_are_read():
    event = read(
        start={"dateTime": "0001-01-01T00:00:00.0000000", "timeZone": "UTC"},
        end={"dateTime": "9999-12-31T23:59:59.9999999", "timeZone": "UTC"},
    )
    assert event.start < 0 < event.end


@pytest.mark.parametrize(
    ("ours", "join", "url"),
    [
        (None, None, None),
        (None, "https://teams.example/1", "https://teams.example/1"),
        ("https://zoom.example/1", None, "https://zoom.example/1"),
        ("https://zoom.example/1", "https://teams.example/1", "https://zoom.example/1"),
        ("", "https://teams.example/1", "https://teams.example/1"),
    ],
)
def test_where_it_is_held_online(ours, join, url):
    kept = [] if ours is None else [{"id": properties.MEETING_URL, "value": ours}]
    event = read(singleValueExtendedProperties=kept, onlineMeeting=join and {"joinUrl": join})
    assert event.meeting_url == url


def test_property_set_is_case_insensitive_and_name_is_not():
    guid = properties.META_ID[properties.META_ID.index("{") : properties.META_ID.index("}")]
    shouted = properties.META_ID.replace(guid, guid.upper())
    assert read(singleValueExtendedProperties=[{"id": shouted, "value": "m"}]).meta_id == "m"
    other = properties.META_ID.replace("metaId", "METAID")
    assert read(singleValueExtendedProperties=[{"id": other, "value": "m"}]).meta_id is None


def test_cancelled_events_are_left_out_of_a_list():
    pages = [{"value": [LUNCH, LUNCH | {"isCancelled": True}]}, {"value": [LUNCH | {"id": "second"}]}]
    found = Reader("cal", frozenset(), "UTC", OPERATION).events(pages)
    assert [event.id for event in found] == [LUNCH["id"], "second"]


@pytest.mark.parametrize("odd", [LUNCH | {"id": "odd", "end": None}, LUNCH | {"id": "odd", "@odata.etag": 5}])
def test_a_complete_list_has_every_event_with_an_id(odd):
    reader = Reader("cal", frozenset(), "UTC", OPERATION)
    pages = [{"value": [LUNCH, LUNCH | {"id": None}, "odd"]}]
    assert [event.id for event in reader.events(pages, complete=True)] == [LUNCH["id"]]
    pages = [{"value": [LUNCH, odd]}]
    assert [event.id for event in reader.events(pages)] == [LUNCH["id"]]
    with pytest.raises(Unavailable):
        reader.events(pages, complete=True)


@pytest.mark.parametrize("page", [{}, {"value": None}, {"value": {}}, {"value": [], "error": {"code": "x"}}])
def test_what_is_no_page_of_events_is_no_empty_list(page):
    with pytest.raises(Unavailable, match="unreadable"):
        Reader("cal", frozenset(), "UTC", OPERATION).events([page])
