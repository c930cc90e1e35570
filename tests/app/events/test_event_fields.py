"""Fields that not every provider stores: a value is stored and answered, or refused by its name."""

from __future__ import annotations

import pytest

from tests.app.answers import error
from tests.app.at_provider import one
from tests.app.days import DAY, PROVIDERS, meeting, periods

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
FIELDS = ("showAs", "visibility", "reminders", "timeZone")


def shown(event):
    return {name: event[name] for name in FIELDS if name in event}


@BOTH
def test_fields_are_written_changed_and_listed(api, person):
    sent = {"showAs": "free", "visibility": "private", "reminders": [30], "timeZone": "Asia/Tokyo"}
    made = person.made(**meeting("09:00", "10:00"), **sent)
    assert shown(made) == sent
    assert periods(api.get(f"/users/{person.user}/calendar/busy", **DAY)) == []

    sent = {"showAs": "busy", "visibility": "default", "reminders": []}
    changed = one(person.update(made["id"], **sent))
    assert shown(changed) == {**sent, "timeZone": "Asia/Tokyo"}
    (listed,) = api.get(f"/users/{person.user}/calendar/events", **DAY).json["data"]
    assert shown(listed) == shown(one(person.get(made["id"]))) == shown(changed)


@BOTH
def test_the_answer_says_what_the_provider_has_stored(person):
    stored = "busy" if person.provider == "google" else "outOfOffice"
    assert person.made(showAs="outOfOffice")["showAs"] == stored
    # The reminders that a provider adds to new events: those of the calendar, or fifteen minutes.
    assert person.made(reminders=None)["reminders"] == (None if person.provider == "google" else [15])


@BOTH
def test_local_times_are_in_the_zone_of_the_event(person):
    edges = {"start": "2026-12-03T09:00", "end": "2026-12-03T10:00", "timeZone": "Asia/Tokyo"}
    made = person.made(**edges)
    assert (made["start"], made["timeZone"]) == ("2026-12-03T00:00:00.000Z", "Asia/Tokyo")


@BOTH
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"showAs": "oof"}, "showAs"),
        ({"visibility": "secret"}, "visibility"),
        ({"reminders": [5, "x"]}, "reminders.1"),
        ({"reminders": [1, 2, 3, 4, 5, 6]}, "reminders"),
        ({"reminders": 5}, "reminders"),
        ({"timeZone": "Mars/Olympus"}, "timeZone"),
        ({"timeZone": "UTC", "start": "2026-12-03", "end": "2026-12-04"}, "timeZone"),
    ],
)
def test_a_bad_value_is_refused_by_its_name(person, body, param):
    answer = person.create(**body)
    assert (answer.status_code, answer.json["param"]) == (400, param)
    assert answer.json["error"].startswith(param.partition(".")[0])


def test_a_unified_event_is_refused_before_any_copy_is_written(api, new_user_with_two_accounts):
    user = new_user_with_two_accounts()
    body = {**meeting("14:00", "15:00"), "metaId": "m-1"}
    path = f"/users/{user}/calendar/events/meta"
    for field, value in {"visibility": "public", "reminders": [5, 10]}.items():
        answer = api.post(path, body | {field: value})
        assert (answer.status_code, answer.json["param"]) == (400, field)
    assert error(api.get(f"{path}/m-1"), 404) == "Event not found"
    made = one(api.post(path, body | {"showAs": "tentative"}), 201)
    # Repeated, it finds copies that say the same in different words.
    again = one(api.post(path, body | {"showAs": "tentative"}), 201)
    assert [each["id"] for each in again["events"]] == [each["id"] for each in made["events"]]
    assert one(api.put(f"{path}/m-1", {"visibility": "private"}))["visibility"] == "private"


@BOTH
def test_attendees_are_answered_as_they_were_invited(person):
    guests = [
        {"email": "grace@example.com", "name": "Grace Hopper", "optional": True},
        {"email": "room@example.com", "name": "Room 4", "resource": True},
        {"email": "bob@example.com"},
    ]
    made = person.made(attendees=guests)
    found = [
        {n: each[n] for n in each if n not in ("self", "responseStatus", "original")}
        for each in made["attendees"]
    ]
    assert found == guests
    # The attendees of an answer can be sent again.
    again = one(person.update(made["id"], attendees=made["attendees"]))
    assert again["attendees"] == made["attendees"]


def test_an_attendee_that_is_stored_as_a_resource_is_not_made_optional_silently(new_person):
    person = new_person("microsoft")
    made = person.made(attendees=[{"email": "room@example.com", "resource": True}])

    answer = person.update(made["id"], attendees=[{"email": "room@example.com", "optional": True}])

    assert (answer.status_code, answer.json["param"]) == (400, "attendees")
    assert answer.json["error"] == "attendees must not be both optional and resource at Microsoft 365"
    assert one(person.get(made["id"]))["attendees"] == made["attendees"]


INVITATION = meeting("09:00", "10:00", subject="Review", responseStatus="needsAction")


@BOTH
@pytest.mark.parametrize("response", ["accepted", "tentative", "declined"])
def test_a_response_is_answered_and_frees_or_keeps_the_time(api, new_person, provider, response):
    person = new_person(provider, events=[INVITATION])
    (event,) = api.get(f"/users/{person.user}/calendar/events", **DAY).json["data"]
    busy = f"/users/{person.user}/calendar/busy"
    assert periods(api.get(busy, **DAY)) == [("09:00", "10:00")]

    answered = one(api.post(f"{person.path(event['id'])}/response", {"response": response}))

    assert [each["responseStatus"] for each in answered["attendees"] if each["self"]] == [response]
    assert answered["subject"] == "Review"
    assert periods(api.get(busy, **DAY)) == ([] if response == "declined" else [("09:00", "10:00")])


@BOTH
@pytest.mark.parametrize("notify", [True, False])
def test_the_organizer_gets_a_message_on_request(api, sandbox, new_person, provider, notify):
    person = new_person(provider, events=[INVITATION])
    (event,) = api.get(f"/users/{person.user}/calendar/events", **DAY).json["data"]
    body = {"response": "tentative", "comment": "Perhaps", "notify": notify}

    assert api.post(f"{person.path(event['id'])}/response", body).status_code == 200

    if provider == "microsoft":
        told = [each["comment"] for each in sandbox.notices()]
        assert told == (["Perhaps"] if notify else [])
    else:
        (own,) = person.there.event(event["id"])["attendees"]
        assert own["comment"] == "Perhaps"
