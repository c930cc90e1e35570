"""Graph's recurrence patterns as RRULE lines.

https://learn.microsoft.com/graph/api/resources/patternedrecurrence
"""

from __future__ import annotations

from datetime import date
from typing import Any

from providers.sandbox.microsoft.errors import refusal
from providers.sandbox.series import is_readable

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
        found = [f"BYMONTHDAY={int(pattern['dayOfMonth'])}"]
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
