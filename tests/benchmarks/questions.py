"""The questions that the benchmarks ask."""

from __future__ import annotations

from tests.benchmarks import calendars


def office(days: int) -> dict[str, str]:
    """Half-hour slots between 09:00 and 17:00 on the first days."""
    return {**whole(days), "earliestTimeEachDay": "09:00", "latestTimeEachDay": "17:00"}


def whole(days: int) -> dict[str, str]:
    """Half-hour slots at any time of the first days."""
    end = calendars.START + days * calendars.DAY
    return {"start": calendars.text(calendars.START), "end": calendars.text(end)}


WEEK = office(7)
