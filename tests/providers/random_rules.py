"""Random rules of RFC 5545 that give the start of their series, and their occurrences by dateutil."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from random import Random
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr

from providers.events import Day, Moment, Recurrence, When
from providers.recurrence import Series, lines

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo", "UTC")
# In the weeks before and after these days the clock changes, in one zone or another.
TURNS = (date(2026, 3, 8), date(2026, 3, 29), date(2026, 4, 5), date(2026, 10, 4), date(2026, 11, 1))
YEARS = timedelta(days=1500)
MOST = 400


def wall_of(start: When) -> datetime:
    """The start on the clock of its zone, with the zone; midnight in UTC for a day."""
    if isinstance(start, Day):
        return datetime.fromisoformat(start.date).replace(tzinfo=UTC)
    return datetime.fromtimestamp(start.at / 1000, ZoneInfo(start.zone or "UTC"))


def occurrences(series: Series) -> list[int]:
    """The starts in four years, at most ``MOST``, by dateutil, in UTC milliseconds."""
    first = wall_of(series.start)
    text = "\n".join(lines(series.recurrence)).replace(";VALUE=DATE", "")
    if isinstance(series.start, Day):
        # Without a zone, because UNTIL has none.
        found = rrulestr(text, dtstart=first.replace(tzinfo=None), forceset=True)
        starts = (each.replace(tzinfo=UTC) for each in found)
    else:
        starts = iter(rrulestr(text, dtstart=first, forceset=True))
    near = takewhile(lambda each: each - first < YEARS, starts)
    return [int(each.timestamp() * 1000) for each, _ in zip(near, range(MOST), strict=False)]


def start(random: Random) -> When:
    """A start around a change of the clock, or on any day."""
    day = random.choice(TURNS) + timedelta(days=random.randrange(-10, 10))
    if random.random() < 0.3:
        day = date(2026, random.randrange(1, 13), random.randrange(1, 29)) + timedelta(
            days=random.randrange(4)
        )
    if random.random() < 0.2:
        return Day(day.isoformat())
    zone = random.choice(ZONES)
    hour, minute = random.choice((0, 1, 2, 3, 9, 23)), random.choice((0, 30))
    shown = datetime(day.year, day.month, day.day, hour, minute, tzinfo=ZoneInfo(zone))
    return Moment(int(shown.timestamp() * 1000), zone)


def rule(random: Random) -> str:
    """A rule without an end."""
    frequency = random.choice(("DAILY", "WEEKLY", "WEEKLY", "MONTHLY", "MONTHLY", "YEARLY"))
    parts = [f"FREQ={frequency}"]
    if random.random() < 0.4:
        parts.append(f"INTERVAL={random.randrange(2, 5)}")
    some = ",".join(random.sample(DAYS, random.randrange(1, 4)))
    if frequency == "WEEKLY" and random.random() < 0.7:
        parts += [f"BYDAY={some}", *random.choice(([], ["WKST=SU"]))]
    elif frequency == "DAILY" and random.random() < 0.3:
        parts.append(f"BYDAY={some}")
    elif frequency in ("MONTHLY", "YEARLY"):
        if frequency == "YEARLY" and random.random() < 0.8:
            parts.append(f"BYMONTH={random.choice((1, 2, 3, 10, 11))}")
        parts += random.choice(
            (
                [],
                [f"BYMONTHDAY={random.choice((1, 8, 28, 29, 30, 31, -1, -2))}"],
                ["BYMONTHDAY=28,29,30", "BYSETPOS=-1"],
                [f"BYDAY={random.choice((1, 2, 4, 5, -1))}{random.choice(DAYS)}"],
                [f"BYDAY={some}", f"BYSETPOS={random.choice((1, 2, -1))}"],
            )
        )
    return ";".join(parts)


def series(random: Random) -> Series:
    """A series whose rule gives its start, without an end, with a COUNT or with an UNTIL."""
    while True:
        made = Series(start(random), Recurrence(rule(random)))
        found = occurrences(made)
        if found:
            break
    first = made.start
    day = isinstance(first, Day)
    begins: When = (
        Day(datetime.fromtimestamp(found[0] / 1000, UTC).date().isoformat())
        if isinstance(first, Day)
        else Moment(found[0], first.zone)
    )
    text, end = made.recurrence.rule, random.choice(("", "COUNT", "UNTIL"))
    if end == "COUNT":
        text += f";COUNT={random.randrange(1, 40)}"
    elif end == "UNTIL":
        last = datetime.fromtimestamp(random.choice(found) / 1000, UTC)
        text += f";UNTIL={last:%Y%m%d}" if day else f";UNTIL={last:%Y%m%dT%H%M%SZ}"
    return Series(begins, Recurrence(text))
