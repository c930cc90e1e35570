"""The logs of an installation's processes: JSON lines with request ids and without secrets."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from tests.installation.builder import installed
from tests.waiting import until

# Starts a whole installation, which is too slow for the default run.
pytestmark = pytest.mark.long

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
ADDRESS = "ada.lovelace@example.com"
OTHER = "charles@example.org"


@pytest.fixture(scope="module")
def talkative(environment, tmp_path_factory, sandbox_process):
    """An installation that logs everything, as JSON."""
    folder = tmp_path_factory.mktemp("talkative")
    secret = {
        "ALMANAC_GOOGLE_CLIENT_SECRET": "planted-client-secret",
        "ALMANAC_METRICS_TOKEN": "planted-token",
    }
    with installed(
        environment,
        folder,
        web=2,
        workers=("worker1", "worker2"),
        beat=True,
        ALMANAC_LOG_FORMAT="json",
        ALMANAC_LOG_LEVEL="debug",
        ALMANAC_PUBLIC_URL="http://127.0.0.1:1",
        **secret,
    ) as made:
        yield made


@pytest.fixture
def ada(talkative, sandbox, unique):
    """A user with an account of each provider."""
    accounts = [sandbox.account("google", ADDRESS), sandbox.account("microsoft", OTHER)]
    return talkative.user(unique("ada"), *accounts), accounts


def of_request(made, part, request):
    return [line for line in made.lines(part) if line.get("request") == request]


def test_every_log_line_is_an_object_with_the_same_fields(talkative, ada):
    talkative.get(f"/users/{ada[0]}/calendar/busy", **DAY)
    until(lambda: talkative.output("beat"))

    for part in ("web", "worker1", "worker2", "beat"):
        lines = talkative.lines(part)
        assert lines, part
        for line in lines:
            assert {"time", "level", "logger", "process", "message"} <= set(line)
            assert line["process"] == part
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
            assert datetime.fromisoformat(line["time"])


def test_request_log_has_route_status_and_key_prefix(talkative, ada):
    answer = talkative.get(f"/users/{ada[0]}/calendar/busy", {"X-Request-Id": "told-1"}, **DAY)
    assert answer.status_code == 200

    (line,) = of_request(talkative, "web", "told-1")

    assert line["logger"] == "app.http.requests"
    assert (line["level"], line["status"], line["method"]) == ("info", 200, "GET")
    assert line["route"] == "/v1/users/{userId}/calendar/busy"
    assert line["key"] == talkative.key[:12]
    assert 0 < line["ms"] < 30_000


def test_a_path_that_leads_nowhere_is_not_repeated(talkative):
    answer = talkative.get(f"/people/{ADDRESS}", {"X-Request-Id": "nowhere-1"})
    assert answer.status_code == 404

    (line,) = of_request(talkative, "web", "nowhere-1")
    assert (line["route"], line["status"]) == ("(no route)", 404)


def test_worker_log_lines_have_the_id_of_their_request(talkative, ada, sandbox):
    user, _ = ada
    sandbox.fault(provider="microsoft", status=403, reason="ErrorAccessDenied")

    for request in ("mine-1", "mine-2"):
        talkative.get(
            f"/users/{user}/calendar/busy", {"X-Request-Id": request, "Cache-Control": "no-cache"}, **DAY
        )

    def told():
        lines = [line for part in ("worker1", "worker2") for line in talkative.lines(part)]
        failures = [line.get("request") for line in lines if line["message"].startswith("provider failure")]
        tasks = [line.get("request") for line in lines if line.get("task") == "reads.drain"]
        return {"mine-1", "mine-2"} <= set(failures) and {"mine-1", "mine-2"} <= set(tasks) and lines

    lines = until(told)
    mine = [line for line in lines if line.get("request") == "mine-1"]
    failure = next(line for line in mine if line["message"].startswith("provider failure"))
    assert failure["why"] == "Microsoft 365 denies access"
    assert re.fullmatch(r"[\w-]+", failure["connection"])
    # Periodic tasks belong to no request.
    sweeps = [line for line in lines if line.get("task") == "webhooks.sweep"]
    assert all("request" not in line for line in sweeps)


def test_a_read_shared_by_two_requests_is_logged_with_the_leaders_id(talkative, ada, sandbox):
    user, _ = ada
    sandbox.fault(provider="google", status=403, reason="forbidden", latency_ms=800)
    sandbox.fault(provider="microsoft", status=403, reason="ErrorAccessDenied", latency_ms=800)

    def read(request):
        return talkative.get(f"/users/{user}/calendar/busy", {"X-Request-Id": request}, **DAY).status_code

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(read, ("shared-1", "shared-2"))) == [403, 403]

    def failures():
        lines = [line for part in ("worker1", "worker2") for line in talkative.lines(part)]
        return [
            line["request"]
            for line in lines
            if line["message"].startswith("provider failure")
            and line.get("request", "").startswith("shared-")
        ]

    # One failure for each account, under either request; each request has one line in the access log.
    until(lambda: len(failures()) == 2)
    assert set(failures()) <= {"shared-1", "shared-2"}
    for request in ("shared-1", "shared-2"):
        assert [line["status"] for line in of_request(talkative, "web", request)] == [403]


def refused_by_the_server(talkative, request):
    host, port = talkative.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(request)
        assert connection.recv(65_536)


def test_no_secret_no_query_and_no_address_is_in_any_line(talkative, ada, sandbox):
    user, accounts = ada
    planted = {
        "key": talkative.key[12:],
        "client secret": "planted-client-secret",
        "metrics token": "planted-token",
        "password": "planted-password",
        "code": "planted-code",
        "address": "lovelace",
        "other address": "charles@",
        "subject": "planted-subject",
        "query": "planted-query",
        "rejected key": "alm_planted-key-nobody-has",
        "day": "2026-12-03",
        "encryption key": (talkative.folder / "secrets").read_text().split()[1],
    }
    for number, account in enumerate(accounts):
        planted |= {f"access {number}": account.access_token, f"refresh {number}": account.refresh_token}
    # Reads, writes, refusals and failures of all kinds.
    talkative.get(f"/users/{user}/calendar/busy", {"X-Secret": "planted-query"}, **DAY, q="planted-query")
    talkative.get(f"/users/{user}/calendar/busy", **DAY, calendarIds=[ADDRESS, OTHER])
    talkative.get(f"/users/{ADDRESS}", q="planted-query")
    event = {"subject": "planted-subject", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    event["attendees"] = [{"email": OTHER}]
    for provider in ("google", "microsoft"):
        made = talkative.call("POST", f"/users/{user}/calendar/events/{provider}/primary", json=event)
        assert made.status_code == 201, made.text
    talkative.get(f"/users/{user}/calendar/events/google/{ADDRESS}/planted-query")
    talkative.get("/users", {"Authorization": "Bearer alm_planted-key-nobody-has"})
    hook = talkative.call("POST", "/webhooks", json={"url": "http://127.0.0.1:1/hook?planted-query"})
    assert hook.status_code == 201, hook.text
    planted["webhook secret"] = hook.json()["data"]["secret"]
    # A consent with an unknown code, and a revoked grant.
    link = talkative.get(f"/users/{user}/oauth/google/link").json()["data"]["link"]
    state = parse_qs(urlsplit(link).query)["state"][0]
    requests.get(f"{talkative.url}/v1/oauth/google/callback?code=planted-code&state={state}", timeout=20)
    planted["state"] = state
    requests.post(
        f"{talkative.url}/dashboard/sign-in",
        data={"name": "ada", "password": "planted-password"},
        timeout=20,
    )
    sandbox.fault(provider="google", body="html", status=500)
    talkative.get(f"/users/{user}/calendar/busy", {"Cache-Control": "no-cache"}, **DAY)
    sandbox.clear_faults()
    for account in accounts:
        sandbox.revoke(account.email)
    talkative.get(f"/users/{user}/calendar/busy", {"Cache-Control": "no-cache"}, **DAY)
    talkative.get(f"/users/{user}/calendar/busy", {"Cache-Control": "no-cache"}, start="planted-query")
    # Requests that the server refuses.
    refused_by_the_server(talkative, b"GET /v1/users/lovelace?planted-query NONSENSE\r\n\r\n")
    refused_by_the_server(talkative, b"GET /v1/users HTTP/1.1\r\nplanted-query \x00: lovelace\r\n\r\n")
    talkative.call("DELETE", f"/users/{user}")

    until(lambda: "has finished" in talkative.output("worker1") + talkative.output("worker2"))
    said = talkative.output()
    assert "planted" not in said, [line for line in said.splitlines() if "planted" in line][:3]
    found = {what: secret for what, secret in planted.items() if secret in said}
    assert not found, [line for line in said.splitlines() if any(s in line for s in found.values())][:3]
