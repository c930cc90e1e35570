"""Times as Google writes and reads them: RFC 3339 with an offset."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from providers.sandbox.calendars import Calendar, Event
from providers.sandbox.google.errors import refusal
from providers.sandbox.times import date_of, instant, moment, utc_text, zone

RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})", flags=re.ASCII
)


def parsed(text: Any, parameter: str = "") -> int:
    """The instant of an RFC 3339 text; the offset is mandatory."""
    if not isinstance(text, str) or not RFC3339.fullmatch(text):
        raise refusal("badRequest", parameter=parameter)
    try:
        return instant(datetime.fromisoformat(text.upper()).astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise refusal("badRequest", parameter=parameter) from error


def known_zone(name: Any, parameter: str = "timeZone") -> str:
    """An IANA name that exists."""
    try:
        zone(name)
    except (ValueError, TypeError) as error:
        raise refusal("invalid", f"Invalid time zone: {name}", parameter=parameter) from error
    return str(name)


def written(ms: int, where: str) -> str:
    """An instant with the offset of a zone, whole seconds; ``Z`` in UTC."""
    if where == "UTC":
        return utc_text(ms)
    text = moment(ms - ms % 1000, where).isoformat()
    return text[:-6] + "Z" if text.endswith("+00:00") and where == "Etc/UTC" else text


def edge(event: Event, calendar: Calendar, name: str, where: str) -> dict[str, str]:
    """``start`` or ``end`` of an event: a date, or a time in the zone of the answer."""
    ms = event.start if name == "start" else event.end
    if event.all_day:
        return {"date": date_of(ms).isoformat()}
    own = event.start_zone if name == "start" else event.end_zone
    return {"dateTime": written(ms, where), "timeZone": own}
