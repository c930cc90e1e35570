"""Recurrence rules: the starts of a series in a range; https://www.rfc-editor.org/rfc/rfc5545#section-3.3.10.

Periods (years, months, weeks, days, hours ...) are visited from the first one that can matter to the last, so
that a rule that matches nothing ends too, and an old series costs no more than a new one. A library's
``rrule`` searches such a rule until the year 9999, and cannot be interrupted.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from itertools import product

from providers.ical.bounds import Budget
from providers.ical.clocks import naive
from providers.ical.lines import UnreadableLine
from providers.ical.times import Edge, NoZones, moment
from providers.timestamps import DAY

_WEEKDAYS = {"MO": 0, "TU": 1, "WE": 2, "TH": 3, "FR": 4, "SA": 5, "SU": 6}
_BY_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
_HOUR, _MINUTE, _SECOND = 3_600_000, 60_000, 1_000
# The periods that are shorter than a day.
_SHORT = {"HOURLY": _HOUR, "MINUTELY": _MINUTE, "SECONDLY": _SECOND}
FREQUENCIES = ("YEARLY", "MONTHLY", "WEEKLY", "DAILY", *_SHORT)

# Days are counted from 1970 here, which began on a Thursday.
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_THURSDAY = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """An RRULE. Weekdays count from Monday, 0; ``nth`` are pairs such as (-1, 6), the last Sunday."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: Edge | None = None
    week_start: int = 0
    months: frozenset[int] = frozenset()
    weeks: frozenset[int] = frozenset()
    year_days: frozenset[int] = frozenset()
    month_days: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    nth: frozenset[tuple[int, int]] = frozenset()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    seconds: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()

    @property
    def within_days(self) -> bool:
        """Whether it may recur several times in a day by its frequency."""
        return self.frequency in _SHORT

    @property
    def has_day(self) -> bool:
        """Whether it names days otherwise than by months."""
        return bool(self.weeks or self.year_days or self.month_days or self.weekdays or self.nth)


def parse_rule(value: str) -> Rule:
    """The rule of an RRULE value.

    :raise Unreadable: when it is not one, or has a part that we do not know
    """
    rule = _parsed(value)
    if rule.count == 0 or (rule.count is not None and rule.until is not None):
        raise UnreadableLine
    return rule


def possible_rules(value: str) -> tuple[Rule, ...]:
    """The rules that an RRULE value may mean, of which the series has all occurrences.

    RFC 5545 forbids COUNT=0, which some programs read as no limit, and COUNT beside UNTIL.

    :raise Unreadable: as :func:`parse_rule`, for anything else
    """
    rule = _parsed(value)
    if rule.count == 0:
        rule = replace(rule, count=None)
    if rule.count is not None and rule.until is not None:
        return replace(rule, count=None), replace(rule, until=None)
    return (rule,)


def _parsed(value: str) -> Rule:
    parts: dict[str, str] = {}
    for each in value.strip().rstrip(";").upper().split(";"):
        name, equals, content = each.partition("=")
        if not equals or name in parts:
            raise UnreadableLine
        parts[name] = content
    frequency = parts.pop("FREQ", "")
    # RFC 7529: these are what a rule without them means.
    calendar, skipped = parts.pop("RSCALE", "GREGORIAN"), parts.pop("SKIP", "OMIT")
    if frequency not in FREQUENCIES or (calendar, skipped) != ("GREGORIAN", "OMIT"):
        raise UnreadableLine
    weekdays, nth = _by_day(parts.pop("BYDAY", None), frequency)
    rule = Rule(
        frequency,
        interval=_number(parts.pop("INTERVAL", "1"), 1, 999_999_999),
        count=_number(parts.pop("COUNT"), 0, 999_999_999) if "COUNT" in parts else None,
        until=moment("", parts.pop("UNTIL"), NoZones) if "UNTIL" in parts else None,
        week_start=_weekday_named(parts.pop("WKST", "MO")),
        months=frozenset(_numbers(parts.pop("BYMONTH", None), 1, 12)),
        weeks=frozenset(_numbers(parts.pop("BYWEEKNO", None), 1, 53, signed=True)),
        year_days=frozenset(_numbers(parts.pop("BYYEARDAY", None), 1, 366, signed=True)),
        month_days=frozenset(_numbers(parts.pop("BYMONTHDAY", None), 1, 31, signed=True)),
        weekdays=weekdays,
        nth=nth,
        hours=_numbers(parts.pop("BYHOUR", None), 0, 23),
        minutes=_numbers(parts.pop("BYMINUTE", None), 0, 59),
        # A leap second is read as the second before it.
        seconds=tuple(sorted({min(each, 59) for each in _numbers(parts.pop("BYSECOND", None), 0, 60)})),
        positions=_numbers(parts.pop("BYSETPOS", None), 1, 366, signed=True),
    )
    if parts:
        raise UnreadableLine
    return rule


def _number(text: str, low: int, high: int, *, signed: bool = False) -> int:
    if not _INTEGER.fullmatch(text):
        raise UnreadableLine
    number = int(text)
    if not low <= (abs(number) if signed else number) <= high:
        raise UnreadableLine
    return number


def _numbers(text: str | None, low: int, high: int, *, signed: bool = False) -> tuple[int, ...]:
    if text is None:
        return ()
    return tuple(sorted({_number(each.strip(), low, high, signed=signed) for each in text.split(",")}))


def _weekday_named(text: str) -> int:
    if text not in _WEEKDAYS:
        raise UnreadableLine
    return _WEEKDAYS[text]


def _by_day(text: str | None, frequency: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    weekdays, nth = set(), set()
    for each in text.split(",") if text is not None else ():
        found = _BY_DAY.fullmatch(each.strip())
        if found is None:
            raise UnreadableLine
        number, weekday = int(found[1] or 0), _WEEKDAYS[found[2]]
        # A number has a meaning only in months and years; elsewhere each such weekday counts.
        if number and frequency in ("YEARLY", "MONTHLY"):
            nth.add((number, weekday))
        else:
            weekdays.add(weekday)
    return frozenset(weekdays), frozenset(nth)


def starts(rule: Rule, first: int, low: int, high: int, budget: Budget) -> list[int]:
    """The starts in ``[low, high]``, in order, as wall clocks (see ``clocks``); ``first`` is the series' own.

    ``UNTIL`` is left to the caller, who knows the zone. The first start itself belongs to a series also if
    its rule does not match it: the caller adds it.

    :raise InvalidCalendar, Unavailable: when the budget is exceeded
    """
    budget.begin_rule()
    rule = _completed(rule, first)
    # Occurrences must be counted from the first one.
    begin = first if rule.count is not None else max(first, low)
    found: list[int] = []
    periods = _within_days if rule.within_days else _PERIODS[rule.frequency]
    for each in periods(rule, first, begin, high, budget):
        selected = _selected(each, rule.positions) if rule.positions else each
        if selected and selected[0] < first:
            selected = selected[bisect_left(selected, first) :]
        found += selected
        if rule.count is not None and len(found) >= rule.count:
            del found[rule.count :]
            break
    return found[bisect_left(found, low) : bisect_right(found, high)]


def _completed(rule: Rule, first: int) -> Rule:
    """The rule with what it leaves to the first start; see the end of section 3.3.10."""
    changes: dict[str, object] = {}
    shown = naive(first)
    if not rule.has_day:
        if rule.frequency == "YEARLY":
            changes["months"] = rule.months or frozenset({shown.month})
        if rule.frequency in ("YEARLY", "MONTHLY"):
            changes["month_days"] = frozenset({shown.day})
        if rule.frequency == "WEEKLY":
            changes["weekdays"] = frozenset({shown.weekday()})
    elif rule.weeks and not (rule.year_days or rule.month_days or rule.weekdays or rule.nth):
        changes["weekdays"] = frozenset({shown.weekday()})
    if not rule.hours and not rule.within_days:
        changes["hours"] = (shown.hour,)
    if not rule.minutes and rule.frequency not in ("MINUTELY", "SECONDLY"):
        changes["minutes"] = (shown.minute,)
    if not rule.seconds and rule.frequency != "SECONDLY":
        changes["seconds"] = (shown.second,)
    return replace(rule, **changes)  # type: ignore[arg-type]


def _selected(found: list[int], positions: tuple[int, ...]) -> list[int]:
    """Those of one period that BYSETPOS selects."""
    size = len(found)
    indexes = {each - 1 if each > 0 else size + each for each in positions}
    return [found[each] for each in sorted(indexes) if 0 <= each < size]


def _jumped(first: int, begin: int, interval: int) -> int:
    """The last of ``first``, ``first + interval`` ... that is not after ``begin``."""
    return first + max(0, begin - first) // interval * interval


# Yields the starts of one period after the other, in order; ``begin`` lies in the first period that matters.
Periods = Callable[[Rule, int, int, int, Budget], Iterator[list[int]]]


def _yearly(rule: Rule, first: int, begin: int, high: int, budget: Budget) -> Iterator[list[int]]:
    months = sorted(rule.months) or range(1, 13)
    times = _times(rule)
    year = _jumped(naive(first).year, naive(begin).year, rule.interval)
    for each in range(year, naive(high).year + 1, rule.interval):
        days = _days_of_months(rule, each, months)
        budget.spend(1 + len(days) * len(times))
        yield _at(days, times)


def _monthly(rule: Rule, first: int, begin: int, high: int, budget: Budget) -> Iterator[list[int]]:
    times = _times(rule)
    number = _jumped(_month(first), _month(begin), rule.interval)
    for each in range(number, _month(high) + 1, rule.interval):
        year, month = each // 12, each % 12 + 1
        days = _days_of_months(rule, year, (month,)) if not rule.months or month in rule.months else []
        budget.spend(1 + len(days) * len(times))
        yield _at(days, times)


def _month(wall: int) -> int:
    shown = naive(wall)
    return shown.year * 12 + shown.month - 1


def _weekly(rule: Rule, first: int, begin: int, high: int, budget: Budget) -> Iterator[list[int]]:
    offsets = sorted((each - rule.week_start) % 7 for each in rule.weekdays) if rule.weekdays else range(7)
    day = first // DAY
    start = day - (_weekday(day) - rule.week_start) % 7
    weeks = range(_jumped(start, begin // DAY, 7 * rule.interval), high // DAY + 1, 7 * rule.interval)
    return _days_of_periods(rule, weeks, offsets, budget)


def _daily(rule: Rule, first: int, begin: int, high: int, budget: Budget) -> Iterator[list[int]]:
    days = range(_jumped(first // DAY, begin // DAY, rule.interval), high // DAY + 1, rule.interval)
    return _days_of_periods(rule, days, (0,), budget)


def _days_of_periods(
    rule: Rule, periods: range, offsets: list[int] | range | tuple[int, ...], budget: Budget
) -> Iterator[list[int]]:
    """The starts of weeks or days, which are given by their first day; ``offsets`` are the days in each."""
    times = _times(rule)
    number = len(periods) if rule.count is None else min(len(periods), rule.count + 1)
    is_simple = not (rule.months or rule.month_days or rule.year_days or rule.weeks or rule.positions)
    if is_simple and (not rule.weekdays or rule.frequency == "WEEKLY"):
        # Most series: nothing has to be looked up in a calendar.
        budget.spend(number * (1 + len(offsets) * len(times)))
        yield _at([day + each for day in periods[:number] for each in offsets], times)
        return
    for day in periods:
        found = [day + each for each in offsets if _is_allowed(rule, day + each)]
        budget.spend(1 + len(found) * len(times))
        yield _at(found, times)


_PERIODS: dict[str, Periods] = {
    "YEARLY": _yearly,
    "MONTHLY": _monthly,
    "WEEKLY": _weekly,
    "DAILY": _daily,
}


def _within_days(rule: Rule, first: int, begin: int, high: int, budget: Budget) -> Iterator[list[int]]:
    """Hours, minutes or seconds; whole days and hours without a match are skipped."""
    length = _SHORT[rule.frequency]
    step = length * rule.interval
    now = _jumped(first // length * length, begin, step)
    allowed: int | None = None
    while now <= high:
        day, rest = divmod(now, DAY)
        hour, minute, second = rest // _HOUR, rest // _MINUTE % 60, rest // _SECOND % 60
        budget.spend()
        if day != allowed:
            if not _is_allowed(rule, day):
                now = _next(now, (day + 1) * DAY, step)
                continue
            allowed = day
        if rule.hours and hour not in rule.hours:
            now = _next(now, day * DAY + (hour + 1) * _HOUR, step)
            continue
        if length < _HOUR and rule.minutes and minute not in rule.minutes:
            now = _next(now, day * DAY + hour * _HOUR + (minute + 1) * _MINUTE, step)
            continue
        if length > _SECOND or not rule.seconds or second in rule.seconds:
            minutes = rule.minutes if length == _HOUR else (minute,)
            seconds = rule.seconds if length > _SECOND else (second,)
            found = _at([day], _clock_times((hour,), minutes, seconds))
            budget.spend(len(found))
            yield found
        now += step


def _next(now: int, goal: int, step: int) -> int:
    """The first of ``now + step``, ``now + 2 * step`` ... that is not before ``goal``."""
    return now - (now - goal) // step * step


def _times(rule: Rule) -> list[int]:
    return _clock_times(rule.hours, rule.minutes, rule.seconds)


def _clock_times(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> list[int]:
    return [
        hour * _HOUR + minute * _MINUTE + second * _SECOND
        for hour, minute, second in product(hours, minutes, seconds)
    ]


def _at(days: list[int], times: list[int]) -> list[int]:
    if len(times) == 1:
        time = times[0]
        return [day * DAY + time for day in days]
    return [day * DAY + time for day in days for time in times]


def _days_of_months(rule: Rule, year: int, months: range | list[int] | tuple[int, ...]) -> list[int]:
    """The matching days of a year in these months, in order."""
    spans = []
    for month in months:
        begin = date(year, month, 1).toordinal() - _EPOCH_DAY
        spans.append(range(begin, begin + monthrange(year, month)[1]))
    named: frozenset[int] = frozenset()
    if rule.nth:
        # In a year without BYMONTH they count in the year: note 2 of section 3.3.10.
        whole = rule.frequency == "YEARLY" and not rule.months
        counted = [range(spans[0].start, spans[-1].stop)] if whole else spans
        named = frozenset(day for span in counted for day in _named(rule.nth, span))
    return [
        day
        for span in spans
        for day in _numbered(rule.month_days, span)
        if _is_allowed(rule, day, named, of_month=True)
    ]


def _numbered(numbers: frozenset[int], span: range) -> list[int] | range:
    """The days of a month by their numbers, which count from its end if they are negative."""
    if not numbers:
        return span
    days = {span.start + each - 1 if each > 0 else span.stop + each for each in numbers}
    return sorted(each for each in days if each in span)


def _named(nth: frozenset[tuple[int, int]], span: range) -> Iterator[int]:
    """The n-th weekdays of a month or year."""
    for number, weekday in nth:
        if number > 0:
            day = span.start + (weekday - _weekday(span.start)) % 7 + 7 * (number - 1)
        else:
            last = span.stop - 1
            day = last - (_weekday(last) - weekday) % 7 + 7 * (number + 1)
        if day in span:
            yield day


def _weekday(day: int) -> int:
    return (day + _THURSDAY) % 7


def _is_allowed(rule: Rule, day: int, named: frozenset[int] = frozenset(), *, of_month: bool = False) -> bool:
    """Whether a day matches the parts of the rule; ``of_month``: its month and its number do."""
    if (rule.weekdays or rule.nth) and _weekday(day) not in rule.weekdays and day not in named:
        return False
    if not of_month and (rule.months or rule.month_days):
        shown = naive(day * DAY)
        if rule.months and shown.month not in rule.months:
            return False
        if rule.month_days:
            length = monthrange(shown.year, shown.month)[1]
            if shown.day not in rule.month_days and shown.day - length - 1 not in rule.month_days:
                return False
    if rule.year_days:
        number, length = _in_year(day)
        if number not in rule.year_days and number - length - 1 not in rule.year_days:
            return False
    if rule.weeks:
        # A week belongs to the year of its fourth day.
        number, length = _in_year(day - (_weekday(day) - rule.week_start) % 7 + 3)
        week = (number - 1) // 7 + 1
        weeks = week + (length - number) // 7
        return week in rule.weeks or week - weeks - 1 in rule.weeks
    return True


def _in_year(day: int) -> tuple[int, int]:
    """The number of a day in its year, and the length of the year."""
    year = naive(day * DAY).year
    begin = date(year, 1, 1).toordinal() - _EPOCH_DAY
    return day - begin + 1, 366 if monthrange(year, 2)[1] == 29 else 365
