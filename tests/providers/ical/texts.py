"""Calendars as text, for tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from providers.ical.calendar import CalendarText, read

HOUR = 3_600_000
DAY = 24 * HOUR


def calendar(*parts: str, head: str = "") -> bytes:
    """A calendar of parts, whose lines are divided by line breaks."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//tests//EN", *head.splitlines()]
    for part in parts:
        lines += [line.strip() for line in part.strip().splitlines()]
    return "\r\n".join([*lines, "END:VCALENDAR", ""]).encode()


def event(lines: str, uid: str = "one") -> str:
    """An event."""
    return f"BEGIN:VEVENT\nUID:{uid}\nDTSTAMP:20260101T000000Z\n{lines}\nEND:VEVENT"


def parsed(content: bytes) -> CalendarText:
    """The calendar, with time enough."""
    return read(content, deadline=soon())


def soon() -> float:
    """A deadline that is not reached."""
    return time.monotonic() + 60


def at(text: str) -> int:
    """Milliseconds of an ISO text in UTC."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def shown(milliseconds: int) -> str:
    """The ISO text of a moment in UTC, without what is zero."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return f"{moment:%Y-%m-%d %H:%M}"
