"""Graph's recurrence patterns as RRULE lines.

https://learn.microsoft.com/graph/api/resources/patternedrecurrence
"""

from __future__ import annotations

from datetime import date
from typing import Any

from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.series import is_readable
from scheduling.zones import windows_zone

FREQUENCIES = {
    "daily": "DAILY",
    "weekly": "WEEKLY",
    "absoluteMonthly": "MONTHLY",
    "relativeMonthly": "MONTHLY",
    "absoluteYearly": "YEARLY",
    "relativeYearly": "YEARLY",
}
INDEXES = {"first": 1, "second": 2, "third": 3, "fourth": 4, "last": -1}


def rule(recurrence: Any) -> tuple[str, ...]:
    """The RRULE of a pattern and a range; empty for a single event."""
    if recurrence is None:
        return ()
    try:
        pattern, limits = recurrence["pattern"], recurrence["range"]
        parts = [f"FREQ={FREQUENCIES[pattern['type']]}", f"INTERVAL={int(pattern.get('interval') or 1)}"]
        parts += days(pattern) + end(limits)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise refusal("ErrorPropertyValidationFailure", "The recurrence pattern is not valid.") from error
    found = ("RRULE:" + ";".join(parts),)
    if not is_readable(found):
        raise refusal("ErrorPropertyValidationFailure", "The recurrence pattern is not valid.")
    return found


def days(pattern: dict[str, Any]) -> list[str]:
    """The days of the week, month or year."""
    kind = pattern["type"]
    names = [str(day)[:2].upper() for day in pattern.get("daysOfWeek") or ()]
    found = []
    if kind == "weekly":
        found = [
            f"BYDAY={','.join(names)}",
            f"WKST={str(pattern.get('firstDayOfWeek') or 'sunday')[:2].upper()}",
        ]
    elif kind.startswith("relative"):
        found = [f"BYDAY={','.join(names)}", f"BYSETPOS={INDEXES[pattern.get('index') or 'first']}"]
    elif kind.startswith("absolute"):
        day = int(pattern["dayOfMonth"])
        # Exchange takes the last day of a month that does not have the day:
        # https://learn.microsoft.com/exchange/client-developer/web-service-reference/absolutemonthlyrecurrence
        days_ = range(min(day, 28), day + 1)
        found = [f"BYMONTHDAY={','.join(map(str, days_))}", *(["BYSETPOS=-1"] if day > 28 else [])]
    if kind.endswith("Yearly"):
        found.append(f"BYMONTH={int(pattern['month'])}")
    return found


def end(limits: dict[str, Any]) -> list[str]:
    """The end of the range; the last day is included."""
    match limits["type"]:
        case "noEnd":
            return []
        case "numbered":
            return [f"COUNT={int(limits['numberOfOccurrences'])}"]
        case "endDate":
            return [f"UNTIL={date.fromisoformat(limits['endDate']):%Y%m%d}T235959"]
    raise ValueError(f"no range is of type {limits['type']!r}")


def with_defaults(recurrence: dict[str, Any], where: str) -> dict[str, Any]:
    """A recurrence as Graph returns it: with every field, also meaningless ones."""
    pattern = {
        "type": "daily",
        "interval": 1,
        "month": 0,
        "dayOfMonth": 0,
        "daysOfWeek": [],
        "firstDayOfWeek": "sunday",
        "index": "first",
    }
    limits = {
        "type": "noEnd",
        "startDate": "0001-01-01",
        "endDate": "0001-01-01",
        "recurrenceTimeZone": windows_zone(where) or where,
        "numberOfOccurrences": 0,
    }
    return {
        "pattern": pattern | {k: v for k, v in recurrence["pattern"].items() if v is not None},
        "range": limits | {k: v for k, v in recurrence["range"].items() if v is not None},
    }


NAMES = {
    "MO": "monday",
    "TU": "tuesday",
    "WE": "wednesday",
    "TH": "thursday",
    "FR": "friday",
    "SA": "saturday",
    "SU": "sunday",
}


def seeded(rule: tuple[str, ...], start: date, where: str) -> dict[str, Any] | None:
    """The recurrence of a series of days or weeks that a test has described; None for another rule."""
    line = rule[0].upper() if len(rule) == 1 else ""
    parts = dict(each.split("=") for each in line.removeprefix("RRULE:").split(";") if "=" in each)
    if parts.keys() - {"FREQ", "INTERVAL", "COUNT", "BYDAY"} or parts.get("FREQ") not in ("DAILY", "WEEKLY"):
        return None
    pattern: dict[str, Any] = {"type": parts["FREQ"].lower(), "interval": int(parts.get("INTERVAL", 1))}
    if parts["FREQ"] == "WEEKLY":
        own = list(NAMES)[start.weekday()]
        pattern["daysOfWeek"] = [NAMES[each] for each in parts.get("BYDAY", own).split(",")]
        pattern["firstDayOfWeek"] = "monday"
    elif "BYDAY" in parts:
        return None
    limits: dict[str, Any] = {"type": "noEnd", "startDate": start.isoformat()}
    if "COUNT" in parts:
        limits |= {"type": "numbered", "numberOfOccurrences": int(parts["COUNT"])}
    return with_defaults({"pattern": pattern, "range": limits}, where)
