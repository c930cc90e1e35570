"""Reminders: alarms of an event at a time before its start (RFC 5545, 3.6.6)."""

from __future__ import annotations

from providers.ical.lines import UnreadableLine, parameters
from providers.ical.times import duration
from providers.timestamps import DAY

_MINUTE = 60_000


def minutes_before(given: str, value: str) -> int | None:
    """The minutes before the start of the event at which a ``TRIGGER`` is.

    None for any other trigger: at a fixed time, after the start, or relative to the end.
    """
    stated = parameters(given)
    if stated.get("RELATED", "").upper() == "END" or not value.strip("-+").upper().startswith("P"):
        return None
    try:
        length = duration(value.removeprefix("-"))
    except UnreadableLine:
        return None
    minutes, rest = divmod(length.days * DAY + length.milliseconds, _MINUTE)
    return minutes if not rest and (value.startswith("-") or minutes == 0) else None
