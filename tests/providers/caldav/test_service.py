"""A CalDAV account in the real service, from the form to an event that another client sees."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.installation.builder import installed
from tests.providers.caldav.scripted import CALENDAR, event, multistatus, scripted, stored
from tests.providers.caldav.servers import PASSWORD, USER

pytestmark = pytest.mark.slow

DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=7)
HOURS = {"start": (DAY + timedelta(hours=9)).isoformat(), "end": (DAY + timedelta(hours=12)).isoformat()}
FRESH = {"Cache-Control": "no-cache"}


def hour(number: int) -> str:
    """An hour of that day, as iCalendar writes it."""
    return f"{DAY + timedelta(hours=number):%Y%m%dT%H%M%SZ}"


@pytest.fixture(scope="module")
def made(environment, tmp_path_factory):
    """An installation that may call servers on this machine."""
    folder = tmp_path_factory.mktemp("installed")
    with installed(environment, folder, ALMANAC_CALDAV_ALLOW_PRIVATE="true") as made:
        yield made


def connect(made, user, url, password=PASSWORD, username=USER):
    body = {"provider": "caldav", "url": url, "username": username, "password": password}
    return made.call("POST", f"/users/{user}/connections", json=body)


def starts_of(made, user, **query):
    answer = made.get(f"/users/{user}/scheduling", FRESH, slotDuration=60, **HOURS, **query)
    assert answer.status_code == 200, answer.text
    return [datetime.fromisoformat(each["start"]).hour for each in answer.json()["data"]["availableSlots"]]


@pytest.fixture
def ada(made, servers, unique):
    """A user whose account at Radicale is connected, with a main calendar of its own."""
    outside = servers("radicale").new_calendar(unique("calendar"))
    user = made.user(unique("ada"))
    answer = connect(made, user, str(outside.url))
    assert answer.status_code == 201, answer.text
    return user, outside


def test_an_account_is_connected_and_its_events_take_slots(made, ada):
    user, outside = ada
    (connection,) = made.get(f"/users/{user}/oauth").json()["data"]
    assert (connection["provider"], connection["type"], connection["alive"]) == ("caldav", "basic", True)
    assert starts_of(made, user) == [9, 10, 11]
    outside.add_event(event("one", hour(10), hour(11)))
    assert starts_of(made, user) == [9, 11]


def test_an_account_that_is_connected_again_keeps_its_main_calendar(made, ada, servers, unique):
    """Free time must not move to another calendar when a person enters a new password."""
    user, outside = ada
    outside.add_event(event("one", hour(10), hour(11)))
    again = connect(made, user, servers("radicale").url)
    assert again.status_code == 200, again.text
    assert starts_of(made, user) == [9, 11]

    other = servers("radicale").new_calendar(unique("calendar"))
    assert connect(made, user, str(other.url)).status_code == 200
    assert starts_of(made, user) == [9, 10, 11]


def test_an_account_is_one_from_its_host_and_from_its_principal(made, ada, servers):
    user, _ = ada
    url = servers("radicale").url
    for other in (f"{url}{USER}/", f"{url}{USER}", url.upper().replace("HTTP:", "http:")):
        assert connect(made, user, other).status_code == 200
    assert len(made.get(f"/users/{user}/connections").json()["data"]) == 1


def test_an_event_is_written_found_and_deleted(made, ada):
    user, outside = ada
    body = {"subject": "Review", "metaId": "m 1", **HOURS}
    path = f"/users/{user}/calendar/events/caldav"
    created = made.call("POST", f"{path}/primary", json=body)
    assert created.status_code == 201, created.text
    (seen,) = outside.events()
    assert seen.icalendar_component["SUMMARY"] == "Review"
    assert starts_of(made, user) == []

    made_event = created.json()["data"]
    calendars = made.get(f"/users/{user}/calendar").json()["data"]
    (main,) = [each["id"] for each in calendars if each["primary"]]
    assert made_event["calendarId"] == main
    one = f"{path}/{main}/{made_event['id']}"
    assert made.get(one).json()["data"]["subject"] == "Review"
    changed = made.call("PUT", one, json={"subject": "New", "end": HOURS["start"]})
    assert changed.status_code == 200, changed.text
    (seen,) = outside.events()
    assert seen.icalendar_component["SUMMARY"] == "New"
    assert made.call("DELETE", one).status_code == 200
    assert made.call("DELETE", one).status_code == 404
    assert list(outside.events()) == []


def test_a_unified_event_is_found_by_its_meta_id(made, ada):
    user, outside = ada
    body = {"subject": "Unified", "metaId": "of/all", **HOURS}
    path = f"/users/{user}/calendar/events/meta"
    assert made.call("POST", path, json=body).status_code == 201
    assert made.call("POST", path, json=body).status_code == 201
    assert len(list(outside.events())) == 1
    assert made.get(f"{path}/of%2Fall").status_code == 200
    assert made.call("DELETE", f"{path}/of%2Fall").status_code == 200
    assert list(outside.events()) == []


def test_a_slot_is_booked_once(made, ada):
    user, outside = ada
    body = {"subject": "Booked", **HOURS}
    path = f"/users/{user}/calendar/events/caldav/primary?ifFree=true"
    assert [made.call("POST", path, json=body).status_code for _ in range(2)] == [201, 409]
    assert len(list(outside.events())) == 1


def test_two_users_with_one_account_share_its_time(made, ada, unique):
    user, outside = ada
    other = made.user(unique("bea"))
    assert connect(made, other, str(outside.url)).status_code == 201
    assert [starts_of(made, each) for each in (user, other)] == [[9, 10, 11]] * 2

    def book(name):
        path = f"/users/{name}/calendar/events/caldav/primary?ifFree=true"
        return made.call("POST", path, json={"subject": "Booked", **HOURS}).status_code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(book, (user, other))) == [201, 409]
    assert len(list(outside.events())) == 1
    assert [starts_of(made, each) for each in (user, other)] == [[], []]


@pytest.mark.parametrize(
    ("url", "password", "status", "code", "param"),
    [
        ("{server}", "wrong", 401, "authorizationInvalid", None),
        ("ftp://dav.example.org", PASSWORD, 400, "validationFailed", "url"),
        ("http://127.0.0.1:9/", PASSWORD, 502, "providerError", None),
    ],
)
def test_an_account_that_cannot_be_read_is_not_stored(
    made, servers, unique, url, password, status, code, param
):
    user = made.user(unique("ada"))
    answer = connect(made, user, url.format(server=servers("radicale").url), password)
    assert (answer.status_code, answer.json()["code"], answer.json().get("param")) == (status, code, param)
    assert made.get(f"/users/{user}/oauth").json()["data"] == []


@pytest.fixture
def scripted_user(made, unique):
    """A user of a scripted server, and its script."""
    with scripted() as script:
        user = made.user(unique("ada"))
        script.say("REPORT", CALENDAR, multistatus(stored(event("one", hour(10), hour(11)))))
        assert connect(made, user, script.url).status_code == 201
        yield user, script


def test_a_rejected_password_is_said_and_ends_no_connection_at_once(made, scripted_user):
    user, script = scripted_user
    script.say("REPORT", CALENDAR, (401, b"", {"WWW-Authenticate": 'Basic realm="x"'}))
    answer = made.get(f"/users/{user}/calendar/busy", FRESH, **HOURS)
    assert (answer.status_code, answer.json()["code"]) == (401, "authorizationInvalid")
    assert "connect the account again" in answer.text
    (connection,) = made.get(f"/users/{user}/oauth").json()["data"]
    assert connection["alive"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ((429, b"", {"Retry-After": "30"}), 429),
        ((503, b"", {"Retry-After": "30"}), 502),
        ((200, b"<html>", {}), 502),
    ],
)
def test_a_server_that_does_not_answer_is_never_free(made, scripted_user, answer, status):
    user, script = scripted_user
    script.say("REPORT", CALENDAR, answer)
    slots = made.get(f"/users/{user}/scheduling", FRESH, slotDuration=60, **HOURS)
    assert slots.status_code == status, slots.text


def test_secrets_are_in_no_log_and_no_answer(made, ada):
    user, _ = ada
    answers = [
        made.get(path) for path in (f"/users/{user}", f"/users/{user}/oauth", f"/users/{user}/calendar")
    ]
    texts = made.output() + "".join(each.text for each in answers)
    assert PASSWORD not in texts
    assert "YWRhOmNvcnJlY3Q" not in texts


def test_a_private_address_is_refused_by_default(environment, tmp_path: Path, servers):
    with installed(environment, tmp_path, ALMANAC_CALDAV_ALLOW_PRIVATE="false") as made:
        answer = connect(made, made.user("ada"), servers("radicale").url)
        assert (answer.status_code, answer.json()["param"]) == (400, "url")
        answer = connect(made, "ada", servers("radicale").url.replace("http:", "https:"))
        assert (answer.status_code, answer.json()["param"]) == (400, "url")
        assert "private" in answer.json()["error"]


def test_changes_are_followed(made, ada):
    user, outside = ada
    path = f"/users/{user}/calendar/changes"
    window = {"start": HOURS["start"], "end": HOURS["end"], "calendarIds": "primary"}
    first = made.get(path, **window).json()
    assert (first["data"], first["more"], first["failedCalendars"]) == ([], False, [])
    added = outside.add_event(event("one", hour(10), hour(11)))
    second = made.get(path, cursor=first["cursor"]).json()
    (entry,) = second["data"]
    assert (entry["type"], entry["event"]["id"]) == ("updated", "one")
    added.delete()
    (entry,) = made.get(path, cursor=second["cursor"]).json()["data"]
    assert (entry["type"], entry["id"]) == ("deleted", "one")
