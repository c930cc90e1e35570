"""The main use case, end to end: a client requests slots, and workers read both providers."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("worker")

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
MEETING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


def test_slots_avoid_busy_periods_of_both_providers(api, sandbox, new_user):
    google = sandbox.account("google", "ada@example.com", events=[MEETING])
    later = {"start": "2026-12-03T10:30:00Z", "end": "2026-12-03T11:00:00Z"}
    microsoft = sandbox.account("microsoft", "ada@contoso.example", events=[later])
    user = new_user(google, microsoft)

    answer = api.get(
        f"/users/{user}/scheduling",
        **DAY,
        earliestTimeEachDay="09:00",
        latestTimeEachDay="12:00",
        slotDuration="30",
    )

    assert answer.status_code == 200, answer.json
    assert [slot["start"][11:16] for slot in answer.json["data"]["availableSlots"]] == [
        "10:00",
        "11:00",
        "11:30",
    ]
    assert answer.headers["Age"] == "0"


def test_a_second_request_touches_no_provider(api, sandbox, new_user):
    user = new_user(sandbox.account("google", "ada@example.com", events=[MEETING]))
    first = api.get(f"/users/{user}/scheduling", **DAY)
    sandbox.forget_requests()

    second = api.get(f"/users/{user}/scheduling", **DAY)

    assert second.json == first.json
    assert sandbox.requests().total == 0
