"""The life of an event in one calendar: created, read, changed and deleted, at both providers."""

from __future__ import annotations

import pytest

from tests.app.answers import error
from tests.app.at_provider import NINE, SUBJECT, bare, one
from tests.app.days import PROVIDERS

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
ADA, BOB, EVE = "ada@example.com", "bob@example.com", "eve@example.com"
FOREIGN = "String {66f5a359-4659-4830-9070-00047ec6ac6e} Name crm"
TEAM = "AAMkAGteam="
CALENDARS = [
    {"id": "AAMkAGmain=", "primary": True},
    {"id": TEAM},
    {"id": "AAMkAGboss=", "accessRole": "reader"},
]


# --- create and read


@BOTH
def test_an_event_is_created_with_every_field_and_read_the_same(person):
    answer = person.create(
        subject="Review",
        description="What we did.\nWhat we do next.",
        location="Room 1",
        attendees=[{"email": BOB}, {"email": ADA}],
        metaId="m-42",
    )

    made = one(answer, 201)
    assert bare(made) == {
        "id": made["id"],
        "calendarId": person.main,
        "provider": person.provider,
        "metaId": "m-42",
        "subject": "Review",
        "description": "What we did.\nWhat we do next.",
        "location": "Room 1",
        "start": "2026-12-03T09:00:00.000Z",
        "end": "2026-12-03T10:00:00.000Z",
        "attendees": [
            {"email": BOB, "self": False, "responseStatus": "needsAction"},
            {"email": ADA, "self": True, "responseStatus": made["attendees"][1]["responseStatus"]},
        ],
    }
    assert made["original"]["id"] == made["id"]
    assert made["original"][SUBJECT[person.provider]] == "Review"
    assert all(each["original"] for each in made["attendees"])
    assert one(person.get(made["id"])) == made
    assert person.there.subjects() == ["Review"]


@BOTH
def test_an_event_of_two_times_alone_has_empty_texts_and_no_metaid(person):
    made = person.made()
    assert bare(made) == {
        "id": made["id"],
        "calendarId": person.main,
        "provider": person.provider,
        "subject": "",
        "description": "",
        "location": "",
        "start": "2026-12-03T09:00:00.000Z",
        "end": "2026-12-03T10:00:00.000Z",
        "attendees": [],
    }


@BOTH
@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/New_York", "UTC"])
def test_an_all_day_event_spans_the_midnights_of_the_calendar(new_person, provider, zone):
    person = new_person(provider, time_zone=zone)
    made = person.made(start="2026-12-03", end="2026-12-05", subject="Fair")
    spans = {
        "Pacific/Auckland": ("2026-12-02T11:00:00.000Z", "2026-12-04T11:00:00.000Z"),
        "America/New_York": ("2026-12-03T05:00:00.000Z", "2026-12-05T05:00:00.000Z"),
        "UTC": ("2026-12-03T00:00:00.000Z", "2026-12-05T00:00:00.000Z"),
    }
    assert (made["start"], made["end"]) == spans[zone]
    assert made["allDay"] is True
    assert one(person.get(made["id"])) == made
    (kept,) = person.there.events()
    dates = {
        "google": lambda edge: edge.get("date"),
        "microsoft": lambda edge: edge["dateTime"].removesuffix("T00:00:00.0000000"),
    }[provider]
    assert (dates(kept["start"]), dates(kept["end"])) == ("2026-12-03", "2026-12-05")


@BOTH
def test_an_all_day_event_becomes_a_timed_one_and_back(new_person, provider):
    person = new_person(provider, time_zone="Europe/Berlin")
    made = person.made(start="2026-12-03", end="2026-12-04")
    timed = one(person.update(made["id"], **NINE))
    assert (timed["start"], "allDay" in timed) == ("2026-12-03T09:00:00.000Z", False)
    again = one(person.update(made["id"], start="2026-12-10", end="2026-12-11"))
    assert (again["start"], again["end"], again["allDay"]) == (
        "2026-12-09T23:00:00.000Z",
        "2026-12-10T23:00:00.000Z",
        True,
    )


@BOTH
def test_a_meeting_of_the_providers_own_has_its_link(person):
    made = person.made(meeting=True, subject="Call", description="Agenda")
    host = {"google": "https://meet.google.com/", "microsoft": "https://teams.microsoft.com/"}
    assert made["meetingUrl"].startswith(host[person.provider])
    assert made["description"] == "Agenda"
    changed = one(person.update(made["id"], description="Other", subject="Later"))
    assert changed["meetingUrl"] == made["meetingUrl"]
    assert changed["description"] == "Other"


@BOTH
def test_external_meeting_url_is_the_location_if_none_is_set(person):
    url = "https://meet.example.com/a?b=c&d=%20#e"
    made = person.made(meeting={"url": url})
    assert (made["meetingUrl"], made["location"]) == (url, url)
    placed = person.made(meeting={"url": url}, location="Room 1")
    assert (placed["meetingUrl"], placed["location"]) == (url, "Room 1")
    moved = one(person.update(made["id"], meeting={"url": "https://other.example.com/"}))
    assert (moved["meetingUrl"], moved["location"]) == ("https://other.example.com/",) * 2


@BOTH
def test_the_main_calendar_goes_by_its_alias_and_by_its_id(new_person, provider):
    person = new_person(provider, **({"calendars": CALENDARS} if provider == "microsoft" else {}))
    own_id = {"google": ADA, "microsoft": "AAMkAGmain="}[provider]
    made = person.made(calendar=own_id)
    assert made["calendarId"] == own_id
    assert bare(one(person.get(made["id"]))) == bare(made) | {"calendarId": person.main}


def test_a_gmail_calendar_is_reached_and_booked_by_every_spelling_of_its_address(sandbox, new_user, api):
    user = new_user(sandbox.account("google", "ada.l@gmail.com"))
    events = f"/users/{user}/calendar/events/google"
    body = {"subject": "S", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    made = one(api.post(f"{events}/AdaL@googlemail.com?ifFree=true", body), 201)
    assert made["calendarId"] == "ada.l@gmail.com"
    assert api.post(f"{events}/ADA.L@gmail.com?ifFree=true", body).status_code == 409
    assert one(api.get(f"{events}/adal@gmail.com/{made['id']}")) == made
    assert api.delete(f"{events}/a.dal@gmail.com/{made['id']}").status_code == 200


@BOTH
def test_changes_of_another_program_are_read(person):
    if person.provider == "google":
        fields = {
            "summary": "Lunch",
            "attendees": [{"email": BOB, "responseStatus": "tentative"}, {"displayName": "Room"}],
        }
    else:
        tentative = {"response": "tentativelyAccepted", "time": "2026-11-01T00:00:00Z"}
        fields = {
            "subject": "Lunch",
            "attendees": [
                {"emailAddress": {"address": BOB, "name": "Bob"}, "status": tentative},
                {"emailAddress": {"name": "Room"}},
            ],
        }
    bob = {} if person.provider == "google" else {"name": "Bob"}
    event_id = person.there.post(**fields)["id"]
    read = bare(one(person.get(event_id)))
    assert (read["subject"], read["start"]) == ("Lunch", "2026-12-03T09:00:00.000Z")
    assert read["attendees"] == [
        {"email": BOB, "self": False, "responseStatus": "tentative", **bob},
        {"email": "", "self": False, "responseStatus": "needsAction", "name": "Room"},
    ]


# --- change


@BOTH
@pytest.mark.parametrize(
    ("sent", "changed"),
    [
        ({"subject": "New"}, {"subject": "New"}),
        ({"subject": ""}, {"subject": ""}),
        ({"description": "a < b & c"}, {"description": "a < b & c"}),
        ({"location": ""}, {"location": ""}),
        ({"attendees": []}, {"attendees": []}),
        ({"start": "2026-12-03T08:00:00Z"}, {"start": "2026-12-03T08:00:00.000Z"}),
        ({"end": "2026-12-03T11:00:00Z"}, {"end": "2026-12-03T11:00:00.000Z"}),
        ({"metaId": "m-2"}, {"metaId": "m-2"}),
        ({}, {}),
        ({"unknown": 1}, {}),
    ],
    ids=str,
)
def test_an_update_writes_only_what_was_sent(person, sent, changed):
    made = person.made(
        subject="Old", description="Old", location="Old", attendees=[{"email": BOB}], metaId="m-1"
    )
    answer = one(person.update(made["id"], **sent))
    assert bare(answer) == bare(made) | changed
    assert one(person.get(made["id"])) == answer


def foreign(person):
    """An event of another program: with answers of guests, an online meeting and private properties."""
    if person.provider == "google":
        return person.there.post(
            summary="Lunch",
            attendees=[
                {"email": BOB, "responseStatus": "accepted", "comment": "Yes!"},
                {"email": EVE, "responseStatus": "declined"},
            ],
            conferenceData={"createRequest": {"requestId": "7"}},
            extendedProperties={"private": {"crm": "7"}, "shared": {"crm": "8"}},
            reminders={"useDefault": False, "overrides": [{"method": "popup", "minutes": 5}]},
        )
    answered = "2026-11-01T00:00:00Z"
    return person.there.post(
        subject="Lunch",
        attendees=[
            {"emailAddress": {"address": BOB}, "status": {"response": "accepted", "time": answered}},
            {"emailAddress": {"address": EVE}, "status": {"response": "declined", "time": answered}},
        ],
        isOnlineMeeting=True,
        singleValueExtendedProperties=[{"id": FOREIGN, "value": "7"}],
        categories=["Red"],
        reminderMinutesBeforeStart=5,
    )


# Fields that every write changes.
STAMPS = {"etag", "updated", "sequence", "@odata.etag", "changeKey", "lastModifiedDateTime", "@odata.context"}


def as_others_see(person, event_id):
    """The event as the other program reads it, with its private property."""
    if person.provider == "google":
        return person.there.event(event_id)
    expand = f"$expand=singleValueExtendedProperties($filter=id eq '{FOREIGN}')"
    return person.there.call.get(f"me/events/{event_id}?{expand}")


@BOTH
def test_fields_of_other_programs_survive_an_update(person):
    event_id = foreign(person)["id"]
    before = as_others_see(person, event_id)
    one(person.update(event_id, location="Room 2"))
    after = as_others_see(person, event_id)
    different = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert different - STAMPS <= {"location", "locations"}
    assert "location" in different
    kept = {"google": ("extendedProperties", "conferenceData"), "microsoft": ("onlineMeeting",)}
    assert all(after[name] for name in kept[person.provider])
    if person.provider == "microsoft":
        assert [each["value"] for each in after["singleValueExtendedProperties"]] == ["7"]


@BOTH
def test_guest_that_stays_invited_keeps_the_response(person):
    event_id = foreign(person)["id"]
    sent = [{"email": "new@example.com"}, {"email": BOB.upper()}]
    expected = bare(one(person.update(event_id, attendees=sent)))["attendees"]
    assert [(each["email"].lower(), each["responseStatus"]) for each in expected] == [
        ("new@example.com", "needsAction"),
        (BOB, "accepted"),
    ]
    kept = person.there.event(event_id)["attendees"]
    if person.provider == "google":
        assert [each.get("comment") for each in kept] == [None, "Yes!"]
    else:
        assert [each["status"]["response"] for each in kept] == ["none", "accepted"]


@BOTH
def test_our_own_properties_do_not_push_others_out(person):
    event_id = foreign(person)["id"]
    one(person.update(event_id, metaId="m-1", meeting={"url": "https://meet.example.com/"}))
    seen = as_others_see(person, event_id)
    if person.provider == "google":
        assert seen["extendedProperties"]["private"]["crm"] == "7"
        assert seen["extendedProperties"]["shared"]["crm"] == "8"
    else:
        assert [each["value"] for each in seen["singleValueExtendedProperties"]] == ["7"]
    assert one(person.get(event_id))["metaId"] == "m-1"


@BOTH
def test_a_changed_time_stays_in_the_zone_that_the_event_has(person):
    made = person.made(**NINE, headers={"X-Timezone": "Europe/Berlin"})
    one(person.update(made["id"], end="2026-12-03T11:00:00Z"))
    kept = person.there.event(made["id"])
    if person.provider == "google":
        assert kept["end"]["timeZone"] == "Europe/Berlin"
    else:
        assert kept["originalEndTimeZone"] == "W. Europe Standard Time"
    assert one(person.get(made["id"]))["end"] == "2026-12-03T11:00:00.000Z"


@pytest.mark.parametrize(("requested", "expected"), [(None, False), (False, False), (True, True)])
def test_google_notifies_guests_on_request(sandbox, new_person, requested, expected):
    person = new_person("google")
    sent = {} if requested is None else {"sendNotifications": requested}
    made = person.made(attendees=[{"email": BOB}], **sent)
    one(person.update(made["id"], subject="New", **sent))
    person.delete(made["id"], **{name: str(value).lower() for name, value in sent.items()})
    assert [each["guests"] for each in sandbox.notices()] == ([[BOB]] * 3 if expected else [])


# --- delete


@BOTH
def test_a_deleted_event_is_gone_and_cannot_be_deleted_again(person):
    made = person.made(subject="Once", attendees=[{"email": BOB}])
    answer = person.delete(made["id"])
    assert (answer.status_code, answer.json) == (200, {"data": {"success": True}})
    assert person.there.subjects() == []
    for repeated in (
        person.delete(made["id"]),
        person.get(made["id"]),
        person.update(made["id"], subject="x"),
    ):
        assert error(repeated, 404) == "Event not found"
    assert person.there.subjects() == []


@BOTH
def test_occurrence_of_a_series_is_changed_and_deleted_alone(new_person, provider):
    series = {**NINE, "subject": "Daily", "recurrence": ["RRULE:FREQ=DAILY;COUNT=3"]}
    person = new_person(provider, events=[series])

    def days():
        answer = person.api.get(f"/users/{person.user}/calendar/events", start="2026-12-01", end="2026-12-08")
        return [(each["id"], each["start"][8:16], each["subject"]) for each in answer.json["data"]]

    first, second, third = (event_id for event_id, _, _ in days())
    assert one(person.get(second))["start"] == "2026-12-04T09:00:00.000Z"
    one(person.update(second, subject="Moved", start="2026-12-04T12:00:00Z", end="2026-12-04T13:00:00Z"))
    assert person.delete(third).status_code == 200
    assert days() == [(first, "03T09:00", "Daily"), (second, "04T12:00", "Moved")]
    assert error(person.delete(third), 404) == "Event not found"


@BOTH
def test_an_event_that_was_cancelled_is_not_found(new_person, provider):
    person = new_person(provider, events=[NINE | {"isCancelled": True}])
    if provider == "google":
        (event,) = person.there.call.get("calendars/primary/events", showDeleted="true")["items"]
        assert event["status"] == "cancelled"
    else:
        (event,) = person.there.events()
        assert event["isCancelled"]
    assert error(person.get(event["id"]), 404) == "Event not found"
    assert error(person.update(event["id"], subject="x"), 404) == "Event not found"


# --- the calendar that a path names


@BOTH
@pytest.mark.parametrize("home", ["primary", "team"])
def test_an_event_is_not_reached_through_another_calendar(new_person, provider, home):
    team = {"google": "team@group.calendar.google.com", "microsoft": TEAM}[provider]
    person = new_person(provider, calendars=[{"primary": True}, {"id": team}])
    here, other = ("primary", team) if home == "primary" else (team, "primary")
    made = one(person.create(calendar=here, subject="Kept"), 201)
    for call in (
        lambda: person.get(made["id"], calendar=other),
        lambda: person.update(made["id"], calendar=other, subject="Changed"),
        lambda: person.delete(made["id"], calendar=other),
    ):
        assert error(call(), 404) == "Event not found"
    assert person.there.subjects(here) == ["Kept"]
    assert one(person.get(made["id"], calendar=here))["subject"] == "Kept"
