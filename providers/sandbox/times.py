"""Instants as milliseconds since 1970 in UTC, and zones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone of an IANA name.

    :raise ValueError: if there is none
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as error:  # unknown names raise a KeyError, names of folders an OSError
        raise ValueError(f"no time zone is called {name!r}") from error


def instant(moment: datetime) -> int:
    """Milliseconds of an aware moment."""
    return (moment - EPOCH) // MILLISECOND


def moment(ms: int, where: str) -> datetime:
    """An instant on the clock of a zone."""
    return datetime.fromtimestamp(ms / 1000, zone(where))


def floating(day: date) -> int:
    """A date as milliseconds: its midnight as if it were in UTC."""
    return (day - date(1970, 1, 1)).days * DAY


def date_of(ms: int) -> date:
    """The date of a floating midnight."""
    return date(1970, 1, 1) + timedelta(days=ms // DAY)


def local_midnight(ms: int, where: str) -> int:
    """The instant at which the date of a floating midnight begins in a zone."""
    day = date_of(ms)
    return instant(datetime(day.year, day.month, day.day, tzinfo=zone(where)))


def utc_text(ms: int) -> str:
    """``2026-12-03T09:00:00Z``."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def utc_text_ms(ms: int) -> str:
    """``2026-12-03T09:00:00.000Z``."""
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
