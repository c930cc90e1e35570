"""Several accounts of one provider: each is read, and one mailbox counts once, compared with an oracle."""

from __future__ import annotations

from typing import Any

import pytest

from store.sql.queries import connections
from tests import people
from tests.app.days import DAY, MORNING, meeting, periods, starts
from tests.conftest import stores_of

NO_CACHE = {"Cache-Control": "no-cache"}


def ids(api, user):
    return [each["id"] for each in api.get(f"/users/{user}/connections").json["data"]]


@pytest.fixture
def accounts(sandbox):
    return [
        sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]),
        sandbox.account("google", "family@example.com", events=[meeting("10:00", "11:00")]),
        sandbox.account("microsoft", "ada@contoso.example", events=[meeting("11:00", "12:00")]),
    ]


@pytest.fixture
def user(worker, new_user, accounts):
    return new_user(*accounts)


def test_every_account_counts_and_can_be_chosen(api, user):
    one, two, three = ids(api, user)

    def busy(**query):
        return periods(api.get(f"/users/{user}/calendar/busy", **DAY, **query))

    assert busy() == [("09:00", "12:00")]
    assert busy(provider="google") == [("09:00", "11:00")]
    assert busy(connection=two) == [("10:00", "11:00")]
    assert busy(connection=[one, three]) == [("09:00", "10:00"), ("11:00", "12:00")]
    assert busy(connection=f"{one},{two}", provider="google") == [("09:00", "11:00")]
    assert starts(api.get(f"/users/{user}/scheduling", connection=two, **MORNING)) == ["09:00", "11:00"]
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == []

    other = api.get(f"/users/{user}/calendar/busy", connection=two, provider="microsoft", **DAY)
    assert (other.status_code, other.json["code"]) == (404, "noConnectedCalendars")


ROUTES = [
    ("GET", "/users/{user}/calendar/busy", None),
    ("GET", "/users/{user}/calendar", None),
    ("GET", "/users/{user}/calendar/events", None),
    ("GET", "/users/{user}/scheduling", None),
    ("GET", "/users/{user}/scheduling/explain", None),
    ("POST", "/users/{user}/scheduling", {"schedules": []}),
    ("POST", "/users/scheduling", {"users": [{"id": "{user}"}]}),
    ("POST", "/users/scheduling/explain", {"users": [{"id": "{user}"}]}),
    ("POST", "/users/calendar/busy", {"users": [{"id": "{user}"}]}),
    ("GET", "/organizations/{slug}/calendar/busy", None),
    ("GET", "/organizations/{slug}/scheduling", None),
    ("GET", "/organizations/{slug}/scheduling/explain", None),
    ("POST", "/organizations/{slug}/scheduling", {"schedules": []}),
    ("POST", "/scheduling", {"participants": [{"users": ["{user}"]}]}),
    ("POST", "/scheduling/explain", {"participants": [{"users": ["{user}"]}]}),
    (
        "POST",
        "/holds",
        {"users": ["{user}"], "start": "2026-12-03T20:00:00Z", "end": "2026-12-03T21:00:00Z"},
    ),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES, ids=lambda each: str(each)[:50])
def test_every_route_refuses_an_unknown_connection(
    api, accounts, new_user, new_organization, method, path, body
):
    slug = new_organization()
    user = new_user(*accounts, slugs=(slug,))
    names = {"user": user, "slug": slug}
    query = {**DAY, "at": "2026-12-03T09:00:00Z", "connection": f"{0:032x}"}

    answer = api.call(method, path.format(**names), query_string=query, json=filled(body, names))

    assert (answer.status_code, answer.json.get("code")) == (404, "connectionNotFound"), answer.text


def filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: filled(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, names) for each in value]
    return value.format(**names) if isinstance(value, str) else value


def test_calendars_and_failures_name_their_connection(api, sandbox, user):
    one, two, three = ids(api, user)
    sandbox.fault(email="family@example.com", status=404)

    calendars = api.get(f"/users/{user}/calendar").json
    busy = api.get(f"/users/{user}/calendar/busy", NO_CACHE, **DAY).json
    slots = api.get(f"/users/{user}/scheduling", NO_CACHE, **MORNING).json

    assert sorted(each["connectionId"] for each in calendars["data"]) == sorted([one, three])
    for answer in (calendars, busy, slots):
        assert [(each["connectionId"], each["calendarId"]) for each in answer["failedCalendars"]] == [
            (two, "family@example.com")
        ]


def test_an_explanation_names_the_connection(api, user):
    _, two, _ = ids(api, user)

    answer = api.get(f"/users/{user}/scheduling/explain", at="2026-12-03T10:30:00Z", **MORNING)

    assert [each["connectionId"] for each in answer.json["data"]["blockedBy"]] == [two]


def test_a_named_calendar_is_found_in_the_account_that_lists_it(api, sandbox, worker, new_user):
    team = "team@group.calendar.google.com"
    first = sandbox.account("google", "ada@example.com")
    second = sandbox.account(
        "google",
        "family@example.com",
        calendars=[{"primary": True}, {"id": team}],
        events=[meeting("10:00", "11:00", calendarId=team)],
    )
    side = [
        sandbox.account(
            "microsoft",
            f"{name}@contoso.example",
            calendars=[{"id": f"AAMk-{name}", "primary": True}, {"id": f"AAMk-{name}-side"}],
            events=[meeting(*time, calendarId=f"AAMk-{name}-side")],
        )
        for name, time in (("one", ("12:00", "13:00")), ("two", ("13:00", "14:00")))
    ]
    user = new_user(first, second, *side)

    def busy(*named):
        return periods(api.get(f"/users/{user}/calendar/busy", calendarIds=",".join(named), **DAY))

    assert busy(team) == [("10:00", "11:00")]
    assert busy("AAMk-two-side") == [("13:00", "14:00")]
    assert busy(team, "AAMk-one-side", "AAMk-two-side") == [("10:00", "11:00"), ("12:00", "14:00")]
    alone = api.get(f"/users/{user}/scheduling", calendarIds=team, connection=ids(api, user)[1], **MORNING)
    assert starts(alone) == ["09:00", "11:00"]


@pytest.mark.parametrize("provider", ["google", "microsoft"])
def test_one_mailbox_through_two_connections_counts_once(api, sandbox, worker, new_user, provider):
    account = sandbox.account(provider, "ada@example.com", events=[meeting("10:00", "11:00")])
    user = new_user(account)
    again = people.posted(account) | {"provider": provider, "email": None}
    assert api.post(f"/users/{user}/connections", again).status_code == 201
    assert len(ids(api, user)) == 2

    for cache in ({}, NO_CACHE, {}):
        answer = api.get(f"/users/{user}/scheduling", cache, maxOverlaps="1", **MORNING)
        assert starts(answer) == ["09:00", "10:00", "11:00"]
        every = api.get(f"/users/{user}/scheduling", cache, maxOverlaps="1", primaryOnly="false", **MORNING)
        assert starts(every) == ["09:00", "10:00", "11:00"]


def test_a_mailbox_whose_first_connection_ended_is_read_by_the_other(api, sandbox, worker, new_user):
    account = sandbox.account("google", "ada@example.com", events=[meeting("10:00", "11:00")])
    user = new_user(account)
    again = people.posted(account) | {"provider": "google", "email": None}
    api.post(f"/users/{user}/connections", again)
    assert api.get(f"/users/{user}/calendar/busy", **DAY).status_code == 200
    first = ids(api, user)[0]
    with stores_of(api.client.application).database.writing() as session:
        connections.mark_dead(session, first, "It ended")

    assert starts(api.get(f"/users/{user}/scheduling", NO_CACHE, **MORNING)) == ["09:00", "11:00"]


def test_delegated_and_personal_connections_of_one_mailbox_count_once(
    api, sandbox, worker, new_user, new_organization
):
    domain = sandbox.domain(
        "google", "acme.example", subject="ada@acme.example", members=["ada@acme.example"]
    )
    account = sandbox.account("google", "ada@acme.example", events=[meeting("10:00", "11:00")])
    slug = new_organization()
    user = new_user(account, slugs=(slug,))
    assert api.put(f"/organizations/{slug}/grants/google", people.grant_of(domain)).status_code == 200
    body = {
        "provider": "google",
        "type": "delegated",
        "email": "ada@acme.example",
        "organization": slug,
    }

    made, again = (api.post(f"/users/{user}/connections", body) for _ in range(2))

    assert (made.status_code, again.status_code) == (201, 200), made.text
    found = api.get(f"/users/{user}/connections").json["data"]
    assert [(each["type"], each["default"]) for each in found] == [("oauth2", True), ("delegated", False)]
    answer = api.get(f"/users/{user}/scheduling", maxOverlaps="1", **MORNING)
    assert starts(answer) == ["09:00", "10:00", "11:00"]
    only = api.get(f"/users/{user}/scheduling", connection=found[1]["id"], **MORNING)
    assert starts(only) == ["09:00", "11:00"]
