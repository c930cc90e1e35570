"""``param`` of a validation error: the path of the field, wherever the field is and whatever checks it."""

from __future__ import annotations

from typing import Any

import pytest

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
