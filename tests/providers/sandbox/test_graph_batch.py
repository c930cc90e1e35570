"""$batch: https://learn.microsoft.com/graph/json-batching"""

from __future__ import annotations

from typing import Any

import pytest
import requests

from providers.sandbox.client import Sandbox
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


def post(call: Caller, *parts: dict[str, Any]) -> requests.Response:
    return call("POST", "$batch", json={"requests": parts})


def parts_of(answer: requests.Response) -> dict[str, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return {part["id"]: part for part in answer.json()["responses"]}


def test_answers_do_not_come_in_the_order_of_the_requests(call: Caller) -> None:
    answer = post(call, *(get(n) for n in range(5)))
    assert [part["id"] for part in answer.json()["responses"]] != [str(n) for n in range(5)]
    assert len(parts_of(answer)) == 5


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


def test_a_fault_of_the_account_strikes_the_batch_and_not_its_parts(call: Caller, sandbox: Sandbox) -> None:
    sandbox.fault(email=BOB, status=429, retry_after=1, times=1)
    assert code(post(call, get(1))) == (429, "ApplicationThrottled")
    assert parts_of(post(call, get(1)))["1"]["status"] == 200
