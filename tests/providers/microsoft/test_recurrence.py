"""Rules become Microsoft's patterns, and patterns rules, with the same occurrences; else they are refused."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers import recurrence as neutral
from providers.events import Day, Moment, Recurrence
from providers.microsoft import recurrence
from providers.recurrence import BadRecurrence, Series
from providers.timestamps import instant
from tests.providers.random_rules import MOST, YEARS, occurrences, series, wall_of

NINE = Moment(instant("2026-12-03T08:00:00Z"), "Europe/Berlin")
SERIES = st.integers(0, 2**32).map(lambda seed: series(Random(seed)))
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
INDEXES = ("first", "second", "third", "fourth", "last")


def expanded(found: dict[str, Any], start: date) -> list[date]:
    """The days of a pattern, by going through all days as its documentation describes it."""
    pattern, limits = found["pattern"], found["range"]
    assert limits["startDate"] == start.isoformat()
    last = start + YEARS
    if limits["type"] == "endDate":
        last = min(last, date.fromisoformat(limits["endDate"]) + timedelta(days=1))
    most = limits["numberOfOccurrences"] if limits["type"] == "numbered" else MOST
    days: list[date] = []
    day = start
    while day < last and len(days) < min(most, MOST):
        if matches(pattern, start, day):
            days.append(day)
        day += timedelta(days=1)
    return days


def matches(pattern: dict[str, Any], start: date, day: date) -> bool:
    kind, interval = pattern["type"], pattern["interval"]
    months = (day.year - start.year) * 12 + day.month - start.month
    match kind:
        case "daily":
            return (day - start).days % interval == 0
        case "weekly":
            begins = WEEKDAYS.index(pattern["firstDayOfWeek"])
            week = [each - timedelta(days=(each.weekday() - begins) % 7) for each in (start, day)]
            weeks = (week[1] - week[0]).days // 7
            return weeks % interval == 0 and WEEKDAYS[day.weekday()] in pattern["daysOfWeek"]
    if kind.endswith("Yearly"):
        if day.month != pattern["month"] or (day.year - start.year) % interval:
            return False
    elif months % interval:
        return False
    length = monthrange(day.year, day.month)[1]
    if kind.startswith("absolute"):
        return day.day == min(pattern["dayOfMonth"], length)
    fitting = [
        each
        for each in range(1, length + 1)
        if WEEKDAYS[date(day.year, day.month, each).weekday()] in pattern["daysOfWeek"]
    ]
    index = INDEXES.index(pattern["index"])
    return day.day == (fitting[-1] if index == 4 else fitting[index])


def days_of(made: Series) -> list[date]:
    zone = made.start.zone if isinstance(made.start, Moment) else "UTC"
    return [wall_of(Moment(each, zone)).date() for each in occurrences(made)]


@given(SERIES)
def test_a_pattern_has_the_occurrences_of_its_rule(made):
    try:
        found = recurrence.patterned(made)
    except BadRecurrence:
        return
    # Skipped times begin later on the same day, which the days do not show.
    wanted = days_of(made)
    assert expanded(found, wall_of(made.start).date())[: len(wanted)] == wanted[:MOST]
    if made.rule.count or made.rule.until:
        assert len(expanded(found, wall_of(made.start).date())) == len(wanted)
    again = recurrence.lines(found, made)
    assert again is not None
    assert occurrences(Series(made.start, neutral.parse(again))) == occurrences(made)
    assert made.is_like(Series(made.start, neutral.parse(again)))


@given(st.integers(0, 2**32))
def test_a_rule_has_the_occurrences_of_its_pattern(seed):
    random = Random(seed)
    found, start = random_pattern(random)
    zone = random.choice(("Europe/Berlin", "America/New_York", "Australia/Lord_Howe"))
    days = expanded(found | {"range": found["range"] | {"startDate": start.isoformat()}}, start)
    if not days:
        return
    first = days[0]
    found["range"]["startDate"] = first.isoformat()
    shown = datetime(first.year, first.month, first.day, 9, tzinfo=ZoneInfo(zone))
    edges = (Day(first.isoformat()), Moment(int(shown.timestamp() * 1000), zone))
    for edge in edges:
        lines = recurrence.lines(found, Series(edge, Recurrence("FREQ=DAILY")))
        assert lines is not None
        made = Series(edge, neutral.parse(lines))
        made.require_sound()
        wanted = expanded(found, first)
        assert days_of(made)[: len(wanted)] == wanted
        if found["range"]["type"] != "noEnd":
            assert len(days_of(made)) == len(wanted)


def random_pattern(random: Random) -> tuple[dict[str, Any], date]:
    start = date(2026, random.randrange(1, 13), random.randrange(1, 29))
    kind = random.choice(
        ("daily", "weekly", "absoluteMonthly", "relativeMonthly", "absoluteYearly", "relativeYearly")
    )
    pattern = {
        "type": kind,
        "interval": random.randrange(1, 4) if not kind.endswith("Yearly") else 1,
        "month": random.randrange(1, 13) if kind.endswith("Yearly") else 0,
        "dayOfMonth": random.choice((1, 15, 28, 29, 30, 31)) if kind.startswith("absolute") else 0,
        "daysOfWeek": random.sample(WEEKDAYS, random.randrange(1, 4)),
        "firstDayOfWeek": random.choice(WEEKDAYS),
        "index": random.choice(INDEXES),
    }
    if kind.startswith("relative") and pattern["index"] == "fourth":
        pattern["daysOfWeek"] = pattern["daysOfWeek"][:1]
    end = random.choice(
        (
            {"type": "noEnd"},
            {"type": "numbered", "numberOfOccurrences": random.randrange(1, 30)},
            {"type": "endDate", "endDate": (start + timedelta(days=random.randrange(400, 700))).isoformat()},
        )
    )
    zeros = {"endDate": "0001-01-01", "numberOfOccurrences": 0, "recurrenceTimeZone": "UTC"}
    return {"pattern": pattern, "range": zeros | end}, start


@pytest.mark.parametrize(
    ("rule", "part"),
    [
        ("FREQ=HOURLY;COUNT=3", "FREQ=HOURLY"),
        ("FREQ=DAILY;BYHOUR=9", "BYHOUR"),
        ("FREQ=DAILY;BYMONTH=12", "BYMONTH"),
        ("FREQ=DAILY;INTERVAL=2;BYDAY=TH", "BYDAY with FREQ=DAILY and an INTERVAL"),
        ("FREQ=WEEKLY;INTERVAL=100", "INTERVAL of at most 99"),
        ("FREQ=MONTHLY;BYMONTHDAY=3,4", "several days in BYMONTHDAY"),
        ("FREQ=MONTHLY;BYMONTHDAY=-29", "BYMONTHDAY from the end"),
        ("FREQ=MONTHLY;BYDAY=TH", "BYDAY without the first"),
        ("FREQ=MONTHLY;BYDAY=TH,FR;BYSETPOS=2", "several weekdays"),
        ("FREQ=MONTHLY;BYMONTH=12;BYMONTHDAY=3", "BYMONTH with FREQ=MONTHLY"),
        ("FREQ=YEARLY;BYDAY=49TH", "BYDAY with FREQ=YEARLY and without BYMONTH"),
        ("FREQ=YEARLY;BYMONTH=11,12", "several months"),
        ("FREQ=YEARLY;BYWEEKNO=49", "BYWEEKNO"),
        ("FREQ=YEARLY;BYYEARDAY=337", "BYYEARDAY"),
    ],
)
def test_a_rule_without_a_pattern_is_refused_with_its_part(rule, part):
    with pytest.raises(BadRecurrence, match=part):
        recurrence.patterned(Series(NINE, Recurrence(rule)))


@pytest.mark.parametrize("day", ["2026-01-29", "2026-01-30", "2026-01-31"])
def test_a_day_that_some_months_do_not_have_is_refused(day):
    with pytest.raises(BadRecurrence, match="the last day of a shorter month"):
        recurrence.patterned(Series(Day(day), Recurrence("FREQ=MONTHLY")))
    with pytest.raises(BadRecurrence, match="the last day of a shorter month"):
        recurrence.patterned(Series(Day(day), Recurrence(f"FREQ=MONTHLY;BYMONTHDAY={day[-2:]}")))


def test_dates_are_refused():
    with pytest.raises(BadRecurrence, match="RDATE"):
        recurrence.require_pattern(Recurrence("FREQ=DAILY", (NINE,)), None)
    with pytest.raises(BadRecurrence, match="EXDATE"):
        recurrence.require_pattern(Recurrence("FREQ=DAILY", (), (NINE,)), NINE)


@pytest.mark.parametrize(
    "found", [{}, None, {"pattern": {"type": "lunar", "interval": 1}, "range": {"type": "noEnd"}}]
)
def test_a_pattern_that_is_not_known_has_no_rule(found):
    assert recurrence.lines(found, Series(NINE, Recurrence("FREQ=DAILY"))) is None
