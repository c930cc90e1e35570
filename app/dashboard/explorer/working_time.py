"""When people do not work: the time outside the hours of each, and the days on which each is closed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple
from zoneinfo import ZoneInfo

from app.availability.profiles import Profile, years_of
from app.dashboard.explorer.form import moment
from scheduling.hours import within_all
from scheduling.intervals import Groups, gaps
from scheduling.query import Query

CLOSED = "closed"


class ClosedDay(NamedTuple):
    """A day without hours, by a holiday or an override; ``start`` to ``end`` in the person's zone."""

    date: date
    name: str
    start: int
    end: int


def outside_hours(query: Query, profiles: Sequence[Profile | None]) -> Groups:
    """The parts of the range outside the hours of each profile; nothing without one."""
    years = years_of(query)
    hours = [() if profile is None else profile.hours(years) for profile in profiles]
    return gaps(within_all(hours, query.start, query.end), query.start, query.end)


def closed_days(query: Query, profile: Profile) -> list[ClosedDay]:
    """The closed days of a profile in the range, by date."""
    holidays, zone = profile.holidays(years_of(query)), ZoneInfo(profile.zone)
    stated = {each.day: each for each in profile.overrides}
    names = {day: name for day, name in holidays.items() if day not in stated}
    names |= {day: holidays.get(day, CLOSED) for day, each in stated.items() if not each.windows}
    days = [
        ClosedDay(day, name, moment(day, zone, 0), moment(day, zone, 24))
        for day, name in sorted(names.items())
    ]
    return [each for each in days if each.start < query.end and each.end > query.start]
