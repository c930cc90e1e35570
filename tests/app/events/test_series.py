"""Series through the API: their recurrence, and the parts of them that a change or a deletion concerns."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app.answers import error
from tests.app.at_provider import one
from tests.app.days import PROVIDERS
from tests.fuzz import recurrences

pytestmark = pytest.mark.usefixtures("worker")

BOTH = pytest.mark.parametrize("provider", PROVIDERS)
# Thursdays; the clock of Berlin is set back on 25 October.
FIRST = {"start": "2026-10-15T09:00", "end": "2026-10-15T10:00", "timeZone": "Europe/Berlin"}
WEEKLY = {"recurrence": ["RRULE:FREQ=WEEKLY;COUNT=4"]}
WEEKS = {"start": "2026-10-01", "end": "2026-12-01"}
STARTS = ["10-15T07:00", "10-22T07:00", "10-29T08:00", "11-05T08:00"]


def listed(api, person):
    return api.get(f"/users/{person.user}/calendar/events", **WEEKS).json["data"]


def starts(api, person):
    return [each["start"][5:16] for each in listed(api, person)]


def busy(api, person):
    found = api.get(f"/users/{person.user}/calendar/busy", **WEEKS).json["data"]
    return [each["start"][5:16] for each in found]


@BOTH
def test_a_series_is_created_and_read_and_never_offered(api, person):
    made = person.made(**FIRST, **WEEKLY)
    (rule,) = made["recurrence"]
    assert rule.startswith("RRULE:FREQ=WEEKLY")
    assert made["timeZone"] == "Europe/Berlin"
    assert starts(api, person) == busy(api, person) == STARTS
    assert {each["seriesId"] for each in listed(api, person)} == {made["id"]}
    assert not any("recurrence" in each for each in listed(api, person))
    assert one(person.get(made["id"]))["recurrence"] == made["recurrence"]
    day = {"start": "2026-10-29T07:00:00Z", "end": "2026-10-29T10:00:00Z", "slotDuration": "60"}
    slots = api.get(f"/users/{person.user}/scheduling", **day).json["data"]["availableSlots"]
    assert [each["start"][11:16] for each in slots] == ["07:00", "09:00"]


@BOTH
def test_every_scope_changes_and_deletes_its_part(api, person):
    series = person.made(**FIRST, **WEEKLY)
    second = listed(api, person)[1]["id"]

    changed = one(api.put(person.path(second), {"subject": "All"}, query_string={"scope": "series"}))
    assert changed["id"] == series["id"]
    later = one(
        api.put(
            person.path(listed(api, person)[2]["id"]),
            {"subject": "Later", "start": "2026-10-29T12:00:00Z", "end": "2026-10-29T13:00:00Z"},
            query_string={"scope": "following"},
        )
    )
    assert later["recurrence"]
    one(api.put(person.path(second), {"subject": "One"}, query_string={"scope": "occurrence"}))
    assert [each["subject"] for each in listed(api, person)] == ["All", "One", "Later", "Later"]
    moved = [*STARTS[:2], "10-29T12:00", "11-05T12:00"]
    assert starts(api, person) == busy(api, person) == moved

    last = listed(api, person)[3]["id"]
    assert person.delete(last, scope="following").status_code == 200
    assert starts(api, person) == busy(api, person) == moved[:3]
    assert person.delete(second, scope="occurrence").status_code == 200
    assert starts(api, person) == busy(api, person) == [moved[0], moved[2]]
    assert person.delete(listed(api, person)[0]["id"], scope="series").status_code == 200
    assert starts(api, person) == busy(api, person) == moved[2:3]


@BOTH
def test_a_condition_is_refused_for_a_series(api, person):
    series = {**FIRST, **WEEKLY}
    answer = api.post(person.path(), series, query_string={"ifFree": "true"})
    assert (answer.status_code, answer.json["param"]) == (400, "ifFree")
    person.made(**series)
    second = listed(api, person)[1]["id"]
    for scope in ("series", "following"):
        answer = person.move(second, {"subject": "New", **FIRST}, scope=scope)
        assert (answer.status_code, answer.json["param"]) == (400, "ifFree")
    answer = person.move(second, WEEKLY)
    assert (answer.status_code, answer.json["param"]) == (400, "ifFree")
    assert person.move(second, {"subject": "New"}, scope="occurrence").status_code == 200


def test_a_unified_series_is_made_in_every_account_or_in_none(api, new_user_with_two_accounts):
    user = new_user_with_two_accounts()
    path = f"/users/{user}/calendar/events/meta"
    body = {"subject": "Review", **FIRST, "metaId": "m-1"}
    answer = api.post(path, body | {"recurrence": ["RRULE:FREQ=MONTHLY;BYMONTHDAY=15,16"]})
    assert (answer.status_code, answer.json["param"]) == (400, "recurrence")
    assert error(api.get(f"{path}/m-1"), 404) == "Event not found"
    made = one(api.post(path, body | WEEKLY), 201)
    assert made["recurrence"]
    # Repeated, it finds copies whose rules are in other words.
    again = one(api.post(path, body | WEEKLY), 201)
    assert [each["id"] for each in again["events"]] == [each["id"] for each in made["events"]]
    for call in (
        api.put(f"{path}/m-1?scope=series", {"subject": "New"}),
        api.delete(f"{path}/m-1?scope=series"),
    ):
        assert (call.status_code, call.json["param"]) == (400, "scope")
    assert one(api.put(f"{path}/m-1", {"subject": "New"}))["subject"] == "New"


@BOTH
@pytest.mark.parametrize(
    "recurrence",
    [
        "RRULE:FREQ=DAILY",
        5,
        [],
        [5],
        ["FREQ=DAILY"],
        ["RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"],
        ["RRULE:FREQ=DAILY;COUNT=2;UNTIL=20270101T000000Z"],
        ["RRULE:FREQ=SECONDLY"],
        ["RRULE:FREQ=MINUTELY;UNTIL=99991231T235959Z"],
        ["RRULE:FREQ=DAILY;COUNT=99999999"],
        ["RRULE:FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=0,30"],
        ["RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"],
        ["RRULE:FREQ=DAILY;UNTIL=20270101"],
        ["RRULE:FREQ=DAILY;INTERVAL=0"],
        ["RRULE:FREQ=WEEKLY;BYDAY=MO"],
        ["RRULE:" + "FREQ=DAILY;" * 5000],
        ["RRULE:FREQ=DAILY"] * 100,
        ["RRULE:FREQ=DAILY", *["EXDATE:" + ",".join(["20261016T070000Z"] * 200)] * 3],
        ["RRULE:FREQ=DAILY", "DTSTART:20261016T070000Z"],
        ["RRULE:FREQ=DAILY", "EXDATE:20261016T090000"],
        ["RRULE:FREQ=DAILY", "EXDATE;VALUE=DATE:20261016"],
        ["RRULE:FREQ=DAILY\r\nATTENDEE:mailto:x@example.com"],
    ],
)
def test_a_bad_recurrence_is_refused_by_its_name_and_at_once(api, person, recurrence):
    began = time.monotonic()
    answer = person.create(**FIRST, recurrence=recurrence)
    assert answer.status_code == 400
    assert answer.json["param"].partition(".")[0] == "recurrence"
    assert time.monotonic() - began < 5
    assert listed(api, person) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(recurrence=recurrences.TEXTS, day=st.booleans())
def test_no_recurrence_makes_the_service_fail(google_person, recurrence, day):
    edges = {"start": "2026-10-15", "end": "2026-10-16"} if day else FIRST
    answer = google_person.create(**edges, recurrence=recurrence)
    assert answer.status_code in (201, 400), answer.text
    if answer.status_code == 400:
        assert answer.json["param"].partition(".")[0] == "recurrence", answer.text


@pytest.fixture
def google_person(new_person):
    return new_person("google")
