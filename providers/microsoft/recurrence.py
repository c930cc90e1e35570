"""Recurrences as the patterns of Microsoft 365, and back; pure functions.

https://learn.microsoft.com/en-us/graph/api/resources/recurrencepattern and .../recurrencerange. Exchange
moves a day that a month does not have to its last day:
https://learn.microsoft.com/en-us/exchange/client-developer/web-service-reference/absolutemonthlyrecurrence
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from typing import Any

from providers.events import Day, Recurrence, When
from providers.http.calls import Json
from providers.http.json_validation import SHAPE_ERRORS
from providers.ical.clocks import naive
from providers.ical.rules import Rule
from providers.microsoft.errors import PROVIDER
from providers.recurrence import BadRecurrence, Series, rule_of, utc_value
from providers.timestamps import DAY

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_CODES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_INDEXES = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last"}
_POSITIONS = {word: number for number, word in _INDEXES.items()}
# Exchange's bounds of the interval between two occurrences:
# https://learn.microsoft.com/en-us/exchange/client-developer/web-service-reference/interval
_INTERVALS = {"DAILY": 999, "WEEKLY": 99, "MONTHLY": 99, "YEARLY": 99}
# Every month has these days.
_SHORTEST = 28


def require_pattern(recurrence: Recurrence, start: When | None) -> None:
    """Check a recurrence that is to be written; without the start of the series, as far as that is possible.

    :raise BadRecurrence: naming the part that has no equivalent
    """
    if start is not None:
        patterned(Series(start, recurrence))
    else:
        _require_parts(recurrence)


def _require_parts(recurrence: Recurrence) -> None:
    if recurrence.added:
        raise _missing("RDATE")
    if recurrence.removed:
        raise BadRecurrence(
            f"must not have EXDATE at {PROVIDER}: create the series, then delete its occurrences"
        )
    rule = rule_of(recurrence.rule)
    most = _INTERVALS.get(rule.frequency)
    if most is None:
        raise _missing(f"FREQ={rule.frequency}")
    if rule.interval > most:
        raise BadRecurrence(
            f"must have an INTERVAL of at most {most} with FREQ={rule.frequency} at {PROVIDER}"
        )
    times = {"BYHOUR": rule.hours, "BYMINUTE": rule.minutes, "BYSECOND": rule.seconds}
    for name, given in {"BYWEEKNO": rule.weeks, "BYYEARDAY": rule.year_days, **times}.items():
        if given:
            raise _missing(name)
    if rule.frequency in ("DAILY", "WEEKLY"):
        for name, given in {"BYMONTH": rule.months, "BYMONTHDAY": rule.month_days}.items():
            if given:
                raise _missing(f"{name} with FREQ={rule.frequency}")
        if rule.positions:
            raise _missing(f"BYSETPOS with FREQ={rule.frequency}")
        if rule.frequency == "DAILY" and rule.weekdays and rule.interval > 1:
            raise _missing("BYDAY with FREQ=DAILY and an INTERVAL")


def patterned(series: Series) -> Json:
    """The pattern and the range of a series.

    :raise BadRecurrence: naming the part that has no equivalent
    """
    _require_parts(series.recurrence)
    return {"pattern": _pattern(series.rule, naive(series.first).date()), "range": _range(series)}


def _pattern(rule: Rule, start: date) -> Json:
    interval = {"interval": rule.interval}
    match rule.frequency:
        case "DAILY" if not rule.weekdays:
            return {"type": "daily", **interval}
        case "DAILY" | "WEEKLY":
            days = sorted(rule.weekdays or {start.weekday()})
            first = {"firstDayOfWeek": _DAYS[rule.week_start]}
            return {"type": "weekly", **interval, "daysOfWeek": [_DAYS[each] for each in days], **first}
        case "MONTHLY":
            if rule.months:
                raise _missing("BYMONTH with FREQ=MONTHLY")
            return _in_month(rule, start, None) | interval
    if len(rule.months) > 1:
        raise _missing("several months in BYMONTH")
    if not rule.months and rule.has_day:
        raise _missing(f"{_by_day(rule)} with FREQ=YEARLY and without BYMONTH")
    month = next(iter(rule.months), start.month)
    return _in_month(rule, start, month) | interval | {"month": month}


def _in_month(rule: Rule, start: date, month: int | None) -> Json:
    """The day of each month, or of one ``month`` of the year."""
    kind = "Monthly" if month is None else "Yearly"
    if rule.weekdays or rule.nth:
        number, days = _weekdays(rule)
        if rule.month_days:
            raise _missing("BYMONTHDAY with BYDAY")
        return {
            "type": f"relative{kind}",
            "daysOfWeek": [_DAYS[each] for each in sorted(days)],
            "index": number,
        }
    return {"type": f"absolute{kind}", "dayOfMonth": _day(rule, start, month)}


def _weekdays(rule: Rule) -> tuple[str, set[int]]:
    """Which of the weekdays in a month: "first" ... "last", and the weekdays.

    The documentation says of several weekdays that the event falls on the first day that fits. That is clear
    for the first one only.
    """
    found = {number for number, _ in rule.nth} | set(rule.positions)
    days = {day for _, day in rule.nth} | rule.weekdays
    if len(rule.nth) > 1 or (rule.nth and (rule.weekdays or rule.positions)) or len(rule.positions) > 1:
        raise _missing("several days in BYDAY or BYSETPOS")
    number = next(iter(found), None)
    if number not in _INDEXES:
        raise _missing("BYDAY without the first to fourth, or last, of the month")
    if len(days) > 1 and number != 1:
        raise _missing("several weekdays in BYDAY with BYSETPOS other than 1")
    return _INDEXES[number], days


def _day(rule: Rule, start: date, month: int | None) -> int:
    """The day of the month. In February a pattern for the 30th falls on the last day, a rule on no day."""
    days = rule.month_days or frozenset({start.day})
    longest = 31 if month is None else monthrange(2024, month)[1]
    shortest = _SHORTEST if month in (None, 2) else longest
    last = max(days)
    if days == {-1} and rule.positions in ((), (1,), (-1,)):
        return 31
    if rule.positions == (-1,) and _SHORTEST < last <= 31 and days == set(range(_SHORTEST, last + 1)):
        return last
    if len(days) > 1:
        raise _missing("several days in BYMONTHDAY")
    if last < 1:
        raise _missing("BYMONTHDAY from the end of the month")
    if rule.positions not in ((), (1,), (-1,)):
        raise _missing("BYSETPOS with BYMONTHDAY")
    if last > shortest:
        named = f"BYMONTHDAY={last}" if rule.month_days else f"a rule for the {last}th, where start is,"
        raise BadRecurrence(
            f"must not have {named} at {PROVIDER}, which takes the last day of a shorter month: "
            "BYMONTHDAY=-1 is the last day of each month"
        )
    return last


def _range(series: Series) -> Json:
    rule, start = series.rule, naive(series.first).date().isoformat()
    if rule.count is not None:
        return {"type": "numbered", "startDate": start, "numberOfOccurrences": rule.count}
    if rule.until is None:
        return {"type": "noEnd", "startDate": start}
    until, of_day = rule.until, series.first % DAY
    day = (until.wall if until.is_date else series.clock.wall(until.instant(series.clock))) // DAY
    if not until.is_date:
        # The last day on which an occurrence does not begin after the end.
        day += 1
        while series.clock.instant(day * DAY + of_day) > until.instant(series.clock):
            day -= 1
    return {"type": "endDate", "startDate": start, "endDate": naive(day * DAY).date().isoformat()}


def lines(found: Any, series: Series) -> tuple[str, ...] | None:
    """The rule of a stored pattern; None for one that is not known. Of ``series`` only the start counts."""
    try:
        parts = [*_parts(found["pattern"]), *_end(found["range"], series)]
    except SHAPE_ERRORS:
        return None
    return (f"RRULE:{';'.join(parts)}",)


def _parts(pattern: Json) -> list[str]:
    # {"type": "relativeMonthly", "interval": 1, "month": 0, "dayOfMonth": 0, "daysOfWeek": ["thursday"],
    #  "firstDayOfWeek": "sunday", "index": "second"}
    kind, interval = pattern["type"], int(pattern["interval"])
    frequency = {"daily": "DAILY", "weekly": "WEEKLY"}.get(kind) or kind.removeprefix(
        "absolute"
    ).removeprefix("relative").upper()
    parts = [f"FREQ={frequency}"] + ([f"INTERVAL={interval}"] if interval > 1 else [])
    if kind.endswith("Yearly"):
        parts.append(f"BYMONTH={int(pattern['month'])}")
    if kind in ("absoluteMonthly", "absoluteYearly"):
        return parts + _day_parts(int(pattern["dayOfMonth"]))
    if kind == "daily":
        return parts
    days = [_CODES[each] for each in sorted(_DAYS.index(each.lower()) for each in pattern["daysOfWeek"])]
    if kind == "weekly":
        first = _CODES[_DAYS.index(str(pattern.get("firstDayOfWeek") or "sunday").lower())]
        return [*parts, f"BYDAY={','.join(days)}", f"WKST={first}"]
    if kind not in ("relativeMonthly", "relativeYearly"):
        raise ValueError("a pattern that is not known")
    number = _POSITIONS[str(pattern.get("index") or "first").lower()]
    if len(days) == 1:
        return [*parts, f"BYDAY={number}{days[0]}"]
    return [*parts, f"BYDAY={','.join(days)}", f"BYSETPOS={number}"]


def _day_parts(day: int) -> list[str]:
    """The day of a month, or the last one of a month that does not have it."""
    if day <= _SHORTEST:
        return [f"BYMONTHDAY={day}"]
    if day == 31:
        return ["BYMONTHDAY=-1"]
    return [f"BYMONTHDAY={','.join(map(str, range(_SHORTEST, day + 1)))}", "BYSETPOS=-1"]


def _end(limits: Json, series: Series) -> list[str]:
    match limits["type"]:
        case "noEnd":
            return []
        case "numbered":
            return [f"COUNT={int(limits['numberOfOccurrences'])}"]
        case "endDate":
            last = date.fromisoformat(limits["endDate"])
            if isinstance(series.start, Day):
                return [f"UNTIL={last:%Y%m%d}"]
            day = (last - date(1970, 1, 1)).days
            return [f"UNTIL={utc_value(series.clock.instant(day * DAY + series.first % DAY))}"]
    raise ValueError("a range that is not known")


def _by_day(rule: Rule) -> str:
    return "BYMONTHDAY" if rule.month_days else "BYDAY"


def _missing(part: str) -> BadRecurrence:
    return BadRecurrence(f"must not have {part}: {PROVIDER} has no pattern for it")
