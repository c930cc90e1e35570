"""A Thursday, its meetings, and short forms of answers about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from werkzeug.test import TestResponse

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
MORNING = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T12:00:00Z", "slotDuration": "60"}

# Nothing on that Thursday is in the past, whenever the tests run.
NOVEMBER = 1_795_132_800_000


def before_thursday(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let holds be taken as in November."""
    monkeypatch.setattr("app.events.holds.is_past", lambda end: end <= NOVEMBER)


PROVIDERS = ("google", "microsoft")


def meeting(start: str, end: str, **more: Any) -> dict[str, Any]:
    """An event on Thursday between two UTC times."""
    return {"start": f"2026-12-03T{start}:00Z", "end": f"2026-12-03T{end}:00Z", **more}


def all_day(first: str, last: str, **more: Any) -> dict[str, Any]:
    """An all-day event; ``last`` is excluded."""
    return {"start": first, "end": last, "allDay": True, **more}


def periods(answer: TestResponse) -> list[tuple[str, str]]:
    """Busy periods as ``("09:00", "10:00")``; times on other days keep their date."""
    assert answer.status_code == 200, answer.json
    return [(_short(each["start"]), _short(each["end"])) for each in answer.json["data"]]


def starts(answer: TestResponse) -> list[str]:
    """The starts of the slots in an answer."""
    assert answer.status_code == 200, answer.json
    return starts_of(answer.json["data"]["availableSlots"])


def starts_of(slots: Iterable[Mapping[str, str]]) -> list[str]:
    """The starts of slots."""
    return [_short(slot["start"]) for slot in slots]


def _short(timestamp: str) -> str:
    assert timestamp.endswith(":00.000Z")
    return timestamp[:16].removeprefix("2026-12-03T").replace("T", " ")
