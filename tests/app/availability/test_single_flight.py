"""Identical parallel requests to a real server: each account is read once, and every request succeeds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from tests.app.days import MORNING
from tests.installation.processes import web_server
from workers.fanout.admission import QueueFull

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

READS = ("google.freebusy.query", "microsoft.batch")

# Two days, so that every member has slots.
DAYS = MORNING | {"end": "2026-12-05T00:00:00Z"}


@pytest.fixture
def port(environment, database) -> Iterator[int]:
    """A real web server with two processes and a long deadline."""
    with web_server(environment | {"ALMANAC_FANOUT_DEADLINE": "60"}, count=2) as number:
        yield number


@pytest.fixture
def organization(sandbox, new_user, new_organization):
    """Make an organization whose members have one account each, half of them at Google."""

    def make(members):
        slug = new_organization()
        for provider in ("google", "microsoft"):
            for account in sandbox.accounts_in_bulk(
                provider,
                members // 2,
                email_pattern=f"{slug}-{{n}}@{provider}.example",
                events_per_account=3,
                start="2026-12-03T00:00:00Z",
                days=1,
                seed=7,
            ):
                new_user(account, slugs=(slug,))
        return slug

    return make


async def ask_until_admitted(port: int, path: str, key: str) -> tuple[int, bytes]:
    """As ``ask``, with retries after ``Retry-After`` if admission refuses the request."""
    for _ in range(30):
        answer = await ask(port, path, key)
        if answer[0] not in (429, 503):
            break
        await asyncio.sleep(QueueFull.retry_after)
    return answer


async def ask(port: int, path: str, key: str) -> tuple[int, bytes]:
    """Status and body, over a new connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    head = f"GET {path} HTTP/1.0\r\nHost: here\r\nAuthorization: Bearer {key}\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    head_, _, body = answer.partition(b"\r\n\r\n")
    return int(head_.split()[1]), body


@pytest.mark.parametrize(
    ("requests", "members"),
    [(60, 10), pytest.param(1_000, 100, marks=[pytest.mark.long, pytest.mark.timeout(180)])],
)
def test_concurrent_requests_read_each_member_once(sandbox, organization, api, port, requests, members):
    slug = organization(members)
    sandbox.fault(latency_ms=300)
    sandbox.forget_requests()
    path = f"/v1/organizations/{slug}/scheduling?{urlencode(DAYS)}"

    async def all_at_once():
        return await asyncio.gather(*(ask_until_admitted(port, path, api.key) for _ in range(requests)))

    answers = asyncio.run(all_at_once())
    # The parts of a Microsoft batch are counted in addition to the batch.
    counted = {name: n for name, n in sandbox.requests().by_operation.items() if name in READS}
    assert {status for status, _ in answers} == {200}
    bodies = {body for _, body in answers}
    assert len(bodies) == 1
    answer = json.loads(bodies.pop())
    assert answer["failedUsers"] == []
    assert len({slot["userId"] for slot in answer["data"]["availableSlots"]}) == members
    assert counted == dict.fromkeys(READS, members // 2)
