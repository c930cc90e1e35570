"""Recurrences are parsed, checked, split and moved; dateutil is the oracle of their occurrences."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers import recurrence
from providers.events import Day, Moment, Recurrence
from providers.recurrence import BadRecurrence, Series
from providers.timestamps import DAY, instant
from tests.providers.random_rules import occurrences, series, wall_of

NINE = Moment(instant("2026-12-03T08:00:00Z"), "Europe/Berlin")
THURSDAY = Day("2026-12-03")
HOUR = DAY // 24
SERIES = st.integers(0, 2**32).map(lambda seed: series(Random(seed)))


def test_lines_are_parsed_and_written_again():
    found = recurrence.parse(
        [
            "rrule:freq=weekly;count=5",
            "EXDATE;TZID=Europe/Berlin:20261210T090000,20261217T090000",
            "RDATE:20261204T080000Z",
        ]
    )
    assert found.rule == "FREQ=WEEKLY;COUNT=5"
    assert recurrence.lines(found) == [
        "RRULE:FREQ=WEEKLY;COUNT=5",
        "RDATE:20261204T080000Z",
        "EXDATE:20261210T080000Z,20261217T080000Z",
    ]
    assert recurrence.parse(recurrence.lines(found)) == found
    days = recurrence.parse(["RRULE:FREQ=DAILY", "EXDATE;VALUE=DATE:20261204"])
    assert recurrence.parse(recurrence.lines(days)) == days


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "exactly one RRULE"),
        (["RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"], "exactly one RRULE"),
        (["RRULE"], "must have lines such as"),
        (["DTSTART:20261203T090000Z"], "lines of RRULE, RDATE and EXDATE only"),
        (["EXRULE:FREQ=DAILY", "RRULE:FREQ=DAILY"], "lines of RRULE, RDATE and EXDATE only"),
        (["RRULE:COUNT=3"], "FREQ is missing"),
        (["RRULE:FREQ=FORTNIGHTLY"], "FREQ=FORTNIGHTLY is not known"),
        (["RRULE:FREQ=DAILY;COUNT=3;UNTIL=20270101T000000Z"], "COUNT and UNTIL exclude each other"),
        (["RRULE:FREQ=DAILY;COUNT=0"], "COUNT=0 is not known"),
        (["RRULE:FREQ=DAILY;FREQ=DAILY"], "FREQ is there twice"),
        (["RRULE:FREQ=DAILY;BYDAY=XX"], "BYDAY=XX is not known"),
        (["RRULE:FREQ=DAILY", "EXDATE:20261203T090000"], "must have times in UTC or with TZID in EXDATE"),
        (["RRULE:FREQ=DAILY", "EXDATE;TZID=Mars/One:20261203T090000"], "must have a known TZID in EXDATE"),
        (["RRULE:FREQ=DAILY", "EXDATE:soon"], "must have dates or times"),
        (["RRULE:FREQ=DAILY", "RDATE;VALUE=PERIOD:20261203T090000Z/PT1H"], "must not have periods in RDATE"),
    ],
)
def test_lines_that_are_none_are_refused(lines, sentence):
    with pytest.raises(BadRecurrence, match=sentence):
        recurrence.parse(lines)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("FREQ=SECONDLY", "must have COUNT or UNTIL with FREQ=SECONDLY"),
        ("FREQ=MINUTELY;INTERVAL=5", "must have COUNT or UNTIL with FREQ=MINUTELY"),
        ("FREQ=HOURLY", "must have COUNT or UNTIL with FREQ=HOURLY"),
        ("FREQ=DAILY;COUNT=999999", "COUNT of at most 10000"),
        ("FREQ=DAILY;INTERVAL=99999", "INTERVAL of at most 1000"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "must not have BYMONTHDAY with FREQ=WEEKLY"),
        ("FREQ=MONTHLY;BYWEEKNO=1", "must not have BYWEEKNO with FREQ=MONTHLY"),
        ("FREQ=WEEKLY;BYDAY=1MO", "must not have numbers in BYDAY"),
        ("FREQ=DAILY;BYSETPOS=1", "must have another BY part"),
        ("FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE=0,10,20,30,40", "more than 24 times a day"),
    ],
)
def test_rules_that_are_not_modest_are_refused(rule, sentence):
    with pytest.raises(BadRecurrence, match=sentence):
        recurrence.require_modest(Recurrence(rule))


@pytest.mark.parametrize(
    ("start", "given", "sentence"),
    [
        (NINE, Recurrence("FREQ=WEEKLY;BYDAY=MO"), "an RRULE that gives the start"),
        (NINE, Recurrence("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), "an RRULE that gives the start"),
        (NINE, Recurrence("FREQ=DAILY;UNTIL=20261201T000000Z"), "an RRULE that gives the start"),
        (NINE, Recurrence("FREQ=DAILY;UNTIL=20270101"), "must have a time in UTC"),
        (NINE, Recurrence("FREQ=DAILY;UNTIL=20270101T000000"), "must have a time in UTC"),
        (THURSDAY, Recurrence("FREQ=DAILY;UNTIL=20270101T000000Z"), "must have a date in UNTIL"),
        (THURSDAY, Recurrence("FREQ=DAILY", removed=(NINE,)), "must have dates in RDATE and EXDATE"),
        (NINE, Recurrence("FREQ=DAILY", removed=(THURSDAY,)), "must have times in RDATE and EXDATE"),
        (NINE, Recurrence("FREQ=SECONDLY;UNTIL=20991231T000000Z"), "must not recur"),
        (NINE, Recurrence("FREQ=MINUTELY;COUNT=1001"), "more than 1000 times"),
        (
            Moment(instant("2026-10-25T01:30:00Z"), "Europe/Berlin"),
            Recurrence("FREQ=DAILY"),
            "the second time of an hour that occurs twice",
        ),
    ],
)
def test_a_recurrence_fits_the_start_of_its_series(start, given, sentence):
    with pytest.raises(BadRecurrence, match=sentence):
        Series(start, given).require_sound()


@given(SERIES)
def test_what_gives_its_start_is_sound(made):
    if isinstance(made.start, Moment) and wall_of(made.start).fold:
        return
    made.require_sound()
    recurrence.require_modest(made.recurrence)


def at(series_: Series, moment: int):
    if isinstance(series_.start, Day):
        return recurrence.day_at(moment)
    return Moment(moment)


@given(SERIES, st.randoms(use_true_random=False))
def test_both_parts_of_a_split_series_have_its_occurrences(made, random):
    whole = occurrences(made)
    here = random.choice(whole)
    before, after = made.ended_before(at(made, here)), made.beginning(at(made, here))
    start = at(made, here) if isinstance(made.start, Day) else Moment(here, made.start.zone)
    first = occurrences(Series(made.start, before)) if here != whole[0] else []
    later = occurrences(Series(start, after))
    known = min(len(whole), len(first) + len(later))
    assert first == [each for each in whole if each < here]
    assert (first + later)[:known] == whole[:known]
    if "COUNT" in made.recurrence.rule:
        # The oracle looks four years ahead of each start.
        end = whole[0] + 1460 * DAY
        assert len([each for each in first + later if each < end]) == len(
            [each for each in whole if each < end]
        )


def test_removed_and_added_starts_stay_with_their_part():
    second, fourth = Moment(NINE.at + DAY), Moment(NINE.at + 3 * DAY)
    extra = Moment(NINE.at + 3 * DAY + HOUR)
    made = Series(NINE, Recurrence("FREQ=DAILY;COUNT=6", (extra,), (second, fourth)))
    third = Moment(NINE.at + 2 * DAY)
    before, after = made.ended_before(third), made.beginning(third)
    assert before == Recurrence("FREQ=DAILY;UNTIL=20261205T075959Z", (), (second,))
    assert after == Recurrence("FREQ=DAILY;COUNT=4", (extra,), (fourth,))
    with pytest.raises(BadRecurrence):
        made.beginning(extra)
    assert made.ended_before(extra) == Recurrence("FREQ=DAILY;UNTIL=20261206T080000Z", (), (second, fourth))


@pytest.mark.parametrize(
    ("start", "given", "expected"),
    [
        (
            NINE,
            Recurrence("FREQ=DAILY;UNTIL=20261231", removed=(Day("2026-12-05"),)),
            Recurrence("FREQ=DAILY;UNTIL=20261231T225959Z", removed=(Moment(NINE.at + 2 * DAY),)),
        ),
        (
            NINE,
            Recurrence("FREQ=DAILY;UNTIL=20261231T090000"),
            Recurrence("FREQ=DAILY;UNTIL=20261231T080000Z"),
        ),
        (
            THURSDAY,
            Recurrence(
                "FREQ=DAILY;UNTIL=20261231T000000Z", removed=(Moment(instant("2026-12-05T00:00:00Z")),)
            ),
            Recurrence("FREQ=DAILY;UNTIL=20261231", removed=(Day("2026-12-05"),)),
        ),
    ],
)
def test_what_others_have_written_gets_the_form_of_the_start(start, given, expected):
    made = Series(start, given).in_form()
    made.require_sound()
    assert made.recurrence == expected


@given(SERIES, st.sampled_from([HOUR, -HOUR, 30 * 60_000]))
def test_a_moved_series_has_as_many_occurrences_at_the_other_time(made, by):
    if isinstance(made.start, Day):
        return
    shown = wall_of(made.start)
    if 1 <= shown.hour <= 4 or shown.hour in (0, 23):
        # Another day, or a time that is skipped or occurs twice.
        return
    removed = tuple(Moment(each) for each in occurrences(made)[1:3])
    whole = Series(made.start, Recurrence(made.recurrence.rule, (), removed))
    moved = whole.moved(Moment(made.start.at + by, made.start.zone))
    found, wanted = occurrences(moved), occurrences(whole)
    zone = made.start.zone
    clocks = [[wall_of(Moment(each, zone)).replace(tzinfo=None) for each in part] for part in (found, wanted)]
    assert [(a - b).total_seconds() * 1000 for a, b in zip(*clocks, strict=True)] == [by] * len(wanted)


@given(SERIES)
def test_series_in_other_words_are_alike(made):
    assert made.is_like(made)
    several = len(occurrences(made)) > 1
    other = Series(made.start, Recurrence(f"FREQ=DAILY;INTERVAL=971;COUNT={len(occurrences(made))}"))
    assert not several or not made.is_like(other)
