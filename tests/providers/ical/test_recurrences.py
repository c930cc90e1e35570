"""Recurrences, compared with independent libraries: dateutil for rules, recurring-ical-events for events."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

import icalendar
import pytest
import recurring_ical_events
from dateutil.rrule import rrulestr

from providers.ical.bounds import Budget, Limits
from providers.ical.clocks import clock, wall_of
from providers.ical.occurrences import occurrences
from providers.ical.rules import parse_rule, starts
from tests.providers.ical.random_series import Random_, rule, series, with_exceptions
from tests.providers.ical.texts import DAY, HOUR, at, parsed, soon

RANGE = (at("2025-01-15"), at("2026-08-01"))
SOME, MANY = 100, 5_000


def of_us(text: str, first: datetime, low: datetime, high: datetime) -> list[datetime]:
    found = starts(parse_rule(text), wall_of(first), wall_of(low), wall_of(high), Budget(Limits(), soon()))
    return [datetime(1970, 1, 1) + timedelta(milliseconds=each) for each in found]  # noqa: DTZ001


def of_dateutil(text: str, first: datetime, low: datetime, high: datetime) -> list[datetime]:
    return rrulestr(text, dtstart=first).between(low, high, inc=True)


def compare_rule(seed: int) -> None:
    random = Random(seed)
    first = datetime(2023, 1, 1) + timedelta(days=random.randrange(1000), minutes=random.randrange(1440))  # noqa: DTZ001
    text = rule(random, first)
    if random.random() < 0.2:
        text += f";BYHOUR={random.randrange(24)},{random.randrange(24)};BYMINUTE=0,{random.randrange(60)}"
    if random.random() < 0.3:
        text += f";COUNT={random.randrange(1, 40)}"
    low = first + timedelta(days=random.choice((0, 0, 30, 700, 4000)))
    high = low + timedelta(days=random.choice((30, 400, 2000)))
    assert of_us(text, first, low, high) == of_dateutil(text, first, low, high), (text, first, low, high)


def compare_short(seed: int) -> None:
    """Rules of hours, minutes and seconds."""
    random = Random(seed)
    frequency = random.choice(("HOURLY", "HOURLY", "MINUTELY", "SECONDLY"))
    first = datetime(2025, 3, 1) + timedelta(seconds=random.randrange(86_400))  # noqa: DTZ001
    text = f"FREQ={frequency};INTERVAL={random.choice((1, 2, 5, 7, 90, 1000))}"
    if random.random() < 0.4:
        text += f";BYDAY={random.choice(('MO', 'TU,SA', 'MO,TU,WE,TH,FR'))}"
    if random.random() < 0.3 and frequency == "HOURLY":
        text += ";BYMINUTE=10,40"
    if random.random() < 0.2 and frequency == "MINUTELY":
        text += ";BYSECOND=0,30"
    if random.random() < 0.2:
        text += f";COUNT={random.randrange(1, 50)}"
    days = {"HOURLY": 40, "MINUTELY": 3, "SECONDLY": 0.1}[frequency]
    high = first + timedelta(days=days)
    assert of_us(text, first, first, high) == of_dateutil(text, first, first, high), (text, first)


def periods_of_library(content: bytes, start: int, end: int) -> set[tuple[int, int]]:
    """The events of a calendar as recurring-ical-events expands them; times without a zone are in UTC."""
    low, high = (datetime.fromtimestamp(each / 1000, UTC) for each in (start - 10 * DAY, end + 10 * DAY))
    found = recurring_ical_events.of(icalendar.Calendar.from_ical(content)).between(low, high)
    return {
        (milliseconds(each["DTSTART"].dt), milliseconds(each["DTEND"].dt))
        for each in found
        if each.get("STATUS") != "CANCELLED"
    }


def milliseconds(value: object) -> int:
    if not isinstance(value, datetime):
        value = datetime.combine(value, datetime.min.time())  # type: ignore[arg-type]
    return round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1000)


def starts_of_library(made: Random_) -> list[datetime]:
    """The wall clocks of the starts that the rule gives."""
    content = made.content
    low, high = datetime(2025, 1, 1, tzinfo=UTC), datetime(2026, 8, 1, tzinfo=UTC)
    found = recurring_ical_events.of(icalendar.Calendar.from_ical(content)).between(low, high)
    walls = []
    for each in found:
        value = each["DTSTART"].dt
        value = value if isinstance(value, datetime) else datetime.combine(value, datetime.min.time())
        walls.append(value.replace(tzinfo=None))
    return sorted(set(walls))


def compare_series(seed: int) -> None:
    random = Random(seed)
    made = series(random)
    content = with_exceptions(random, made, starts_of_library(made))
    start, end = RANGE
    wanted = {each for each in periods_of_library(content, start, end) if each[0] < end and each[1] > start}
    found = {
        (each.start, each.end)
        for each in occurrences(
            parsed(content),
            start,
            end,
            clock(UTC),
            Budget(Limits(), soon()),
            lambda entry: not entry.cancelled,
        )
        if each.start < end and each.end > start
    }
    # Ours ends at the later of exact duration and wall clock; the library's choice is one of the two.
    assert sorted(each[0] for each in found) == sorted(each[0] for each in wanted), content.decode()
    pairs = zip(sorted(found), sorted(wanted), strict=True)
    assert all(0 <= ours[1] - theirs[1] <= HOUR for ours, theirs in pairs), content.decode()


@pytest.mark.parametrize("seed", range(SOME))
def test_rules_give_the_starts_of_dateutil(seed):
    compare_rule(seed)


def week_of(day: date, begins: int) -> int:
    """The number of a week: the first one has four days of its year, so 4 January (RFC 5545, 3.3.10)."""

    def start_of(other: date) -> date:
        return other - timedelta(days=(other.weekday() - begins) % 7)

    year = (start_of(day) + timedelta(days=3)).year
    return (start_of(day) - start_of(date(year, 1, 4))).days // 7 + 1


@pytest.mark.parametrize("begins", range(7))
def test_numbers_of_weeks_whatever_day_they_begin_on(begins):
    names = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
    first, last = datetime(2020, 1, 1), datetime(2034, 12, 31)  # noqa: DTZ001
    days = [first.date() + timedelta(days=each) for each in range((last - first).days + 1)]
    for number in (1, 2, 20, 52, 53):
        text = f"FREQ=YEARLY;BYWEEKNO={number};WKST={names[begins]};BYDAY={','.join(names)}"
        expected = [each for each in days if week_of(each, begins) == number]
        assert [each.date() for each in of_us(text, first, first, last)] == expected


@pytest.mark.parametrize("seed", range(100))
def test_rules_of_hours_minutes_and_seconds_give_the_starts_of_dateutil(seed):
    compare_short(seed)


@pytest.mark.parametrize("seed", range(SOME))
def test_series_with_exceptions_are_those_of_an_independent_library(seed):
    compare_series(seed)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_thousands_of_rules_and_exceptions():
    for seed in range(MANY):
        compare_rule(10_000 + seed)
        compare_short(10_000 + seed)
        compare_series(10_000 + seed)
