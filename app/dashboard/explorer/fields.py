"""The fields of the explorer's form."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from marshmallow import ValidationError, fields

from app.dashboard.forms import Body
from app.schemas.availability import WEEKDAYS
from app.schemas.fields import SLUG, USER_ID, Clock, Identifier, IntegerText, Parsed, Text, Word, Zone
from app.schemas.timestamps import FIRST_YEAR, LAST_YEAR, OUT_OF_YEARS

# The most users in one picture: more do not fit a screen, and each costs a read.
MAX_SHOWN = 100
DAYS = ("1", "3", "5", "7", "14")
WORKDAYS = WEEKDAYS[:5]
# Which days and hours are offered; "workdays" are Monday to Friday.
WINDOWS = ("workdays", "none", "daily", "weekly")
EDGES = ("earliestTimeEachDay", "latestTimeEachDay")
# The order of the lanes.
SORTS = ("listed", "most", "fewest", "unread")
# All people have to be free.
ALL = "all"

# The fields that are arguments of the API unless they have its default.
DEFAULTS = {
    "padding": "0",
    "paddingBefore": "",
    "paddingAfter": "",
    "maxOverlaps": "0",
    "slotStep": "",
    "align": "start",
    "minimumNotice": "",
    "limit": "",
}
LABELS = {
    "organization": "Organization",
    "users": "Users",
    "zone": "Time zone",
    "day": "First day",
    "days": "Days",
    "window": "Hours",
    "end": "The last day",
    "earliestTimeEachDay": "The daily window's start",
    "latestTimeEachDay": "The daily window's end",
    "slotDuration": "Slot length",
    "padding": "Padding",
    "paddingBefore": "Padding before",
    "paddingAfter": "Padding after",
    "maxOverlaps": "Overlaps",
    "slotStep": "Step",
    "align": "Start",
    "minimumNotice": "Notice",
    "limit": "Limit",
    "together": "Free together",
    "find": "Filter",
    "sort": "Order",
}


class Names(Parsed[tuple[str, ...]]):
    """User ids in one text field, separated by commas, semicolons or spaces."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={}, **options)

    def parse(self, text: str) -> tuple[str, ...]:
        """The distinct ids, in order."""
        names = tuple(dict.fromkeys(name for name in re.split(r"[\s,;]+", text) if name))
        for name in names:
            if not USER_ID.fullmatch(name):
                raise ValidationError(f"holds {name[:40]!r}, which is no user's identifier")
        if len(names) > MAX_SHOWN:
            raise ValidationError(f"must name at most {MAX_SHOWN} users")
        return names


class Together(Parsed[str]):
    """How many people have to be free together: ``all``, or a number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={}, **options)

    def parse(self, text: str) -> str:
        """``all``, or the digits of the number."""
        if text.lower() == ALL:
            return ALL
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MAX_SHOWN):
            raise ValidationError(f"must be all, or a number from 1 to {MAX_SHOWN}")
        return str(int(text))


def _within_years(day: date) -> None:
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValidationError(OUT_OF_YEARS)


class ExplorerForm(Body):
    """The explorer's own fields. The API's schema parses the fields that describe slots."""

    organization = Identifier(SLUG)
    users = Names(load_default=())
    zone = Zone(load_default=ZoneInfo("UTC"))
    day = fields.Date(validate=_within_years, error_messages={"invalid": "must be a date"})
    days = Word(DAYS, load_default="7")
    window = Word(WINDOWS)
    earliestTimeEachDay = Clock(load_default=9 * 60)
    latestTimeEachDay = Clock(load_default=17 * 60)
    slotDuration = IntegerText(least=1, most=10_080, load_default=30)
    together = Together()
    find = Text(longest=128, load_default="")
    sort = Word(SORTS, load_default=SORTS[0])
