"""The busy times of users as the provider has them, and whether an answer contradicts them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Period = tuple[datetime, datetime]

DAY = datetime(2026, 12, 3, tzinfo=UTC)
SLOT = timedelta(minutes=30)
HALF_HOURS = [(DAY + n * SLOT, DAY + (n + 1) * SLOT) for n in range(48)]

# Written events go here, an event an hour.
WRITTEN_FROM = datetime(2026, 12, 7, tzinfo=UTC)
WRITTEN_DAYS = 60

DURING = {"start": "2026-12-03", "end": "2026-12-04", "slotDuration": "30"}
DURING_WRITTEN = {
    "start": WRITTEN_FROM.isoformat(),
    "end": (WRITTEN_FROM + timedelta(days=WRITTEN_DAYS)).isoformat(),
}


def at(hour: int) -> Period:
    """An hour of the day on which all meetings are."""
    return DAY + timedelta(hours=hour), DAY + timedelta(hours=hour + 1)


def written(number: int) -> Period:
    """When the event of that number is."""
    start = WRITTEN_FROM + timedelta(hours=number)
    return start, start + SLOT


def body(period: Period) -> dict[str, str]:
    """In the format of events and slots."""
    return {"start": period[0].isoformat(), "end": period[1].isoformat()}


def periods(found: Iterable[Mapping[str, str]]) -> list[Period]:
    """Busy periods, or slots, of an answer."""
    return [(datetime.fromisoformat(each["start"]), datetime.fromisoformat(each["end"])) for each in found]


def free(busy: Collection[Period]) -> list[Period]:
    """Every slot of the day."""
    return [slot for slot in HALF_HOURS if not overlapping(slot, busy)]


def offered(slots: Iterable[Mapping[str, str]], busy: Collection[Period]) -> list[Period]:
    """The wrong slots: they overlap busy time."""
    return [slot for slot in periods(slots) if overlapping(slot, busy)]


def left_out(found: Iterable[Mapping[str, str]], busy: Collection[Period]) -> list[Period]:
    """The busy periods missing in an answer, which is as wrong."""
    told = periods(found)
    return [each for each in busy if not any(start <= each[0] and each[1] <= end for start, end in told)]


def overlapping(period: Period, others: Collection[Period]) -> bool:
    """Whether it overlaps any of the periods."""
    return any(start < period[1] and period[0] < end for start, end in others)


def failed(answer: Mapping[str, Any]) -> set[str]:
    """The users that an answer names as not read."""
    return {each["customId"] for each in answer["failedUsers"]}
