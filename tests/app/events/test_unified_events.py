"""Unified events: one copy in the main calendar of each account, all with the same metaId."""

from __future__ import annotations

import pytest

from app.events import worker_calls
from providers.base import Failed
from providers.errors import Problem, Reason
from tests.app.answers import error
from tests.app.at_provider import NINE, one
from tests.app.days import DAY, PROVIDERS, periods
from tests.app.two_accounts import ADA, SHOWN, Both
from workers.jobs import Reply

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
BOB = "bob@example.com"
OTHER = {"google": "microsoft", "microsoft": "google"}


@pytest.fixture
def both(api, sandbox, new_user):
    return Both.connected(api, sandbox, new_user)


def test_an_event_is_created_in_every_account_and_answered_as_one(both):
    answer = both.create(
        metaId="m-1",
        subject="Review",
        description="Agenda",
        location="Room 1",
        attendees=[{"email": BOB}, {"email": ADA["google"]}],
    )

    assert answer.json.keys() == {"data", "failedCalendars"}
    made = one(answer, 201)
    originals, attendees, copies = (made.pop(name) for name in ("originals", "attendees", "events"))
    assert made == {
        "metaId": "m-1",
        "subject": "Review",
        "description": "Agenda",
        "location": "Room 1",
        "start": "2026-12-03T09:00:00.000Z",
        "end": "2026-12-03T10:00:00.000Z",
        "status": "confirmed",
        "showAs": "busy",
        "visibility": "default",
        "reminders": None,
        "timeZone": "UTC",
    }
    assert [(each["email"], each["self"], len(each["originals"])) for each in attendees] == [
        (BOB, False, 2),
        (ADA["google"], True, 2),
    ]
    assert [(each["provider"], each["calendarId"]) for each in copies] == list(SHOWN.items())
    assert [each["id"] for each in originals] == [each["id"] for each in copies]
    assert both.subjects() == {"google": ["Review"], "microsoft": ["Review"]}


def test_each_copy_is_an_event_like_any_other(api, both):
    for copy in one(both.create(metaId="m-1", subject="Review"), 201)["events"]:
        path = f"/users/{both.user}/calendar/events/{copy['provider']}/{copy['calendarId']}/{copy['id']}"
        event = one(api.get(path))
        assert (event["subject"], event["metaId"]) == ("Review", "m-1")
        assert event["calendarId"] == copy["calendarId"]
    listed = api.get(f"/users/{both.user}/calendar/events", **DAY).json["data"]
    assert [each["metaId"] for each in listed] == ["m-1", "m-1"]


def test_it_is_read_by_its_metaid(both):
    made = one(both.create(metaId="m-1", subject="Review", attendees=[{"email": BOB}]), 201)
    answer = both.get("m-1")
    assert answer.json.keys() == {"data", "failedCalendars"}
    read = one(answer)
    assert [each["id"] for each in read.pop("originals")] == [each["id"] for each in made.pop("originals")]
    attendees = [[(each["email"], each["self"]) for each in event.pop("attendees")] for event in (read, made)]
    assert attendees[0] == attendees[1] == [(BOB, False)]
    assert read == made


def test_a_metaid_is_generated_where_none_is_sent(both):
    first, second = one(both.create(), 201), one(both.create(), 201)
    assert first["metaId"] != second["metaId"]
    assert one(both.get(first["metaId"]))["events"] == first["events"]


def test_all_day(both):
    made = one(both.create(metaId="m-1", start="2026-12-03", end="2026-12-04"), 201)
    assert (made["allDay"], made["start"]) == (True, "2026-12-03T00:00:00.000Z")
    assert one(both.get("m-1"))["allDay"] is True


def test_a_meeting_elsewhere_is_in_every_copy(both):
    made = one(both.create(metaId="m-1", meeting={"url": "https://meet.example.com/1"}), 201)
    assert (made["meetingUrl"], made["location"]) == ("https://meet.example.com/1",) * 2
    assert one(both.get("m-1", provider="microsoft"))["meetingUrl"] == "https://meet.example.com/1"


@pytest.mark.parametrize("meta_id", ["a/b#c%2F d?e=f&g", "日本 🗓 'x'", "x" * 1024, "meta", "primary"])
def test_a_metaid_is_any_text(both, meta_id):
    assert one(both.create(metaId=meta_id, subject="Old"), 201)["metaId"] == meta_id
    assert len(one(both.get(meta_id))["events"]) == 2
    assert one(both.update(meta_id, subject="New"))["subject"] == "New"
    assert both.delete(meta_id).status_code == 200
    assert both.subjects() == {"google": [], "microsoft": []}


# --- change and delete


def test_a_change_reaches_every_copy_and_nothing_that_was_not_sent(both):
    both.create(metaId="m-1", subject="Old", description="Same", location="Same", attendees=[{"email": BOB}])
    changed = one(both.update("m-1", subject="New", end="2026-12-03T11:00:00Z"))
    assert (changed["subject"], changed["end"]) == ("New", "2026-12-03T11:00:00.000Z")
    assert (changed["description"], changed["location"]) == ("Same", "Same")
    assert [each["email"] for each in changed["attendees"]] == [BOB]
    assert both.subjects() == {"google": ["New"], "microsoft": ["New"]}
    for provider in PROVIDERS:
        copy = one(both.get("m-1", provider=provider))
        assert (copy["description"], copy["end"]) == ("Same", "2026-12-03T11:00:00.000Z")


def test_a_new_metaid_takes_the_place_of_the_old(both):
    both.create(metaId="m-1")
    assert one(both.update("m-1", metaId="m-2"))["metaId"] == "m-2"
    assert len(one(both.get("m-2"))["events"]) == 2
    assert error(both.get("m-1"), 404) == "Event not found"


def test_deleted_event_is_removed_everywhere_and_frees_its_metaid(both):
    both.create(metaId="m-1", subject="First")
    answer = both.delete("m-1")
    assert (answer.status_code, answer.json) == (200, {"data": {"success": True}})
    assert both.subjects() == {"google": [], "microsoft": []}
    for repeated in (both.delete("m-1"), both.get("m-1"), both.update("m-1", subject="x")):
        assert error(repeated, 404) == "Event not found"
    assert one(both.create(metaId="m-1", subject="Second"), 201)["subject"] == "Second"
    assert both.subjects() == {"google": ["Second"], "microsoft": ["Second"]}


def test_a_busy_read_sees_every_write(api, both):
    def busy():
        return periods(api.get(f"/users/{both.user}/calendar/busy", **DAY))

    assert busy() == []
    both.create(metaId="m-1")
    assert busy() == [("09:00", "10:00")]
    both.update("m-1", end="2026-12-03T11:00:00Z")
    assert busy() == [("09:00", "11:00")]
    both.delete("m-1")
    assert busy() == []


# --- some of the accounts


@BOTH
def test_a_provider_filter_leaves_the_other_account_alone(both, provider):
    made = one(both.create(query={"provider": provider}, metaId="m-1", subject="Here"), 201)
    assert [each["provider"] for each in made["events"]] == [provider]
    assert both.subjects() == {provider: ["Here"], OTHER[provider]: []}
    assert error(both.get("m-1", provider=OTHER[provider]), 404) == "Event not found"
    assert error(both.delete("m-1", provider=OTHER[provider]), 404) == "Event not found"
    one(both.update("m-1", query={"provider": provider}, subject="Still"))
    assert both.delete("m-1", provider=provider).status_code == 200


@BOTH
def test_an_account_without_a_copy_is_passed_over(both, provider):
    made = one(both.create(metaId="m-1", subject="Old"), 201)
    lost = next(each["id"] for each in made["events"] if each["provider"] == provider)
    both.there[provider].delete(lost)
    for answer in (both.get("m-1"), both.update("m-1", subject="New")):
        assert [each["provider"] for each in one(answer)["events"]] == [OTHER[provider]]
        assert answer.json["failedCalendars"] == []
    assert both.subjects() == {provider: [], OTHER[provider]: ["New"]}
    assert both.delete("m-1").status_code == 200
    assert both.subjects() == {"google": [], "microsoft": []}


def test_copies_outside_the_main_calendar_are_ignored(api, sandbox, new_user):
    both = Both.connected(api, sandbox, new_user, calendars=[{"primary": True}, {"id": "AAMk-team"}])
    path = f"/users/{both.user}/calendar/events/google/AAMk-team"
    assert api.post(path, NINE | {"metaId": "m-1"}).status_code == 201
    assert error(both.get("m-1"), 404) == "Event not found"


# --- idempotency


def test_repeated_create_with_same_metaid_makes_no_second_copy(both):
    first = one(both.create(metaId="m-1", subject="Once"), 201)
    again = one(both.create(metaId="m-1", subject="Once"), 201)
    assert again["events"] == first["events"]
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


def test_different_create_with_same_metaid_is_409(both):
    both.create(metaId="m-1", subject="Once")
    answer = both.create(metaId="m-1", subject="Other")
    assert answer.status_code == 409
    assert (answer.json["data"], answer.json["metaId"]) == (None, "m-1")
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


@BOTH
def test_metaid_in_use_in_one_account_prevents_the_other_copy(both, provider):
    both.create(query={"provider": provider}, metaId="m-1", subject="Once")
    assert both.create(metaId="m-1", subject="Other").status_code == 409
    assert both.subjects() == {provider: ["Once"], OTHER[provider]: []}


@BOTH
def test_the_same_request_adds_the_copy_that_is_missing(both, provider):
    both.create(query={"provider": provider}, metaId="m-1", subject="Once")
    assert len(one(both.create(metaId="m-1", subject="Once"), 201)["events"]) == 2
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}


def test_an_idempotency_key_replaces_a_missing_metaid(both):
    key = {"Idempotency-Key": "unified"}
    first, again = both.create(subject="Once", headers=key), both.create(subject="Once", headers=key)
    assert first.json == again.json
    assert again.headers["Idempotency-Replayed"] == "true"
    assert both.subjects() == {"google": ["Once"], "microsoft": ["Once"]}
    error(both.create(subject="Other", headers=key), 422)


# --- access and input


@pytest.mark.parametrize("known", [True, False])
def test_a_user_without_accounts_has_nothing_to_write_to(api, new_user, known):
    path = f"/users/{new_user() if known else 'nobody'}/calendar/events/meta"
    answers = [
        api.post(path, NINE),
        api.get(f"{path}/m-1"),
        api.put(f"{path}/m-1", {}),
        api.delete(f"{path}/m-1"),
    ]
    expected = "User has no connected calendars" if known else "User not found"
    assert [error(each, 404) for each in answers] == [expected] * 4


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"end": "2026-12-03T08:00:00Z"}, "end must not be before start"),
        ({"sendNotificationsFor": "google"}, "sendNotificationsFor must be an array"),
        ({"sendNotificationsFor": ["apple"]}, "sendNotificationsFor[0] must be one of"),
    ],
    ids=str,
)
def test_invalid_input_is_refused_before_any_write(sandbox, both, sent, expected):
    assert error(both.create(**sent), 400).startswith(expected)
    assert error(both.update("m-1", **(NINE | sent)), 400).startswith(expected)
    assert sandbox.requests().total == 0


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, False),
        ({"sendNotificationsFor": []}, False),
        ({"sendNotificationsFor": ["microsoft"]}, False),
        ({"sendNotificationsFor": ["google"]}, True),
        ({"sendNotificationsFor": ["google", "microsoft"]}, True),
    ],
    ids=str,
)
def test_google_notifies_guests_when_it_is_named(sandbox, both, sent, expected):
    def notices():
        return [(each["operation"], each["guests"]) for each in sandbox.notices()]

    both.create(metaId="m-1", attendees=[{"email": BOB}], **sent)
    both.update("m-1", subject="New", **sent)
    both.delete("m-1", **{name: ",".join(value) for name, value in sent.items()})
    operations = ("google.events.insert", "google.events.patch", "google.events.delete")
    assert notices() == ([(each, [BOB]) for each in operations] if expected else [])


# --- one copy is missing, and the other has changed


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("narrowed", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"subject": "New"},
        {"description": "Other"},
        {"location": "Room 2"},
        {"start": "2026-12-03T08:00:00Z"},
        {"attendees": [{"email": "eve@example.com"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_missing_copy_is_not_made_beside_one_with_other_content(both, provider, narrowed, change):
    body = {"metaId": "m-1", "subject": "Old", "location": "Room 1"}
    one(both.create(**body), 201)
    one(both.update("m-1", **change))
    both.there[provider].delete(both.there[provider].events()[0]["id"])
    answer = both.create(query={"provider": provider} if narrowed else None, **body)
    other = {"google": "microsoft", "microsoft": "google"}[provider]
    assert answer.status_code == 409, answer.text
    assert answer.json["metaId"] == "m-1"
    assert f"The event m-1 exists in {other} with other content" in answer.json["error"]
    assert both.there[provider].events() == []
    # A create with the content of the remaining copy creates the missing one again.
    both.delete("m-1")
    assert len(one(both.create(**body), 201)["events"]) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "body",
    [
        {"subject": "Same", "description": "One\n\n two  \n", "attendees": [{"email": "Bob@Example.com"}]},
        {"start": "2026-12-03", "end": "2026-12-05"},
        {"start": "2026-12-03T09:00:00.123Z"},
        {"meeting": True, "description": "Agenda"},
        {"meeting": {"url": "https://meet.example.com/a"}},
    ],
    ids=["texts", "days", "fractions", "meeting", "url"],
)
def test_missing_copy_is_created_beside_an_equal_one(both, provider, body):
    one(both.create(metaId="m-1", **body), 201)
    both.there[provider].delete(both.there[provider].events()[0]["id"])
    assert len(one(both.create(metaId="m-1", **body), 201)["events"]) == 2
    assert {name: len(there.events()) for name, there in both.there.items()} == {"google": 1, "microsoft": 1}


def test_a_create_without_an_answer_does_not_delete_the_copy_of_an_earlier_request(both, monkeypatch):
    """A copy that it may have created has its own mark."""
    assert both.create(metaId="m-1", subject="Review").status_code == 201
    (lost,) = both.there["microsoft"].events()
    both.there["microsoft"].delete(lost["id"])
    unknown = Failed(Reason.PROVIDER_ERROR, "no answer", problem=Problem.OUTCOME_UNKNOWN)

    with monkeypatch.context() as patched:
        patched.setattr(worker_calls, "send", lambda jobs, **_: dict.fromkeys(jobs, Reply(failed=unknown)))
        answer = both.create(metaId="m-1", subject="Review")

    assert (answer.status_code, answer.json["code"]) == (502, "outcomeUnknown")
    assert both.subjects() == {"google": ["Review"], "microsoft": []}


@pytest.mark.parametrize("field", [{"visibility": "public"}, {"reminders": [5, 10]}])
def test_a_copy_in_another_account_that_cannot_store_the_content_has_other_content(api, both, field):
    google = {"metaId": "m-1", "query": {"provider": "google"}, **field}
    first = one(both.create(**google), 201)
    alone = f"/users/{both.user}/calendar/events/microsoft/primary"
    one(api.post(alone, {**NINE, "metaId": "m-1"}), 201)

    # Nothing is missing where the event is to be: the copy of the other account does not matter.
    assert one(both.create(**google), 201)["events"] == first["events"]
    assert both.delete("m-1", provider="google").status_code == 200
    answer = both.create(**google)
    assert (answer.status_code, answer.json["code"]) == (409, "eventCopiesDiffer")
    assert both.subjects()["google"] == []
