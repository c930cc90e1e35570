"""The backend of the booking page forwards the requests of the page, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from flask import Flask, request
from flask.testing import FlaskClient

from app.cli import booking, demo

KEY = "alm_secret"


def time(days: float, minutes: float = 30) -> dict[str, str]:
    """A time of ``minutes`` that begins in ``days``."""
    start = datetime.now(UTC) + timedelta(days=days)
    return {"start": start.isoformat(), "end": (start + timedelta(minutes=minutes)).isoformat()}


TIME = time(3)
SLOTS = {
    "participants": [{"users": ["ada"]}, {"users": ["bruno", "emiko", "gabriel"], "required": 1}],
    "schedules": list(demo.offer().schedules),
}
SLOTS_QUERY = {**time(0, 14 * 24 * 60), "slotDuration": "30", "minimumNotice": "60"}
SCHEDULING = f"/v1/scheduling?{urlencode(SLOTS_QUERY)}"

HOLD = {"users": ["ada", "emiko"], **TIME, "expiresIn": 300}
HOLD_ID = "hold_5d9a3b4c2e8d6f7a901f0c7e"
COLLEAGUE = demo.offer().team[1].email
EVENT = {"subject": "Contract", **TIME, "attendees": [{"email": "kim@example.com"}, {"email": COLLEAGUE}]}
EVENTS = "/v1/users/ada/calendar/events/google/primary"
FAILED = {"userId": "bruno", "message": "no", "failedCalendars": [{"calendarId": "bruno@example.com"}]}


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    """A service that answers with what it was sent."""
    app = Flask("echo")

    @app.route("/<path:path>", methods=["POST", "DELETE"])
    def echo(path: str) -> dict[str, Any]:
        data = {"path": request.path, "query": request.args.to_dict(), "key": request.authorization.token}
        return {"data": data, "failedUsers": [FAILED]}

    with booking.serving(app, 0) as url:
        yield url.rstrip("/")


@pytest.fixture
def client(service: str) -> FlaskClient:
    return booking.create_app(service, KEY, demo.offer()).test_client()


def test_the_requests_of_the_page_are_sent_on_with_the_key(client):
    answers = [
        client.post(SCHEDULING, json=SLOTS),
        client.post("/v1/holds", json=HOLD),
        client.delete(f"/v1/holds/{HOLD_ID}"),
        client.post(f"{EVENTS}?hold={HOLD_ID}", json=EVENT),
    ]

    sent = [each.json["data"] for each in answers]
    assert [each["path"] for each in sent] == ["/v1/scheduling", "/v1/holds", f"/v1/holds/{HOLD_ID}", EVENTS]
    assert sent[3]["query"] == {"hold": HOLD_ID}
    assert {each["key"] for each in sent} == {KEY}
    assert answers[0].json["failedUsers"] == [{"userId": "bruno"}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (SCHEDULING, {**SLOTS, "participants": [{"users": ["farah"]}]}),
        (SCHEDULING, {**SLOTS, "participants": [{"organization": "demo"}]}),
        (SCHEDULING, {**SLOTS, "schedules": []}),
        (SCHEDULING, {}),
        (f"{SCHEDULING}&calendarIds=private", SLOTS),
        ("/v1/scheduling", SLOTS),
        (f"/v1/scheduling?{urlencode({**SLOTS_QUERY, 'slotDuration': 1})}", SLOTS),
        (f"/v1/scheduling?{urlencode({**SLOTS_QUERY, 'minimumNotice': 0})}", SLOTS),
        (f"/v1/scheduling?{urlencode({**SLOTS_QUERY, **time(0, 366 * 24 * 60)})}", SLOTS),
        (f"/v1/scheduling?{urlencode({**SLOTS_QUERY, **time(-30)})}", SLOTS),
        ("/v1/holds", {**HOLD, "users": ["ada", "farah"]}),
        ("/v1/holds", {**HOLD, "users": ["ada"]}),
        ("/v1/holds", {**HOLD, "users": 7}),
        ("/v1/holds", {**HOLD, "expiresIn": 3600}),
        ("/v1/holds", {**HOLD, "expiresIn": None}),
        ("/v1/holds", [HOLD]),
        ("/v1/holds", {**HOLD, **time(3, 24 * 60)}),
        ("/v1/holds", {**HOLD, **time(3, 0)}),
        ("/v1/holds", {**HOLD, **time(365)}),
        ("/v1/holds", {**HOLD, **time(-0.1)}),
        ("/v1/holds", {**HOLD, "start": "tomorrow"}),
        ("/v1/holds", {**HOLD, "start": "2026-12-03T09:00:00", "end": "2026-12-03T09:30:00"}),
        (f"{EVENTS}?hold={HOLD_ID}", {**EVENT, **time(3, 24 * 60)}),
        (f"{EVENTS}?hold={HOLD_ID}", {**EVENT, **time(365)}),
        (f"{EVENTS}?hold={HOLD_ID}", {**EVENT, "attendees": [{"email": COLLEAGUE}]}),
        (f"{EVENTS}?hold={HOLD_ID}", {**EVENT, "attendees": [{"email": "a@b.example", "optional": True}]}),
        (
            f"{EVENTS}?hold={HOLD_ID}",
            {**EVENT, "attendees": [*EVENT["attendees"], {"email": demo.offer().team[2].email}]},
        ),
        (EVENTS, EVENT),
        (f"{EVENTS}?ifFree=true", EVENT),
        (f"{EVENTS}?hold={HOLD_ID}", {**EVENT, "meeting": True}),
        (
            f"{EVENTS}?hold={HOLD_ID}",
            {**EVENT, "attendees": [{"email": "a@b.example"}, {"email": "c@d.example"}]},
        ),
    ],
)
def test_other_requests_are_refused(client, path, body):
    refused = client.post(path, json=body)

    assert (refused.status_code, refused.json["data"]) == (403, None)


@pytest.mark.parametrize("path", ["/v1/holds/%2e%2e", "/v1/holds/a%3Fb", "/v1/holds/a%23b"])
def test_an_id_cannot_lead_to_another_path(client, path):
    assert client.delete(path).status_code == 403


@pytest.mark.parametrize(
    "path", ["/v1/users", "/v1/holds", "/v1/users/farah/calendar/events/google/primary", "/v1/users/ada"]
)
def test_nothing_else_is_there(client, path):
    assert client.get(path).status_code in (404, 405)


def test_other_sites_are_refused(client):
    assert client.post("/v1/holds", json=HOLD, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.post("/v1/holds", json=HOLD, headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/v1/holds", data="{}", content_type="text/plain").status_code == 415


def test_the_browser_gets_no_key_and_runs_no_other_script(client):
    page = client.get("/")
    modules = re.findall(r'from "\./([^"]+)"', page.text)

    assert modules == ["almanac-client/index.js"]
    texts = [page.text, client.get("/settings.json").text, client.get(f"/{modules[0]}").text]
    assert not any(KEY in each for each in texts)
    policy = page.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert re.search(r"script-src 'self' 'sha256-[^']+';", policy)
    assert client.get("/almanac-client/..%2findex.html").status_code == 404


def test_a_service_that_is_down_is_reported():
    client = booking.create_app("http://127.0.0.1:1", KEY, demo.offer()).test_client()

    answer = client.post("/v1/holds", json=HOLD)

    assert (answer.status_code, answer.json["error"]) == (502, "The service cannot be reached")
