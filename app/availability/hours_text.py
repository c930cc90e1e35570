"""Why a moment lies outside the hours of a person, for sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from zoneinfo import ZoneInfo

from app.availability.profiles import Person, years_of
from app.schemas.timestamps import EPOCH, MILLISECOND
from scheduling.query import Query
from scheduling.windows import DateOverride


def outside_hours(person: Person, query: Query, at: int) -> str | None:
    """The part of the person's profile that leaves a moment out: the hours of its date, or a holiday.

    None where windows of the request leave it out.
    """
    if all(each.within(at, at + 1).starts.size for each in query.hours):
        return None
    profile, stated = person.profile, person.hours
    day = _local(at, profile.zone).date()
    override = next((each for each in profile.overrides if each.day == day), None)
    if stated.overrides is None and override is not None:
        return _on_date(person, override)
    requested = {each["date"] for each in stated.overrides or ()}
    holiday = profile.holidays(years_of(query)).get(day)
    if holiday is not None and day not in requested:
        return f"{_written(day)} is {holiday}, a holiday on which {person.user} does not work"
    if stated.schedules is not None or profile.windows is None or day in requested:
        return None
    windows = [(each.earliest, each.latest) for each in profile.windows if day.weekday() in each.days]
    if not windows:
        return f"{person.user} does not work on {day:%A}s (in {profile.zone})"
    return f"it lies outside {person.user}'s working hours ({_spans(windows)} in {profile.zone})"


def _on_date(person: Person, override: DateOverride) -> str:
    zone, day = person.profile.zone, _written(override.day)
    if not override.windows:
        return f"{person.user} does not work on {day} (in {zone})"
    return f"it lies outside {person.user}'s working hours on {day} ({_spans(override.windows)} in {zone})"


def _spans(windows: Sequence[tuple[int, int]]) -> str:
    spans = [f"{_clock(earliest)} to {_clock(latest)}" for earliest, latest in sorted(windows)]
    last = spans.pop()
    return f"{', '.join(spans)} and {last}" if spans else last


def _written(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def _clock(minutes: int) -> str:
    return "midnight" if minutes == 1440 else f"{minutes // 60:02}:{minutes % 60:02}"


def _local(at: int, zone: str) -> datetime:
    return (EPOCH + at * MILLISECOND).astimezone(ZoneInfo(zone))
