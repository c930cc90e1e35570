"""$batch: https://learn.microsoft.com/graph/json-batching"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox
from providers.sandbox.exchange import Answer
from providers.sandbox.microsoft import batch
from tests.providers.sandbox.callers import MEETING, VIEW, Caller, code, graph

BOB = "bob@example.com"
SEEN = f"/me/calendarView?startDateTime={VIEW['startDateTime']}&endDateTime={VIEW['endDateTime']}"
CALENDARS = [{"primary": True}, *({"id": f"AAMk{n}", "subject": f"{n}"} for n in range(8))]


@pytest.fixture
def call(sandbox: Sandbox) -> Caller:
    account = sandbox.account("microsoft", BOB, calendars=CALENDARS, events=[MEETING])
    return graph(sandbox, account)


def get(number: object, url: str = SEEN, **more: Any) -> dict[str, Any]:
    return {"id": str(number), "method": "GET", "url": url, **more}


def view(number: int) -> dict[str, Any]:
    return get(number, SEEN.replace("/me/", f"/me/calendars/AAMk{number}/"))


def post(call: Caller, *parts: dict[str, Any]) -> requests.Response:
    return call("POST", "$batch", json={"requests": parts})


def parts_of(answer: requests.Response) -> dict[str, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return {part["id"]: part for part in answer.json()["responses"]}


def test_each_part_has_its_own_status_and_the_whole_is_200(call: Caller) -> None:
    parts = parts_of(post(call, get(1), get(2, "/me/calendars/AAMknosuch"), get(3, "/nothing")))
    assert {number: part["status"] for number, part in parts.items()} == {"1": 200, "2": 404, "3": 400}
    assert parts["1"]["body"]["value"][0]["subject"] == "Design review"
    assert parts["2"]["body"]["error"]["code"] == "ErrorItemNotFound"


def test_answers_do_not_come_in_the_order_of_the_requests(call: Caller) -> None:
    answer = post(call, *(get(n) for n in range(5)))
    assert [part["id"] for part in answer.json()["responses"]] != [str(n) for n in range(5)]
    assert len(parts_of(answer)) == 5


def test_links_inside_a_part_are_absolute(call: Caller) -> None:
    part = parts_of(post(call, get(1, "/me/calendars")))["1"]
    assert "@odata.nextLink" not in part["body"]
    part = parts_of(post(call, get(1, "/me/calendars?$top=2")))["1"]
    rest = call.get(part["body"]["@odata.nextLink"].removeprefix(f"{call.base}/"))
    assert [calendar["name"] for calendar in rest["value"]] == ["1", "2"]


def test_headers_of_a_part_are_its_own(call: Caller) -> None:
    preferred = {"Prefer": 'outlook.timezone="Tokyo Standard Time"'}
    parts = parts_of(post(call, get(1, headers=preferred), get(2)))
    assert parts["1"]["body"]["value"][0]["start"]["timeZone"] == "Tokyo Standard Time"
    assert parts["1"]["headers"]["Preference-Applied"] == 'outlook.timezone="Tokyo Standard Time"'
    assert parts["2"]["body"]["value"][0]["start"]["timeZone"] == "UTC"


@pytest.mark.parametrize(
    "parts",
    [
        [get(n) for n in range(21)],
        [get("a"), get("A")],
        [{"id": "1", "method": "POST", "url": "/me/events", "body": {"subject": "x"}}],
        [get(1, dependsOn=["2"])],
        [get(1, dependsOn=["2"]), get(2, dependsOn=["1"])],
        [get(1, "https://graph.microsoft.com/v1.0/me")],
        [{"id": "1"}],
        [],
    ],
)
def test_a_batch_that_makes_no_sense_is_refused_as_a_whole(call: Caller, parts: list[dict[str, Any]]) -> None:
    assert code(post(call, *parts)) == (400, "BadRequest")


def test_part_with_failed_dependency_is_424(call: Caller, sandbox: Sandbox) -> None:
    parts = parts_of(post(call, get(1, "/me/calendars/AAMknosuch"), get(2, dependsOn=["1"])))
    assert parts["2"]["status"] == 424
    assert "microsoft.calendarView.list" not in sandbox.requests().by_operation


def test_a_write_in_a_part_answers_without_a_body_when_there_is_none(call: Caller) -> None:
    when = {"dateTime": "2026-12-05T12:00:00", "timeZone": "UTC"}
    create = {
        "id": "1",
        "method": "POST",
        "url": "/me/events",
        "headers": {"Content-Type": "application/json"},
        "body": {"subject": "x", "start": when, "end": when},
    }
    made = parts_of(post(call, create))["1"]
    assert made["status"] == 201
    delete = {"id": "1", "method": "DELETE", "url": f"/me/events/{made['body']['id']}"}
    gone = parts_of(post(call, delete))["1"]
    assert (gone["status"], gone["body"]) == (204, None)


def test_a_batch_counts_once_and_its_parts_by_operation(call: Caller, sandbox: Sandbox) -> None:
    post(call, get(1), get(2))
    counted = sandbox.requests()
    assert counted.total == 1
    assert counted.by_operation == {"microsoft.batch": 1, "microsoft.calendarView.list": 2}


def test_one_part_is_throttled_and_the_others_are_not(call: Caller, sandbox: Sandbox) -> None:
    sandbox.fault(calendar_id="AAMk1", status=429, retry_after=7)
    parts = parts_of(post(call, view(1), view(2)))
    assert (parts["1"]["status"], parts["1"]["headers"]["Retry-After"]) == (429, "7")
    assert parts["1"]["body"]["error"]["code"] == "ApplicationThrottled"
    assert parts["2"]["status"] == 200


def test_a_fault_of_the_account_strikes_the_batch_and_not_its_parts(call: Caller, sandbox: Sandbox) -> None:
    sandbox.fault(email=BOB, status=429, retry_after=1, times=1)
    assert code(post(call, get(1))) == (429, "ApplicationThrottled")
    assert parts_of(post(call, get(1)))["1"]["status"] == 200


@pytest.mark.parametrize(("parts", "rounds"), [(1, 1), (4, 1), (5, 2), (20, 5)])
def test_four_parts_run_at_once(parts: int, rounds: int) -> None:
    posted: Any = SimpleNamespace(
        json=lambda: {"requests": [get(n) for n in range(parts)]}, request=SimpleNamespace(headers={})
    )
    answer = batch.run(posted, lambda _call, _request: Answer(delay=0.25))
    assert answer.delay == 0.25 * rounds


def test_the_batch_waits_for_its_slowest_part(call: Caller, sandbox: Sandbox) -> None:
    sandbox.fault(calendar_id="AAMk2", latency_ms=400)
    began = time.monotonic()
    assert {part["status"] for part in parts_of(post(call, view(1), view(2), view(3))).values()} == {200}
    assert time.monotonic() - began >= 0.4


def test_a_dead_token_is_refused_for_the_whole_batch(sandbox: Sandbox) -> None:
    call = graph(sandbox, sandbox.account("microsoft", BOB, expires_in=0))
    assert code(post(call, get(1))) == (401, "InvalidAuthenticationToken")
