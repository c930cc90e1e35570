"""Goal 11: an engine from the package index, ``slotify-scheduling``, on the same question."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
from slotify import AvailabilityEngine, BookingPolicy, BusyPeriod, SlotGenerator

from scheduling.intervals import Groups
from scheduling.query import Query, slots
from scheduling.windows import DAY, MINUTE
from tests.benchmarks.baseline import Pair
from tests.benchmarks.cases import OFFICE, START
from tests.benchmarks.timing import Times, interleaved

ZONE = "America/New_York"
BUSY, DAYS, SLOT = 50, 30, 30 * MINUTE
FIRST_DAY = date(2026, 3, 1)


def times(rounds: int) -> tuple[int, Times]:
    """How many slots both find, the same ones, and how long they take."""
    # The competitor knows one grid, that of the window; on busy periods that keep to it, ours is the same.
    periods = meetings()
    query = Query(start=START, end=START + DAYS * DAY, duration=SLOT, zone=ZONE, windows=OFFICE)
    calendar, member = Groups.of([periods]), np.zeros(1, np.int64)
    competitor = AvailabilityEngine(
        SlotGenerator(start="09:00", end="17:00", duration=30, timezone=ZONE),
        policy=BookingPolicy(busy_periods=tuple(BusyPeriod(_moment(a), _moment(b)) for a, b in periods)),
    )
    last = FIRST_DAY + timedelta(days=DAYS - 1)
    contenders: dict[str, Callable[[], Any]] = {
        "engine": lambda: slots(query, calendar, member, 1),
        "competitor": lambda: competitor.available_slots(FIRST_DAY, last, now=_moment(START)),
    }
    found = contenders["engine"]().starts.tolist()
    if found != [round(slot.start.timestamp() * 1000) for slot in contenders["competitor"]()]:
        raise AssertionError("our slots are not those of the competitor")
    return len(found), interleaved(contenders, rounds)


def meetings() -> list[Pair]:
    """Busy periods of half an hour or an hour in working hours, on the half hour."""
    random = Random("rival")
    starts = [START + random.randrange(DAYS) * DAY + random.randrange(28, 44) * SLOT for _ in range(BUSY)]
    return [(start, start + random.choice((SLOT, 2 * SLOT))) for start in starts]


def _moment(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)
