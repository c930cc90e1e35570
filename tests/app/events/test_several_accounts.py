"""Events of a user with several accounts of one provider: each calendar is found, each has a copy."""

from __future__ import annotations

import pytest

from tests import people
from tests.app.at_provider import NINE, AtProvider
from tests.app.days import MORNING, before_thursday, meeting, starts
from tests.conftest import connect

TEAM = "team@group.calendar.google.com"


@pytest.fixture
def accounts(sandbox):
    return [
        sandbox.account("google", "ada@example.com"),
        sandbox.account("google", "family@example.com", calendars=[{"primary": True}, {"id": TEAM}]),
        sandbox.account("microsoft", "ada@contoso.example"),
    ]


@pytest.fixture
def there(sandbox, accounts):
    return [AtProvider(sandbox, each) for each in accounts]


@pytest.fixture
def user(worker, new_user, accounts):
    return new_user(*accounts)


def ids(api, user):
    return [each["id"] for each in api.get(f"/users/{user}/connections").json["data"]]


def create(api, user, calendar, provider="google", query=None, **body):
    path = f"/users/{user}/calendar/events/{provider}/{calendar}"
    return api.post(path, {"subject": "Review", **NINE} | body, query_string=query or {})


def counts(there):
    return [len(each.events()) for each in there]


def test_primary_is_the_main_calendar_of_the_default_connection(api, user, there):
    _, second, third = ids(api, user)

    assert create(api, user, "primary").status_code == 201
    assert counts(there) == [1, 0, 0]
    assert create(api, user, "primary", query={"connection": second}).status_code == 201
    assert counts(there) == [1, 1, 0]
    api.call("PATCH", f"/users/{user}/connections/{second}", json={"default": True})
    assert create(api, user, "primary").status_code == 201
    assert counts(there) == [1, 2, 0]

    of_another = create(api, user, "primary", query={"connection": third})
    assert (of_another.status_code, of_another.json["code"]) == (404, "connectionNotFound")


@pytest.mark.parametrize("calendar", ["family@example.com", TEAM])
def test_a_calendar_is_found_in_the_account_that_has_it(api, user, there, calendar):
    made = create(api, user, calendar)
    assert made.status_code == 201, made.text
    event = made.json["data"]
    assert event["calendarId"] == calendar
    assert len(there[1].events(calendar)) == 1

    path = f"/users/{user}/calendar/events/google/{calendar}/{event['id']}"
    assert api.get(path).json["data"]["subject"] == "Review"
    assert api.put(path, {"subject": "Changed"}).json["data"]["subject"] == "Changed"
    assert api.get(path, connection=ids(api, user)[0]).status_code in (403, 404)
    assert api.delete(path).status_code == 200
    assert api.delete(path).status_code == 404


def test_a_calendar_of_nobody_is_not_found(api, user):
    answer = create(api, user, "nobody@group.calendar.google.com")

    assert (answer.status_code, answer.json["code"]) == (404, "calendarNotFound")


def test_a_list_that_cannot_be_read_decides_nothing(api, sandbox, user):
    sandbox.fault(email="family@example.com", status=429, retry_after=60)

    answer = create(api, user, TEAM)

    assert (answer.status_code, answer.json["reason"]) == (429, "rateLimited")
    assert answer.json["failedCalendars"][0]["connectionId"] == ids(api, user)[1]
    # The main calendar of another account needs no list.
    assert create(api, user, "ada@example.com").status_code == 201


def test_a_repeated_create_is_answered_again(api, user, there):
    path = f"/users/{user}/calendar/events/google/{TEAM}"
    body, key = {"subject": "Review", **NINE}, {"Idempotency-Key": "once"}

    first, again = (api.post(path, body, headers=key) for _ in range(2))

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json == first.json
    assert len(there[1].events(TEAM)) == 1


def test_if_free_reads_every_account_wherever_the_event_goes(api, sandbox, worker, new_user):
    user = new_user(
        sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]),
        sandbox.account("google", "family@example.com"),
    )
    second = ids(api, user)[1]

    taken = create(api, user, "primary", query={"connection": second, "ifFree": "true"})

    assert (taken.status_code, taken.json["code"]) == (409, "slotTaken")


def test_a_hold_takes_the_time_of_every_account(api, sandbox, worker, new_user, monkeypatch):
    before_thursday(monkeypatch)
    family = sandbox.account("google", "family@example.com")
    ada, bruno = new_user(sandbox.account("google", "ada@example.com"), family), new_user(family)

    held = api.post("/holds", {"users": [ada], **NINE})

    assert held.status_code == 201, held.text
    # The other user has the same mailbox.
    assert starts(api.get(f"/users/{bruno}/scheduling", **MORNING)) == ["10:00", "11:00"]
    again = api.post("/holds", {"users": [bruno], **NINE})
    assert (again.status_code, again.json["code"]) == (409, "slotTaken")


def test_a_conflict_names_the_connection_by_the_id_that_it_keeps(api, sandbox, worker, new_user):
    account = sandbox.account("google", "ada@example.com", events=[NINE])
    user = new_user(account)
    (first,) = ids(api, user)
    connect(api, user, account)
    assert ids(api, user) == [first]

    taken = create(api, user, "primary", query={"ifFree": "true", "calendarIds": "primary"})

    assert (taken.status_code, taken.json["code"]) == (409, "slotTaken")
    named = [each["connectionId"] for each in taken.json["conflicts"][0]["calendars"]]
    assert named == [first]


def test_a_unified_event_has_a_copy_in_each_account(api, user, there):
    path = f"/users/{user}/calendar/events/meta"

    made = api.post(path, {"subject": "Review", "metaId": "m-1", **NINE})

    assert made.status_code == 201, made.text
    assert counts(there) == [1, 1, 1]
    calendars = {each["calendarId"] for each in made.json["data"]["events"]}
    assert len(calendars) == 3
    assert calendars > {"ada@example.com", "family@example.com"}
    second = ids(api, user)[1]
    only = api.get(f"{path}/m-1", connection=second).json["data"]["events"]
    assert [each["calendarId"] for each in only] == ["family@example.com"]
    assert api.put(f"{path}/m-1", {"subject": "Changed"}).status_code == 200
    assert [each.subjects() for each in there] == [["Changed"]] * 3
    assert api.delete(f"{path}/m-1").status_code == 200
    assert counts(there) == [0, 0, 0]


def test_a_failed_copy_undoes_the_others_and_is_named(api, sandbox, user, there):
    sandbox.fault(email="family@example.com", operation="google.events.insert", status=403)

    made = api.post(f"/users/{user}/calendar/events/meta", {"subject": "Review", "metaId": "m-2", **NINE})

    assert made.status_code == 403
    assert [each["connectionId"] for each in made.json["failedCalendars"]] == [ids(api, user)[1]]
    sandbox.clear_faults()
    assert counts(there) == [0, 0, 0]


def test_a_partial_change_names_the_account(api, sandbox, user):
    path = f"/users/{user}/calendar/events/meta"
    assert api.post(path, {"subject": "Review", "metaId": "m-3", **NINE}).status_code == 201
    sandbox.fault(email="family@example.com", operation="google.events.patch", status=403)

    changed = api.put(f"{path}/m-3", {"subject": "Changed"})

    assert (
        "google (ada@example.com) and microsoft, but not in google (family@example.com)"
        in (changed.json["error"])
    )


@pytest.fixture(params=["few", "many"])
def identifications(request, stores):
    """Many: workers have identified many accounts just now, and do not invalidate caches for further ones."""
    if request.param == "many":
        stores.redis.set("main-calendars-learned", 1000, ex=60)
    yield
    stores.redis.delete("main-calendars-learned")


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_one_mailbox_has_one_copy(api, sandbox, worker, new_user, identifications, provider):
    account = sandbox.account(provider, "ada@example.com")
    user = new_user(account)
    twice = people.posted(account) | {"provider": provider, "label": "again"}
    second = sandbox.account("google", "other@example.com")
    api.post(f"/users/{user}/connections", people.posted(second) | {"provider": "google"})
    api.post(f"/users/{user}/connections", twice | {"email": None})
    assert api.get(f"/users/{user}/calendar/busy", start="2026-12-03", end="2026-12-04").status_code == 200

    made = api.post(f"/users/{user}/calendar/events/meta", {"subject": "Review", **NINE})

    assert made.status_code == 201, made.text
    assert len(made.json["data"]["events"]) == 2
    assert len(AtProvider(sandbox, account).events()) == 1


def test_lists_of_events_have_each_event_once(api, sandbox, worker, new_user, identifications):
    account = sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")])
    family = sandbox.account("google", "family@example.com", events=[meeting("10:00", "11:00")])
    user = new_user(account, family)
    api.post(f"/users/{user}/connections", people.posted(account) | {"provider": "google", "email": None})
    day = {"start": "2026-12-03", "end": "2026-12-04"}
    assert api.get(f"/users/{user}/calendar/busy", **day).status_code == 200

    listed = api.get(f"/users/{user}/calendar/events", **day)

    assert len(listed.json["data"]) == 2
    only = api.get(f"/users/{user}/calendar/events", connection=ids(api, user)[1], **day)
    assert len(only.json["data"]) == 1
