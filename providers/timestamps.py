"""Timestamps in UTC milliseconds: parse and format the providers' texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

DAY = 86_400_000

# Where a day begins first and ends last on earth. A day in an unknown zone is busy between the two: that
# blocks too much, but never shows busy time as free.
FIRST_MIDNIGHT = timezone(timedelta(hours=14))
LAST_MIDNIGHT = timezone(timedelta(hours=-12))

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock on purpose: the offset is subtracted apart
_MILLISECOND = timedelta(milliseconds=1)

# The limits of ``datetime``; requests to providers are clipped to them.
_FIRST = -62_135_596_800_000
_LAST = 253_402_300_799_999

# Cache size. Many events begin at the same few times, so each text is parsed once.
_REMEMBERED = 16_384

# Non-zero digits after the sixth: Graph writes seven, ``fromisoformat`` drops the seventh.
_TAIL = re.compile(r"[.,]\d{6}0*[1-9]")


@lru_cache(_REMEMBERED)
def instant(text: str, *, up: bool = False) -> int:
    """Milliseconds of an RFC 3339 text: rounded down, or up for the end of a period.

    :raise ValueError: for any other text, also for one without an offset
    """
    moment = _datetime(text)
    zone = moment.tzinfo
    if zone is None:
        raise ValueError("a moment without an offset")
    return _milliseconds(moment.replace(tzinfo=None), text, zone, up=up)


def shown_instant(value: object) -> int | None:
    """As :func:`instant`, for a moment that is only shown: None for a value that is no such text."""
    if not isinstance(value, str):
        return None
    try:
        return instant(value)
    except (ValueError, OverflowError):
        return None


@lru_cache(_REMEMBERED)
def wall_instant(text: str, zone: tzinfo, *, up: bool = False) -> int:
    """As :func:`instant`, for a text without an offset, read as wall clock of ``zone``.

    An hour that occurs twice means the first one; a skipped time means the moment of the skip. An offset
    in the text takes precedence.
    """
    moment = _datetime(text)
    return _milliseconds(moment.replace(tzinfo=None), text, moment.tzinfo or zone, up=up)


def ordered(start: int, end: int) -> tuple[int, int]:
    """``(start, end)`` of a period, checked.

    :raise ValueError: when the period ends before it begins
    """
    if end < start:
        raise ValueError("a period that ends before it begins")
    return start, end


def utc_text(milliseconds: int) -> str:
    """``2026-11-20T09:00:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=min(max(milliseconds, _FIRST), _LAST))
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _datetime(text: str) -> datetime:
    """The moment of an ISO 8601 text. The year 0, which imported events have, is read as the first year.

    RFC 3339 allows a lower-case "z", ``fromisoformat`` does not: https://www.rfc-editor.org/rfc/rfc3339#section-5.6
    """
    if text.endswith("z"):
        text = f"{text[:-1]}Z"
    return datetime.fromisoformat(f"0001{text[4:]}" if text.startswith("0000") else text)


def _milliseconds(wall: datetime, text: str, zone: tzinfo, *, up: bool) -> int:
    # The offset is subtracted as a number: the years 1 and 9999, which Graph sends, have no UTC form.
    since = wall - _WALL_EPOCH - (zone.utcoffset(wall.replace(tzinfo=zone)) or timedelta())
    if not up:
        return since // _MILLISECOND
    if _TAIL.search(text):
        since += timedelta(microseconds=1)
    return -(-since // _MILLISECOND)
