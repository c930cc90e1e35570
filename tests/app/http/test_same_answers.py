"""Zones, identifiers and failures mean the same on every route."""

from __future__ import annotations

import pytest

from tests.app.days import MORNING

NOWHERE = {"X-Timezone": "Mars/Olympus"}
EVENT = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
SCOPES = {"google": "calendar.freebusy", "microsoft": "Calendars.ReadBasic"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/users/nobody/scheduling", None, 404),
        ("GET", "/users/nobody/calendar/busy", None, 404),
        ("GET", "/users/nobody/calendar/events", None, 404),
        ("POST", "/users/scheduling", {"users": []}, 200),
        ("POST", "/users/nobody/calendar/events/google/primary", EVENT, 404),
    ],
)
def test_a_good_zone_in_the_query_wins_over_a_bad_header(api, method, path, body, status):
    query = MORNING if method == "GET" or body == {"users": []} else {}
    more = {} if body is None else {"json": body}

    good = api.call(method, path, headers=NOWHERE, query_string=query | {"timeZone": "Asia/Tokyo"}, **more)
    bad = api.call(method, path, headers=NOWHERE, query_string=query, **more)

    assert good.status_code == status, good.text
    assert (bad.status_code, bad.json["param"]) == (400, "X-Timezone")


def test_the_list_of_events_without_dates_answers_with_a_bare_string(api):
    for query in ({}, {"minDate": "2026-12-03"}, {"maxDate": "x"}):
        answer = api.get("/users/nobody/calendar/events", **query)
        assert answer.status_code == 400
        assert isinstance(answer.json, str)
    assert api.get("/users/nobody/calendar/events", start="2026-12-03").json["param"] == "end"


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("/users/a", {}, "userNotFound"),
        ("/users/a%20b/scheduling", MORNING, "userNotFound"),
        ("/organizations/A", {}, "organizationNotFound"),
        ("/holds/1", {}, "holdNotFound"),
        ("/holds", {"user": "a"}, "userNotFound"),
        ("/webhooks/1", {}, "webhookNotFound"),
    ],
)
def test_an_identifier_of_another_shape_is_not_found(api, path, query, code):
    answer = api.get(path, **query)

    assert (answer.status_code, answer.json["code"]) == (404, code)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_an_identifier_of_another_shape_in_a_body_is_not_found(api, method, new_organization):
    answer = api.call(method, f"/organizations/{new_organization()}/members", json={"userIds": ["a b"]})

    assert (answer.status_code, answer.json["code"]) == (404, "userNotFound")
    hold = api.post("/holds", {"users": ["a b"], "start": "2099-12-03T09:00Z", "end": "2099-12-03T10:00Z"})
    assert (hold.status_code, hold.json["code"]) == (404, "userNotFound")


@pytest.mark.parametrize("provider", SCOPES)
def test_events_without_the_scope_name_what_the_request_needs(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, "ada@example.com", scope=SCOPES[provider]))

    answer = api.get(f"/users/{user}/calendar/events", start="2026-12-03", end="2026-12-04")

    if answer.status_code == 200:
        # At Microsoft, the least scope reads events too.
        return
    assert (answer.status_code, answer.json["operation"]) == (403, "calendar.events.list")
    assert "level read" in answer.json["error"]
    assert [each["code"] for each in answer.json["failedCalendars"]] == ["insufficientScopes"]


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", SCOPES)
def test_a_refusal_of_the_provider_names_the_operation(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, "ada@example.com"))
    sandbox.fault(provider=provider, status=403)

    answer = api.get(f"/users/{user}/scheduling", **MORNING)

    assert (answer.status_code, answer.json["operation"]) == (403, "calendar.freebusy.query")
