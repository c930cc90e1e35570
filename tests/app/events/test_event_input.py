"""Input for events: times and zones, texts, guests, identifiers."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.app.answers import error
from tests.app.at_provider import NINE, bare, one
from tests.app.days import PROVIDERS

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
# For requests that fail before any call to a provider.
EITHER = pytest.mark.parametrize("provider", PROVIDERS[:1])
ADA, BOB = "ada@example.com", "bob@example.com"
ODD_IDS = {
    "a slash": "AAMk/a//b/",
    "a hash": "AAMk#1",
    "a percent": "AAMk%2F%",
    "a question": "AAMk?x=1&y=2",
    "a plus and a space": "AAMk+ b",
    "letters of the world": "AAMkÅ日本🗓",
    "a dot and a slash": "AAMk/../x",
    "1024 characters": "AAMk" + "x" * 1020,
}
ODD = pytest.mark.parametrize("odd", ODD_IDS.values(), ids=ODD_IDS)


# --- times


@BOTH
@pytest.mark.parametrize(
    ("start", "zone", "expected"),
    [
        ("2026-12-03T09:00", None, "2026-12-03T09:00:00.000Z"),
        ("2026-12-03T09:00", "America/New_York", "2026-12-03T14:00:00.000Z"),
        ("2026-12-03T09:00", "W. Europe Standard Time", "2026-12-03T08:00:00.000Z"),
        ("2026-12-03T09:00+01:00", "America/New_York", "2026-12-03T08:00:00.000Z"),
        ("2026-W49-4T09:00:00,5Z", None, "2026-12-03T09:00:00.500Z"),
        ("20261203T0900", "Asia/Kolkata", "2026-12-03T03:30:00.000Z"),
        # A repeated local time: the first of the two.
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"),
    ],
)
def test_a_time_without_an_offset_is_in_the_zone_of_the_header(person, start, zone, expected):
    headers = None if zone is None else {"X-Timezone": zone}
    made = person.made(start=start, end="2026-12-31T00:00:00Z", headers=headers)
    # Google keeps whole seconds.
    assert made["start"] in (expected, expected.replace(".500", ".000"))
    assert made["end"] == "2026-12-31T00:00:00.000Z"
    changed = one(person.update(made["id"], start=start, headers=headers))
    assert changed["start"] == made["start"]


@EITHER
@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({"start": "2026-12-03T11:00:00Z"}, "end must not be before start"),
        ({"start": "2026-12-04", "end": "2026-12-03"}, "end must be after start"),
        ({"start": "2026-12-03", "end": "2026-12-03"}, "end must be after start"),
        ({"start": "2026-12-03"}, "start and end must both be dates, or both have a time"),
        ({"end": "2026-12-04"}, "start and end must both be dates, or both have a time"),
        ({"start": ""}, "start must be an ISO 8601 date"),
        ({"start": 1764752400000}, "start must be an ISO 8601 date"),
        ({"start": "2026-02-29"}, "start names a date or time that does not exist"),
        ({"end": "9999-12-31T00:00:00Z"}, "end must lie in the years 1970 to 2199"),
    ],
    ids=str,
)
def test_times_that_make_no_event_are_refused(sandbox, person, times, expected):
    sent = NINE | times
    assert error(person.api.post(person.path(), sent), 400).startswith(expected)
    assert error(person.api.put(person.path("AAMk1"), sent), 400).startswith(expected)
    assert sandbox.requests().total == 0


@EITHER
@pytest.mark.parametrize("missing", ["start", "end"])
def test_a_new_event_needs_both_edges(person, missing):
    body = {name: at for name, at in NINE.items() if name != missing}
    assert error(person.api.post(person.path(), body), 400) == f"{missing} is required"


@BOTH
def test_an_event_may_have_no_length(person):
    made = person.made(end=NINE["start"])
    assert made["start"] == made["end"] == "2026-12-03T09:00:00.000Z"


@BOTH
def test_time_zone_in_the_query_of_a_write_goes_before_the_header(person):
    local = {"start": "2026-12-03T09:00", "end": "2026-12-31T00:00:00Z"}
    zoned = f"{person.path()}?timeZone=America%2FNew_York"
    made = person.api.post(zoned, local, headers={"X-Timezone": "Asia/Tokyo"}).json["data"]
    assert made["start"] == "2026-12-03T14:00:00.000Z"
    changed = f"{person.path(made['id'])}?timeZone=Asia%2FTokyo"
    assert one(person.api.put(changed, local))["start"] == "2026-12-03T00:00:00.000Z"
    meta = f"/users/{person.user}/calendar/events/meta"
    made = one(person.api.post(f"{meta}?timeZone=Asia%2FTokyo", {"metaId": "m-z", **local}), 201)
    assert made["start"] == "2026-12-03T00:00:00.000Z"
    changed = one(person.api.put(f"{meta}/m-z?timeZone=America%2FNew_York", local))
    assert changed["start"] == "2026-12-03T14:00:00.000Z"
    assert error(person.api.put(f"{meta}/m-z?timeZone=Mars", local), 400).startswith("timeZone")


ORDER = "end must not be before start"
KINDS = "start and end must both be dates, or both have a time"


@BOTH
@pytest.mark.parametrize(
    ("edge", "expected"),
    [
        ({"end": "2026-12-03T08:00:00Z"}, ORDER),
        ({"start": "2026-12-03T12:00:00Z"}, ORDER),
        ({"end": "2026-12-04"}, KINDS),
        ({"start": "2026-12-03"}, KINDS),
    ],
    ids=str,
)
def test_start_or_end_that_conflicts_with_stored_event_is_named(person, edge, expected):
    made = person.made()
    assert error(person.update(made["id"], **edge), 400) == expected
    assert bare(one(person.get(made["id"]))) == bare(made)


@BOTH
def test_a_time_for_one_edge_of_an_all_day_event_is_named(person):
    made = person.made(start="2026-12-03", end="2026-12-04")
    assert error(person.update(made["id"], end="2026-12-04T12:00:00Z"), 400) == KINDS
    assert bare(one(person.get(made["id"]))) == bare(made)


@BOTH
def test_other_update_errors_keep_the_message_of_the_provider(sandbox, person):
    made = person.made()
    operation = {"google": "google.events.patch", "microsoft": "microsoft.events.update"}[person.provider]
    sandbox.fault(operation=operation, status=400, reason="other", times=1)
    expected = error(person.update(made["id"], end="2026-12-03T11:00:00Z"), 400)
    assert expected.startswith({"google": "Google", "microsoft": "Microsoft 365"}[person.provider])


@EITHER
def test_an_unknown_zone_is_refused(person):
    for answer in (
        person.create(headers={"X-Timezone": "Mars/Olympus"}),
        person.update("AAMk1", subject="x", headers={"X-Timezone": "Mars/Olympus"}),
    ):
        assert error(answer, 400).startswith("X-Timezone")


# --- texts, guests, meetings


@EITHER
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"subject": 5}, "subject must be a string"),
        ({"subject": "x" * 1025}, "subject must have"),
        ({"subject": "a\nb"}, "subject must not contain control characters"),
        ({"description": "a\x00b"}, "description must not contain control characters"),
        ({"description": "x" * 32_769}, "description must have at most 32768 characters"),
        ({"location": []}, "location must be a string"),
        ({"attendees": BOB}, "attendees must be an array"),
        ({"attendees": [BOB]}, "attendees[0] must be an object"),
        ({"attendees": [{}]}, "attendees[0].email is required"),
        ({"attendees": [{"email": "bob"}]}, "attendees[0].email must be an e-mail address"),
        (
            {"attendees": [{"email": f"{n}@example.com"} for n in range(201)]},
            "attendees must have at most 200",
        ),
        ({"meeting": False}, "meeting must be true, or an object"),
        ({"meeting": {}}, "meeting must be true, or an object"),
        ({"meeting": {"url": "javascript:alert(1)"}}, "meeting.url must begin with https:// or http://"),
        ({"meeting": {"url": "https://"}}, "meeting.url must begin with https:// or http://"),
        ({"meeting": {"url": "https://exämple.com/x"}}, "meeting.url must be ASCII"),
        ({"meeting": {"url": "https://example.com/ä"}}, "meeting.url must be ASCII"),
        ({"meeting": {"url": "http://[x"}}, "meeting"),
        ({"meeting": {"url": "https://a:b/"}}, "meeting"),
        ({"meeting": {"url": "ftp://x"}}, "meeting"),
        ({"meeting": {"url": 7}}, "meeting"),
        ({"sendNotifications": "yes"}, "sendNotifications must be true or false"),
        ({"sendNotifications": 1}, "sendNotifications must be true or false"),
        ({"sendNotifications": "true"}, "sendNotifications"),
        ({"metaId": ""}, "metaId must have 1 to 1024 characters"),
        ({"metaId": "x" * 1025}, "metaId must have 1 to 1024 characters"),
        ({"metaId": 5}, "metaId must be a string"),
        ({"metaId": "."}, "metaId must not be . or .."),
        ({"metaId": ".."}, "metaId must not be . or .."),
    ],
    ids=lambda value: str(value)[:40],
)
def test_fields_that_make_no_sense_are_refused(sandbox, person, sent, expected):
    assert error(person.create(**sent), 400).startswith(expected)
    assert error(person.update("AAMk1", **sent), 400).startswith(expected)
    assert sandbox.requests().total == 0


@BOTH
def test_texts_of_every_alphabet_come_back_as_they_were_sent(person):
    texts = {
        "subject": "日本 🗓 <b>'\"&amp;",
        "description": "a < b & c > d\n\n  two spaces  and\ta tab\nhttps://example.com/?a=1&b=2",
        "location": "Åre / Café №7",
    }
    made = person.made(**texts)
    assert {name: made[name] for name in texts} == texts


@BOTH
def test_guest_named_twice_is_invited_once(person):
    made = person.made(attendees=[{"email": BOB}, {"email": BOB.upper()}, {"email": BOB, "name": "Bob"}])
    assert [each["email"] for each in made["attendees"]] == [BOB]


@BOTH
@pytest.mark.parametrize("expected", ["true", "false"])
def test_a_delete_takes_whether_guests_are_notified(person, expected):
    made = person.made(attendees=[{"email": BOB}], sendNotifications=expected == "true")
    assert error(person.delete(made["id"], sendNotifications="yes"), 400).startswith("sendNotifications")
    assert person.delete(made["id"], sendNotifications=expected).status_code == 200


# --- identifiers


@ODD
@BOTH
def test_an_event_that_is_not_there_is_404_whatever_its_id_is_made_of(person, odd):
    for answer in (person.get(odd), person.update(odd, subject="x"), person.delete(odd)):
        assert error(answer, 404) == "Event not found"


@ODD
@BOTH
def test_a_calendar_is_reached_whatever_its_id_is_made_of(new_person, provider, odd):
    person = new_person(provider, calendars=[{"primary": True}, {"id": odd}])
    made = person.made(calendar=odd, subject="There")
    assert made["calendarId"] == odd
    assert one(person.get(made["id"], calendar=odd)) == made
    assert one(person.update(made["id"], calendar=odd, subject="Still"))["subject"] == "Still"
    assert person.there.subjects(odd) == ["Still"]
    assert person.there.subjects() == []
    assert person.delete(made["id"], calendar=odd).status_code == 200


@ODD
@BOTH
def test_a_calendar_that_is_not_there_is_404(person, odd):
    answers = [
        person.create(calendar=odd),
        person.get("AAMk1", calendar=odd),
        person.update("AAMk1", calendar=odd, subject="x"),
        person.delete("AAMk1", calendar=odd),
    ]
    assert [error(answer, 404) for answer in answers] == ["Calendar not found"] * 4


def test_a_calendar_id_that_microsoft_cannot_read_is_400(new_person):
    person = new_person("microsoft")
    for answer in (person.create(calendar="team"), person.get("AAMk1", calendar="team")):
        assert error(answer, 400) == "Microsoft 365 cannot read this calendar id"


@EITHER
@pytest.mark.parametrize(
    "segment", ["%00", "a%0Ab", "%FF", "50%", "%2E%2E", "x" * 2049], ids=lambda value: value[:12]
)
def test_impossible_ids_are_not_found_without_a_call(sandbox, person, segment):
    base = f"/users/{person.user}/calendar/events/{person.provider}"
    assert error(person.api.post(f"{base}/{segment}", NINE), 404) == "Calendar not found"
    assert error(person.api.get(f"{base}/primary/{segment}"), 404) == "Event not found"
    assert sandbox.requests().total == 0


@BOTH
def test_a_missing_user_account_or_calendar_is_named(api, sandbox, new_user, person):
    other = {"google": "microsoft", "microsoft": "google"}[person.provider]
    for path, expected in (
        (f"/users/nobody/calendar/events/{person.provider}/primary", "User not found"),
        (f"/users/{person.user}/calendar/events/{other}/primary", "OAuth connection not found"),
        (f"/users/{new_user()}/calendar/events/{person.provider}/primary", "OAuth connection not found"),
    ):
        assert error(api.post(path, NINE), 404) == expected
        for method in ("GET", "PUT", "DELETE"):
            body = {"json": {}} if method == "PUT" else {}
            assert error(api.call(method, f"{path}/{quote('AAMk1')}", **body), 404) == expected
    apple = f"/users/{person.user}/calendar/events/apple/primary"
    assert error(api.post(apple, NINE), 400) == "provider must be one of google, microsoft, caldav, ics"
