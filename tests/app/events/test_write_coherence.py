"""A busy read after an event write sees the write, also with other reads at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.app.days import PROVIDERS
from tests.app.endless import repeated
from tests.conftest import Api

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

READERS = 3
DAY = {"start": "2026-12-03", "end": "2026-12-04"}
MINUTES = 24 * 60


def clock(minute: int) -> str:
    return f"2026-12-{3 + minute // MINUTES:02d}T{minute % MINUTES // 60:02d}:{minute % 60:02d}:00.000Z"


def union(stretches: list[tuple[int, int]]) -> list[dict[str, str]]:
    """The busy periods of events, computed minute by minute."""
    covered = [any(start <= minute < end for start, end in stretches) for minute in range(MINUTES)]
    edges = [n for n in range(MINUTES + 1) if (n < MINUTES and covered[n]) != (n > 0 and covered[n - 1])]
    return [{"start": clock(a), "end": clock(b)} for a, b in zip(edges[::2], edges[1::2], strict=True)]


@contextmanager
def reading(app, api: Api, user: str) -> Iterator[None]:
    """Clients that read the same user's busy periods continuously, half of them without the cache."""

    def reader(number: int) -> Callable[[], None]:
        other = Api(app.test_client(), api.key)
        headers = {"Cache-Control": "no-cache"} if number % 2 else {}

        def read() -> None:
            answer = other.get(f"/users/{user}/calendar/busy", headers=headers, **DAY)
            assert answer.status_code == 200, answer.text

        return read

    with repeated([reader(number) for number in range(READERS)]):
        yield


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "writes", [40, pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(300)])]
)
def test_a_busy_read_after_an_event_write_sees_it(writes, provider, app, api, sandbox, new_user):
    chance = random.Random(f"coherence {provider}")
    user = new_user(sandbox.account(provider, f"{provider}-writer@example.com"))
    # Slow reads and fast writes: a read that begins before a write ends after it.
    for operation in ("google.freebusy.query", "microsoft.calendarView.list"):
        sandbox.fault(operation=operation, latency_ms=15)
    events = f"/users/{user}/calendar/events/{provider}/primary"
    there: dict[str, tuple[int, int]] = {}

    with reading(app, api, user):
        for _ in range(writes):
            start = chance.randrange(0, MINUTES - 120)
            end = start + chance.randrange(15, 120)
            body = {"start": clock(start), "end": clock(end)}
            known = chance.choice(sorted(there)) if there else None
            kind = chance.choice(("create", "update", "delete")) if known else "create"
            if kind == "create":
                answer = api.post(events, body)
                there[answer.json["data"]["id"]] = (start, end)
            elif kind == "update":
                answer = api.put(f"{events}/{known}", body)
                there[known] = (start, end)
            else:
                answer = api.delete(f"{events}/{known}")
                del there[known]
            assert answer.status_code in (200, 201), answer.text

            busy = api.get(f"/users/{user}/calendar/busy", **DAY)

            assert busy.json["data"] == union(list(there.values())), (kind, body)
