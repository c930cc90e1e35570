"""Recurrences of RFC 5545: parsed, checked against the start of their series, split and moved.

A series is a start in a zone and a ``Recurrence``. Days have no zone. Sentences of errors continue the name
of a field, such as "recurrence must have one RRULE".

https://www.rfc-editor.org/rfc/rfc5545#section-3.8.5
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from providers.errors import ProviderError
from providers.events import Day, Moment, Recurrence, When
from providers.ical.bounds import Budget, Limits
from providers.ical.clocks import IN_UTC, Clock, clock, naive, wall_of
from providers.ical.lines import UnreadableLine, divide, parameters
from providers.ical.rules import Rule, parse_rule, starts
from providers.ical.times import NoZones, moment
from providers.timestamps import DAY
from scheduling.zones import iana_zone

# Bounds of what is written: a rule that recurs several times a day needs many steps wherever it is expanded.
MAX_COUNT = 10_000
MAX_A_DAY = 24
MAX_INTERVAL = 1_000
MAX_DATES = 500
MAX_SHORT = 1_000

_SECOND = 1_000
# Steps of one expansion, and the seconds that it may take.
_LIMITS = Limits(steps=200_000, rule_steps=100_000)
_SECONDS = 5.0
# The days in which two recurrences are compared.
_COMPARED = (366, 3 * 366, 12 * 366)
_ENOUGH = 100
_LAST = wall_of(datetime(9999, 12, 30))  # noqa: DTZ001 - a wall clock


class BadRecurrence(ValueError):
    """A recurrence that cannot be used, with a sentence that continues the name of the field."""


def parse(lines: Iterable[str], zone: str | None = None) -> Recurrence:
    """The recurrence of some lines; ``zone`` is that of times which state none.

    :raise BadRecurrence: when a line is not understood
    """
    rules: list[str] = []
    dates: dict[str, list[When]] = {"RDATE": [], "EXDATE": []}
    for each in lines:
        name, rest = _divided(each)
        if name == "RRULE":
            rules.append(_value(rest).upper().rstrip(";"))
        elif name in dates:
            dates[name] += _dates(name, rest, zone)
        else:
            raise BadRecurrence("must have lines of RRULE, RDATE and EXDATE only")
    if len(rules) != 1:
        raise BadRecurrence("must have exactly one RRULE")
    rule_of(rules[0])
    return Recurrence(rules[0], tuple(dates["RDATE"]), tuple(dates["EXDATE"]))


def lines(recurrence: Recurrence) -> list[str]:
    """The lines of a recurrence; times are in UTC."""
    found = [f"RRULE:{recurrence.rule}"]
    for name, dates in (("RDATE", recurrence.added), ("EXDATE", recurrence.removed)):
        moments = [utc_value(each.at) for each in dates if isinstance(each, Moment)]
        days = [each.date.replace("-", "") for each in dates if isinstance(each, Day)]
        found += [f"{name}:{','.join(moments)}"] if moments else []
        found += [f"{name};VALUE=DATE:{','.join(days)}"] if days else []
    return found


def rule_of(text: str) -> Rule:
    """The parsed rule.

    :raise BadRecurrence: when it is none
    """
    try:
        return parse_rule(text)
    except UnreadableLine:
        raise BadRecurrence(f"must have a valid RRULE: {_fault(text)}") from None


def require_modest(recurrence: Recurrence) -> None:
    """Check what RFC 5545 requires beyond the syntax, and the bounds of what is written (3.3.10).

    :raise BadRecurrence: when a part of the rule is not possible
    """
    rule, names = rule_of(recurrence.rule), {each.partition("=")[0] for each in recurrence.rule.split(";")}
    of_frequency = {
        "BYWEEKNO": ("YEARLY",),
        "BYYEARDAY": ("YEARLY", "HOURLY", "MINUTELY", "SECONDLY"),
        "BYMONTHDAY": ("YEARLY", "MONTHLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"),
    }
    for name, frequencies in of_frequency.items():
        if name in names and rule.frequency not in frequencies:
            raise BadRecurrence(f"must not have {name} with FREQ={rule.frequency}")
    if _has_numbered_days(recurrence.rule):
        if rule.frequency not in ("YEARLY", "MONTHLY"):
            raise BadRecurrence(f"must not have numbers in BYDAY with FREQ={rule.frequency}")
        if rule.weeks:
            raise BadRecurrence("must not have numbers in BYDAY with BYWEEKNO")
    if rule.positions and not any(each.startswith("BY") for each in names - {"BYSETPOS"}):
        raise BadRecurrence("must have another BY part with BYSETPOS")
    if (rule.count or 0) > MAX_COUNT:
        raise BadRecurrence(f"must have a COUNT of at most {MAX_COUNT}")
    if rule.interval > MAX_INTERVAL:
        raise BadRecurrence(f"must have an INTERVAL of at most {MAX_INTERVAL}")
    if rule.within_days and rule.count is None and rule.until is None:
        raise BadRecurrence(f"must have COUNT or UNTIL with FREQ={rule.frequency}")
    a_day = len(rule.hours or (0,)) * len(rule.minutes or (0,)) * len(rule.seconds or (0,))
    if not rule.within_days and a_day > MAX_A_DAY:
        raise BadRecurrence(f"must not recur more than {MAX_A_DAY} times a day")
    if len(recurrence.added) + len(recurrence.removed) > MAX_DATES:
        raise BadRecurrence(f"must have at most {MAX_DATES} dates in RDATE and EXDATE")


@dataclass(frozen=True)
class Series:
    """A recurrence from its first start; a start without a zone follows UTC.

    :raise BadRecurrence: on use, when it recurs more often than is expanded
    """

    start: When
    recurrence: Recurrence

    @cached_property
    def rule(self) -> Rule:
        """The parsed rule."""
        return rule_of(self.recurrence.rule)

    @cached_property
    def clock(self) -> Clock:
        """The clock that the rule follows; a day has that of UTC."""
        return clock_of(self.start)

    @cached_property
    def first(self) -> int:
        """The first start as a wall clock."""
        return wall(self.start, self.clock)

    def require_sound(self) -> None:
        """Check that the recurrence fits the start: otherwise providers read it in different ways.

        RFC 5545, 3.8.5.3, leaves undefined what a start means that the rule does not give, and requires that
        dates have the form of the start.

        :raise BadRecurrence: otherwise
        """
        of_days = isinstance(self.start, Day)
        until = self.rule.until
        if until is not None and (until.is_date is not of_days or (not of_days and until.zone is None)):
            form = "a date" if of_days else "a time in UTC, such as 20261231T225959Z,"
            raise BadRecurrence(f"must have {form} in UNTIL, as the event has one")
        if any(
            isinstance(each, Day) is not of_days
            for each in (*self.recurrence.added, *self.recurrence.removed)
        ):
            raise BadRecurrence(
                f"must have {'dates' if of_days else 'times'} in RDATE and EXDATE, as start has"
            )
        if isinstance(self.start, Moment) and self.clock.instant(self.first) != self.start.at:
            raise BadRecurrence("cannot begin at the second time of an hour that occurs twice")
        if self._walls(self.first, self.first) != [self.first]:
            raise BadRecurrence("must have an RRULE that gives the start of the event itself")
        if self.rule.within_days and len(self._walls(self.first, _LAST)) > MAX_SHORT:
            raise BadRecurrence(f"must not recur more than {MAX_SHORT} times with FREQ={self.rule.frequency}")

    def in_form(self) -> Series:
        """The series with its end and its dates in the form of its start, which others do not always write.

        A date among times means the occurrences of its day; a time among days means its day.
        """
        rule, until = self.recurrence.rule, self.rule.until
        if until is not None:
            if isinstance(self.start, Day):
                end: When = day_at(until.wall)
            elif until.is_date:
                end = Moment(self.clock.instant(until.wall + DAY) - _SECOND)
            else:
                end = Moment(until.instant(self.clock))
            rule = _ending(rule, f"UNTIL={_text(end)}")

        def formed(when: When) -> When:
            here = wall(when, self.clock)
            if isinstance(self.start, Day):
                return day_at(here)
            if isinstance(when, Day):
                return Moment(self.clock.instant(here + self.first % DAY))
            return when

        dates = (tuple(map(formed, each)) for each in (self.recurrence.added, self.recurrence.removed))
        return Series(self.start, Recurrence(rule, *dates))

    def ended_before(self, at: When) -> Recurrence:
        """The recurrence without the occurrences from ``at`` on, which may be one of RDATE."""
        here = wall(at, self.clock)
        end = day_at(here - DAY) if isinstance(at, Day) else Moment(at.at - _SECOND)
        if isinstance(at, Moment) and self._walls(here, here) != [here]:
            # In an hour that clocks skip: a provider that compares clocks, not moments, would keep it.
            given = map(self.clock.instant, self._walls(self.first, here))
            end = Moment(max(each for each in given if each < at.at))
        rule = _ending(self.recurrence.rule, f"UNTIL={_text(end)}")
        added, removed = (
            tuple(each for each in dates if wall(each, self.clock) < here)
            for dates in (self.recurrence.added, self.recurrence.removed)
        )
        return Recurrence(rule, added, removed)

    def beginning(self, at: When) -> Recurrence:
        """The recurrence of a series that has only the occurrences from ``at`` on.

        :raise BadRecurrence: when the rule does not give this occurrence, which would be the start
        """
        here = wall(at, self.clock)
        if self._walls(here, here) != [here]:
            # The clock of an occurrence in the hour that is skipped in spring is not that of the others.
            raise BadRecurrence(
                "must be split at an occurrence that the RRULE gives, not at one of RDATE or in an hour that"
                " clocks skip"
            )
        rule, left = self.recurrence.rule, self.rule.count
        if left is not None:
            rule = _ending(rule, f"COUNT={left - len(self._walls(self.first, here - 1))}")
        added, removed = (
            tuple(each for each in dates if wall(each, self.clock) >= here)
            for dates in (self.recurrence.added, self.recurrence.removed)
        )
        return Recurrence(rule, added, removed)

    def moved(self, start: When) -> Series:
        """The series with another start; its end and its dates move by the same time on the clock.

        :raise BadRecurrence: when they cannot, because only one of the two is a day
        """
        dates = (*self.recurrence.added, *self.recurrence.removed)
        if isinstance(start, Day) is not isinstance(self.start, Day):
            if dates or self.rule.until is not None:
                raise BadRecurrence("must be given too, to change between times and whole days")
            return Series(start, self.recurrence)
        other = clock_of(start)
        by = wall(start, other) - self.first

        def shifted(when: When) -> When:
            here = wall(when, self.clock) + by
            return day_at(here) if isinstance(when, Day) else Moment(other.instant(here))

        rule, until = self.recurrence.rule, self.rule.until
        if until is not None:
            end = day_at(until.wall) if until.is_date else Moment(until.instant(self.clock))
            rule = _ending(rule, f"UNTIL={_text(shifted(end))}")
        added = tuple(map(shifted, self.recurrence.added))
        return Series(start, Recurrence(rule, added, tuple(map(shifted, self.recurrence.removed))))

    def is_like(self, other: Series) -> bool:
        """Whether both recur at the same times, in the years that are compared."""
        for days in _COMPARED:
            last = self.first + days * DAY
            ours, theirs = self._instants(last), other._instants(last)
            if ours != theirs:
                return False
            if len(ours) >= _ENOUGH:
                break
        return True

    def _instants(self, last: int) -> list[int]:
        """The starts up to a wall clock, with added ones and without removed ones, in UTC milliseconds."""
        own = self.clock
        removed = {own.instant(wall(each, own)) for each in self.recurrence.removed}
        added = [here for each in self.recurrence.added if (here := wall(each, own)) <= last]
        found = {own.instant(each) for each in [*self._walls(self.first, last), *added]}
        return sorted(found - removed)

    def _walls(self, low: int, high: int) -> list[int]:
        """The starts that the rule gives from ``low`` to ``high``, as wall clocks."""
        last, until = high, self.rule.until
        end = None
        if until is not None:
            end = until.wall + DAY - 1 if until.is_date else self.clock.wall(until.instant(self.clock)) + DAY
            last = min(high, end)
        try:
            found = starts(self.rule, self.first, low, last, Budget(_LIMITS, time.monotonic() + _SECONDS))
        except ProviderError:
            raise BadRecurrence("must not recur so often") from None
        if until is not None and not until.is_date:
            moment_ = until.instant(self.clock)
            found = [each for each in found if self.clock.instant(each) <= moment_]
        return found


def clock_of(start: When) -> Clock:
    """The clock of the zone of a start."""
    return clock(ZoneInfo(start.zone)) if isinstance(start, Moment) and start.zone else IN_UTC


def wall(when: When, own: Clock) -> int:
    """The time that a clock shows at a moment, or at the beginning of a day."""
    if isinstance(when, Day):
        return wall_of(datetime.fromisoformat(when.date))
    return own.wall(when.at)


def utc_value(at: int) -> str:
    """A DATE-TIME value in UTC."""
    return f"{naive(at):%Y%m%dT%H%M%S}Z".rjust(16, "0")


def _text(when: When) -> str:
    return when.date.replace("-", "") if isinstance(when, Day) else utc_value(when.at)


def day_at(here: int) -> Day:
    """The day of a wall clock."""
    return Day(_date(here))


def _date(here: int) -> str:
    return naive(here).date().isoformat()


def _ending(rule: str, end: str) -> str:
    """A rule with another end."""
    kept = [each for each in rule.split(";") if not each.startswith(("COUNT=", "UNTIL="))]
    return ";".join([*kept, end])


def _divided(line: str) -> tuple[str, str]:
    for at, letter in enumerate(line):
        if letter in ":;":
            return line[:at].strip().upper(), line[at:]
    raise BadRecurrence("must have lines such as RRULE:FREQ=DAILY;COUNT=5")


def _value(rest: str) -> str:
    try:
        return divide(rest)[1]
    except UnreadableLine:
        raise BadRecurrence("must have lines with a value") from None


def _dates(name: str, rest: str, zone: str | None) -> list[When]:
    value = _value(rest)
    given = parameters(divide(rest)[0])
    stated = given.get("TZID")
    where = iana_zone(stated) if stated else zone
    if stated and where is None:
        raise BadRecurrence(f"must have a known TZID in {name}")
    if given.get("VALUE", "DATE").upper() not in ("DATE", "DATE-TIME"):
        raise BadRecurrence(f"must not have periods in {name}")
    return [_when(name, each.strip(), where) for each in value.split(",")]


def _when(name: str, value: str, zone: str | None) -> When:
    try:
        edge = moment("", value, NoZones)
    except UnreadableLine:
        raise BadRecurrence(f"must have dates or times such as 20261203T090000Z in {name}") from None
    if edge.is_date:
        return day_at(edge.wall)
    if edge.zone is None and zone is None:
        raise BadRecurrence(f"must have times in UTC or with TZID in {name}")
    return Moment(edge.instant(clock(ZoneInfo(zone)) if zone else IN_UTC))


def _has_numbered_days(rule: str) -> bool:
    days = next((each[len("BYDAY=") :] for each in rule.split(";") if each.startswith("BYDAY=")), "")
    return any(letter.isdigit() for letter in days)


def _fault(rule: str) -> str:
    """The first part of a rule that makes it invalid, or the rule as a whole."""
    parts: Sequence[str] = rule.split(";")
    names = [each.partition("=")[0] for each in parts]
    if "FREQ" not in names:
        return "FREQ is missing"
    if twice := next((each for each in names if names.count(each) > 1), None):
        return f"{twice[:40]} is there twice"
    if {"COUNT", "UNTIL"} <= set(names):
        return "COUNT and UNTIL exclude each other"
    frequency = parts[names.index("FREQ")]
    for each in parts:
        try:
            parse_rule(each if each == frequency else f"{frequency};{each}")
        except UnreadableLine:
            return f"{each[:40]} is not known"
    return "it cannot be read"
