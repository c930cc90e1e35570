"""The calendars of the people of the benchmarks, and the answers of both providers about them.

A few patterns stand for all: seven meetings of 15 to 60 minutes on each day, at any minute except between
15:00 and 17:30 UTC, so that every question has an answer with slots in it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from random import Random
from typing import Any

MINUTE = 60_000
DAY = 1440 * MINUTE
START = 1_772_409_600_000  # 2026-03-02, a Monday
DAYS = 70
PATTERNS = 20
MEETINGS_A_DAY = 7
FREE_FROM, FREE_UNTIL = 900, 1050

# Of a person, in the path of a mailbox or as the id of a calendar.
ADDRESS = re.compile(r"person-(\d+)(?:@|%40)")

Period = tuple[int, int]


@cache
def busy(pattern: int) -> tuple[Period, ...]:
    """Merged busy periods in milliseconds, from a week before ``START``."""
    random = Random(f"calendar {pattern}")
    found: list[Period] = []
    for day in range(-7, DAYS):
        meetings = sorted(_meeting(random) for _ in range(MEETINGS_A_DAY))
        midnight = START + day * DAY
        for opens, closes in ((midnight + a * MINUTE, midnight + b * MINUTE) for a, b in meetings):
            if found and opens <= found[-1][1]:
                found[-1] = (found[-1][0], max(closes, found[-1][1]))
            else:
                found.append((opens, closes))
    return tuple(found)


def within(pattern: int, start: int, end: int) -> list[Period]:
    """The busy periods cut to a range, as freeBusy has them."""
    return [(max(a, start), min(b, end)) for a, b in busy(pattern) if a < end and b > start]


def pattern_of(text: str, pattern: int) -> int:
    """The pattern of the person whose address is in a text; without one, ``pattern``."""
    found = ADDRESS.search(text)
    return int(found[1]) % PATTERNS if found else pattern


def google(pattern: int, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer to ``freebusy.query``; ``pattern`` is that of the account that sends it."""
    start, end = (_instant(asked[name]) for name in ("timeMin", "timeMax"))

    def periods(calendar: str) -> list[dict[str, str]]:
        found = within(pattern_of(calendar, pattern), start, end)
        return [{"start": text(a), "end": text(b)} for a, b in found]

    return {
        "kind": "calendar#freeBusy",
        "timeMin": asked["timeMin"],
        "timeMax": asked["timeMax"],
        "calendars": {item["id"]: {"busy": periods(item["id"])} for item in asked["items"]},
    }


def microsoft(pattern: int, path: str, query: dict[str, str]) -> dict[str, Any]:
    """The answer to one part of a batch: the mailbox's settings, or a calendar's view.

    ``pattern`` is that of the account that sends it; the path may name another mailbox.
    """
    if path.endswith("/mailboxSettings"):
        return {"timeZone": "UTC"}
    if not path.endswith("/calendarView"):
        raise ValueError(f"not a part that the benchmarks know: {path}")
    start, end = (_instant(query[name]) for name in ("startDateTime", "endDateTime"))
    events = [
        _event(*period) for period in busy(pattern_of(path, pattern)) if period[0] < end and period[1] > start
    ]
    return {"value": events}


def text(instant: int) -> str:
    """An instant as Google writes it."""
    return f"{datetime.fromtimestamp(instant / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _event(start: int, end: int) -> dict[str, Any]:
    return {
        "@odata.etag": f'W/"{start:x}"',
        "id": f"AAMkAGI{start:x}",
        "isAllDay": False,
        "isCancelled": False,
        "showAs": "busy",
        "responseStatus": {"response": "organizer", "time": "0001-01-01T00:00:00Z"},
        "start": {"dateTime": text(start)[:-1] + ".0000000", "timeZone": "UTC"},
        "end": {"dateTime": text(end)[:-1] + ".0000000", "timeZone": "UTC"},
    }


def _instant(written: str) -> int:
    return round(datetime.fromisoformat(written).timestamp() * 1000)


def _meeting(random: Random) -> Period:
    length = random.randrange(15, 61)
    start = random.randrange(1440 - length)
    while start < FREE_UNTIL and start + length > FREE_FROM:
        start = random.randrange(1440 - length)
    return start, start + length
