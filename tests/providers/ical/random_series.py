"""Random series with exceptions, as text."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from tests.providers.ical.texts import calendar, event

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Tokyo", "UTC")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# Summer time begins and ends in these weeks, in one zone or another.
STARTS = (
    *(datetime(2025, month, day) for month, day in ((1, 1), (2, 27), (3, 6), (3, 27), (4, 3), (5, 31))),  # noqa: DTZ001
    *(datetime(2025, month, day) for month, day in ((10, 2), (10, 23), (10, 30), (12, 29))),  # noqa: DTZ001
    datetime(2024, 2, 29),  # noqa: DTZ001
)


@dataclass(frozen=True, slots=True)
class Random_:
    """A series; ``rule`` is its RRULE, ``first`` its first start as a wall clock."""

    content: bytes
    rule: str
    first: datetime
    zone: str | None
    all_day: bool


def rule(random: Random, first: datetime) -> str:
    """A rule that RFC 5545 allows, and on which libraries agree."""
    frequency = random.choice(("YEARLY", "MONTHLY", "MONTHLY", "WEEKLY", "WEEKLY", "DAILY", "DAILY"))
    parts = [f"FREQ={frequency}"]
    if random.random() < 0.5:
        parts.append(f"INTERVAL={random.choice((1, 2, 3, 5))}")
    numbered = False
    if frequency in ("YEARLY", "MONTHLY"):
        kind = random.randrange(5)
        if kind == 1:
            parts.append(f"BYMONTHDAY={_some(random, (1, 2, 13, 15, 28, 29, 30, 31, -1, -2, -31))}")
        elif kind == 2:
            numbers = (1, 2, 3, 4, 5, -1, -2) if frequency == "MONTHLY" else (1, 10, 20, 53, -1, -10)
            parts.append("BYDAY=" + ",".join(f"{random.choice(numbers)}{each}" for each in _days(random)))
            numbered = True
        elif kind == 3:
            parts.append(f"BYDAY={','.join(_days(random))}")
        if frequency == "YEARLY":
            more = random.randrange(6)
            if more == 0 and not numbered:
                parts.append(f"BYMONTH={_some(random, range(1, 13))}")
            elif more == 1 and kind == 0:
                parts.append(f"BYYEARDAY={_some(random, (1, 59, 60, 100, 200, 365, 366, -1, -100))}")
            elif more == 2 and kind == 3:
                parts.append(f"BYWEEKNO={_some(random, (1, 2, 20, 52, 53, -1))}")
        elif random.random() < 0.2:
            parts.append(f"BYMONTH={_some(random, range(1, 13))}")
        if kind in (1, 2, 3) and random.random() < 0.3:
            parts.append(f"BYSETPOS={_some(random, (1, 2, 3, -1, -2))}")
    elif random.random() < 0.6:
        parts.append(f"BYDAY={','.join(_days(random))}")
    if frequency == "DAILY" and random.random() < 0.2:
        parts.append(f"BYMONTHDAY={_some(random, (1, 10, 31, -1))}")
    if frequency != "YEARLY" and "BYMONTH=" not in ";".join(parts) and random.random() < 0.1:
        parts.append(f"BYMONTH={_some(random, range(1, 13))}")
    # With BYWEEKNO, dateutil counts the weeks of a year wrongly when they do not begin on a Monday.
    if random.random() < 0.3 and "BYWEEKNO" not in ";".join(parts):
        parts.append(f"WKST={random.choice(DAYS)}")
    return ";".join(parts)


def series(random: Random) -> Random_:
    """A series with a bound or without, removed, added and moved occurrences, in a zone or floating."""
    day = random.choice(STARTS) + timedelta(days=random.randrange(5))
    all_day = random.random() < 0.2
    zone = None if all_day or random.random() < 0.1 else random.choice(ZONES)
    first = day if all_day else day + timedelta(minutes=random.choice((0, 30, 90, 120, 150, 570, 1200, 1410)))
    parameter = ";VALUE=DATE" if all_day else f";TZID={zone}" if zone else ""
    form = "%Y%m%d" if all_day else "%Y%m%dT%H%M%S"
    length = (
        timedelta(days=random.choice((1, 2))) if all_day else timedelta(minutes=random.choice((15, 60, 600)))
    )
    text = rule(random, first)
    if random.random() < 0.3:
        text += f";COUNT={random.randrange(1, 30)}"
    elif random.random() < 0.4:
        end = first + timedelta(days=random.randrange(400))
        if all_day:
            text += f";UNTIL={end:%Y%m%d}"
        elif zone:
            text += f";UNTIL={end.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC):%Y%m%dT%H%M%SZ}"
        else:
            text += f";UNTIL={end:%Y%m%dT%H%M%S}"
    lines = [
        f"DTSTART{parameter}:{first:{form}}",
        f"DTEND{parameter}:{first + length:{form}}",
        f"RRULE:{text}",
    ]
    days = [first + timedelta(days=random.randrange(1, 200)) for _ in range(random.choice((0, 0, 1, 3)))]
    if days:
        lines.append(f"RDATE{parameter}:{','.join(f'{each:{form}}' for each in days)}")
    return Random_(calendar(event("\n".join(lines))), text, first, zone, all_day)


def with_exceptions(random: Random, made: Random_, starts: list[datetime]) -> bytes:
    """The series with exceptions to some of its starts, which are wall clocks."""
    parameter = ";VALUE=DATE" if made.all_day else f";TZID={made.zone}" if made.zone else ""
    form = "%Y%m%d" if made.all_day else "%Y%m%dT%H%M%S"
    text = made.content.decode()
    chosen = random.sample(starts, min(len(starts), random.randrange(5)))
    removed, moved = chosen[:2], chosen[2:]
    if removed:
        line = f"EXDATE{parameter}:{','.join(f'{each:{form}}' for each in removed)}"
        text = text.replace("RRULE:", f"{line}\r\nRRULE:")
    others = []
    for each in moved:
        later = each + timedelta(days=random.choice((-3, 0, 2)), minutes=0 if made.all_day else 45)
        end = later + (timedelta(days=1) if made.all_day else timedelta(minutes=20))
        others.append(
            event(
                f"RECURRENCE-ID{parameter}:{each:{form}}\nDTSTART{parameter}:{later:{form}}\n"
                f"DTEND{parameter}:{end:{form}}\n{random.choice(('', 'STATUS:CANCELLED'))}".strip()
            )
        )
    return text.replace("END:VCALENDAR", "\r\n".join([*others, "END:VCALENDAR"])).encode()


def _days(random: Random) -> list[str]:
    return random.sample(DAYS, random.choice((1, 1, 2, 5)))


def _some(random: Random, values: tuple[int, ...] | range) -> str:
    return ",".join(map(str, random.sample(values, random.choice((1, 1, 2)))))
