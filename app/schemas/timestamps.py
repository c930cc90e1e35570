"""Parses timestamps in requests: exactly the ISO 8601 forms that the API documents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from dateutil.parser import isoparser

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

# Outside these years, time zone rules are guesses and providers return no events.
FIRST_YEAR, LAST_YEAR = 1970, 2199
OUT_OF_YEARS = f"must lie in the years {FIRST_YEAR} to {LAST_YEAR}"

# The parser accepts more than the API documents (a bare year, any separator); this pattern does not.
SHAPE = re.compile(
    r"""
    (?: \d{4}-\d{2}(?:-\d{2})? | \d{8}                                # calendar date
      | (?P<week>\d{4}-?W\d{2})(?:-?\d)? | \d{4}-?\d{3} )             # week date, ordinal date
    (?P<time> [Tt ]
      (?P<clock> \d{2}(?::\d{2}(?::\d{2})?)? | \d{4}(?:\d{2})? )       # extended, basic
      (?: [.,] (?P<fraction> \d{1,12} ) )?
      (?P<offset> [Zz] | [+\- ]\d{2}(?::?\d{2})? )?
    )?
    """,
    re.VERBOSE | re.ASCII,
)
PARSER = isoparser(sep="T")

# Microseconds of the last unit in a clock time, by its number of digits; a fraction refers to that unit.
UNITS = {2: 3_600_000_000, 4: 60_000_000, 6: 1_000_000}
LEAP_SECOND = "60"

FORM = "must be an ISO 8601 date or date-time, like 2026-11-20 or 2026-11-20T09:00:00Z"

# The most common form; the standard library parses it ten times as fast, with the same result.
PLAIN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z?", re.ASCII)


class NotATimestamp(ValueError):
    """The text has none of the accepted forms, or names a moment that does not exist."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A parsed timestamp: an instant, or a local time without a zone.

    ``whole_day`` is true for a bare date, which means the first moment of that day.
    """

    written: datetime
    whole_day: bool = False

    def milliseconds(self, zone: ZoneInfo) -> int:
        """The instant, in milliseconds since 1970.

        A skipped local time is read with the offset before the jump; of a repeated one, the first counts.
        """
        instant = self.written if self.written.tzinfo else self.written.replace(tzinfo=zone)
        return (instant.astimezone(UTC) - EPOCH) // MILLISECOND


def parse(text: str) -> Timestamp:
    """Parse a timestamp. A bare date is midnight at its start.

    :raise NotATimestamp: with a message that does not repeat the text
    """
    if PLAIN.fullmatch(text):
        try:
            return _within_years(datetime.fromisoformat(text))
        except ValueError:
            # The other parser accepts more, for example 24:00.
            return _parse_any(text)
    return _parse_any(text)


def _parse_any(text: str) -> Timestamp:
    shape = SHAPE.fullmatch(text)
    if shape is None:
        raise NotATimestamp(FORM)
    _check_week(shape["week"])
    try:
        written = _read(text, shape)
    except (ValueError, OverflowError) as error:
        raise NotATimestamp("names a date or time that does not exist") from error
    return _within_years(written, whole_day=shape["time"] is None)


def from_milliseconds(milliseconds: int) -> Timestamp:
    """The moment of a number of milliseconds since 1970.

    :raise NotATimestamp: when it is too late
    """
    try:
        return _within_years(EPOCH + milliseconds * MILLISECOND)
    except OverflowError as error:
        raise NotATimestamp(OUT_OF_YEARS) from error


def _within_years(written: datetime, *, whole_day: bool = False) -> Timestamp:
    if not FIRST_YEAR <= written.year <= LAST_YEAR:
        raise NotATimestamp(OUT_OF_YEARS)
    return Timestamp(written, whole_day)


def _read(text: str, shape: re.Match[str]) -> datetime:
    """The date and time of a text that matches ``SHAPE``.

    This adds forms that the parser does not support: fractions of hours and minutes, leap seconds, and a `+`
    that form decoding turned into a space.

    :raise ValueError: for a date or time that does not exist
    """
    if shape["time"] is None:
        return PARSER.isoparse(text)
    clock, fraction = shape["clock"], shape["fraction"] or "0"
    digits = clock.replace(":", "")
    later = UNITS[len(digits)] * int(fraction) // 10 ** len(fraction)
    if digits.startswith("24") and int(fraction):
        raise ValueError("the day ends at 24:00")
    if digits[4:] == LEAP_SECOND:
        clock = clock.removesuffix(LEAP_SECOND) + "59"
        later += UNITS[6]
    offset = (shape["offset"] or "").replace(" ", "+")
    return PARSER.isoparse(f"{text[: shape.start('time')]}T{clock}{offset}") + timedelta(microseconds=later)


def _check_week(week: str | None) -> None:
    """Reject week 53 of a year with 52 weeks, which the parser reads as the next year's first week."""
    if week is None:
        return
    year, number = int(week[:4]), int(week[-2:])
    try:
        date.fromisocalendar(year, number, 1)
    except ValueError as error:
        raise NotATimestamp("names a week that its year does not have") from error
