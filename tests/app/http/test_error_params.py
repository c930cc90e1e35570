"""``param`` of a validation error, and other answers that mean the same on every route."""

from __future__ import annotations

from typing import Any

import pytest

from tests.app.days import MORNING

RANGE = {"start": "2026-12-03", "end": "2026-12-04"}
WINDOW = {"days": ["monday"], "start": "09:00", "end": "17:00"}
USERS = "/users/scheduling"
ADA = "/users/ada/scheduling"
EVENTS = "/users/ada/calendar/events"
EVENT = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


def refused(answer: Any) -> str:
    """The ``param`` of a validation error."""
    assert answer.status_code == 400, answer.text
    assert answer.json["code"] == "validationFailed", answer.text
    return str(answer.json["param"])


@pytest.mark.parametrize(
    ("path", "query", "param"),
    [
        ("/users", {"limit": "0"}, "limit"),
        ("/users", {"cursor": "x"}, "cursor"),
        ("/users", {"include": "organizations,secrets"}, "include.1"),
        ("/users/ada/oauth/apple", {}, "provider"),
        (ADA, {"end": "2026-12-04"}, "start"),
        (ADA, RANGE | {"end": "soon"}, "end"),
        (ADA, {"start": "2026-12-04", "end": "2026-12-03"}, "start"),
        (ADA, RANGE | {"slotDuration": "0"}, "slotDuration"),
        (ADA, RANGE | {"provider[]": "apple"}, "provider.0"),
        (ADA, RANGE | {"timeZone": "Mars/Olympus"}, "timeZone"),
        (ADA, RANGE | {"earliestTimeEachDay": "9:00", "latestTimeEachDay": "9:00"}, "latestTimeEachDay"),
        (ADA, RANGE | {"calendarIds": "a,.."}, "calendarIds.1"),
        (EVENTS, {"start": "2026-12-03"}, "end"),
    ],
)
def test_a_parameter_of_a_query_or_a_path(api, path, query, param):
    assert refused(api.get(path, **query)) == param


def test_a_header(api):
    assert refused(api.get(ADA, headers={"X-Timezone": "Mars/Olympus"}, **RANGE)) == "X-Timezone"
    assert refused(api.post("/users", {"id": "ada"}, headers={"Idempotency-Key": "a b"})) == "Idempotency-Key"


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/users", {}, "id"),
        ("/users", {"id": "ada", "organizationSlugs": ["acme", 1]}, "organizationSlugs.1"),
        ("/organizations", {"slug": "acme", "name": "a\nb"}, "name"),
        (USERS, {"users": [{"id": "ada"}, {"id": "eve"}, {}, {"id": "-"}]}, "users.2.id"),
        (USERS, {"users": ["ada"]}, "users.0"),
        (
            USERS,
            {"users": [{"id": "ada", "schedules": [WINDOW | {"end": "25:00"}]}]},
            "users.0.schedules.0.end",
        ),
        (ADA, {"schedules": [WINDOW, WINDOW | {"start": "9"}]}, "schedules.1.start"),
        (ADA, {"schedules": WINDOW | {"end": "09:00"}}, "schedules.0.end"),
        (ADA, {"schedules": [WINDOW | {"days": ["monday", "Tuesday"]}]}, "schedules.0.days.1"),
        ("/webhooks", {"url": "mailto:ada@example.com"}, "url"),
        (f"{EVENTS}/google/primary", EVENT | {"end": "2026-12-02T00:00:00Z"}, "end"),
        (f"{EVENTS}/google/primary", EVENT | {"end": "2026-12-04"}, "start"),
        (f"{EVENTS}/google/primary", EVENT | {"attendees": [{"email": "ada"}]}, "attendees.0.email"),
        (f"{EVENTS}/google/primary", EVENT | {"meeting": {"url": "ftp://x"}}, "meeting.url"),
        (f"{EVENTS}/meta", EVENT | {"sendNotificationsFor": ["apple"]}, "sendNotificationsFor.0"),
    ],
)
def test_a_field_of_a_body(api, path, body, param):
    assert refused(api.post(path, body, query_string=RANGE)) == param


def test_the_options_of_a_consent(api, new_user):
    path = f"/users/{new_user()}/oauth/google/authorize"

    assert refused(api.post(path, {"scope": ["openid", "a b"]})) == "scope.1"
    assert refused(api.post(path, {"redirectUrl": "https://evil.example.com/"})) == "redirectUrl"
    assert refused(api.post(path, {"returnUrl": "https://evil.example.com/"})) == "returnUrl"
    assert refused(api.put(f"/users/{new_user()}", {"userId": 1})) == "userId"


def test_the_bare_list_of_events_has_the_sentence_alone(api):
    answer = api.get(EVENTS, minDate="2026-12-03")

    assert (answer.status_code, answer.json) == (400, "maxDate is required")


@pytest.mark.parametrize("body", [b"{", b"[]", b"[" * 2000])
def test_a_body_that_is_no_object_has_no_param(api, body):
    answer = api.call("POST", "/users", data=body, content_type="application/json")

    assert (answer.status_code, answer.json["code"]) == (400, "malformedBody")
    assert "param" not in answer.json


NOWHERE = {"X-Timezone": "Mars/Olympus"}
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


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("provider", SCOPES)
def test_a_refusal_of_the_provider_names_the_operation(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, "ada@example.com"))
    sandbox.fault(provider=provider, status=403)

    answer = api.get(f"/users/{user}/scheduling", **MORNING)

    assert (answer.status_code, answer.json["operation"]) == (403, "calendar.freebusy.query")
