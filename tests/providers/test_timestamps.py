"""Timestamps: texts of both providers to milliseconds and back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.timestamps import instant, shown_instant, utc_text, wall_instant

NINE = 1_796_288_400_000  # 2026-12-03T09:00:00Z


@pytest.mark.parametrize(
    ("text", "down", "up"),
    [
        ("2026-12-03T09:00:00Z", NINE, NINE),
        ("2026-12-03T09:00:00z", NINE, NINE),
        ("2026-12-03t09:00:00z", NINE, NINE),
        ("2026-12-03T10:00:00+01:00", NINE, NINE),
        ("2026-12-03T10:00:00+0100", NINE, NINE),
        ("2026-12-03T03:30:00-05:30", NINE, NINE),
        ("2026-12-03T09:00:00.000Z", NINE, NINE),
        ("2026-12-03T09:00:00.0005Z", NINE, NINE + 1),
        ("2026-12-03T09:00:00.0000001Z", NINE, NINE + 1),
        ("2026-12-03T09:00:00.9999999Z", NINE + 999, NINE + 1000),
        ("1969-12-31T23:59:59.9995Z", -1, 0),
    ],
)
def test_a_start_is_rounded_down_and_an_end_up(text, down, up):
    assert (instant(text), instant(text, up=True)) == (down, up)


@pytest.mark.parametrize(
    "text", ["2026-12-03T09:00:00", "2026-12-03", "", "yesterday", "2026-13-01T00:00:00Z"]
)
def test_a_text_without_an_offset_is_no_moment(text):
    with pytest.raises(ValueError):  # noqa: PT011 - the kind is what callers catch
        instant(text)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-12-03T09:00:00Z", NINE),
        ("2026-12-03T09:00:00", None),
        ("yesterday", None),
        (5, None),
        ([], None),
    ],
)
def test_a_moment_that_is_only_shown_may_be_unreadable(value, moment):
    assert shown_instant(value) == moment


@pytest.mark.parametrize(
    ("zone", "text", "moment"),
    [
        ("Europe/Berlin", "2026-12-03T10:00:00.0000000", "2026-12-03T09:00:00Z"),
        ("America/New_York", "2026-03-08T02:30:00", "2026-03-08T07:30:00Z"),  # skipped
        ("America/New_York", "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"),  # its first
        ("America/Sao_Paulo", "2018-11-04T00:00:00", "2018-11-04T03:00:00Z"),  # the day began at 01:00
        ("Asia/Kolkata", "2026-12-03T00:00:00", "2026-12-02T18:30:00Z"),
        ("UTC", "2026-12-03T10:00:00+01:00", "2026-12-03T09:00:00Z"),  # an offset wins
    ],
)
def test_wall_clock_is_read_in_its_zone(zone, text, moment):
    assert wall_instant(text, ZoneInfo(zone)) == instant(moment)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_the_first_and_last_years_graph_sends_do_not_overflow(zone):
    first = wall_instant("0001-01-01T00:00:00.0000000", ZoneInfo(zone))
    last = wall_instant("9999-12-31T23:59:59.9999999", ZoneInfo(zone), up=True)
    assert first < 0 < last


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_moment_written_is_the_moment_read(milliseconds):
    assert instant(utc_text(milliseconds)) == milliseconds


@given(st.datetimes(timezones=st.sampled_from([UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")])))
def test_any_moment_is_read_to_the_millisecond(moment):
    exact = (moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1)
    offset = moment.utcoffset() or timedelta()
    if offset.seconds % 60 == 0:  # offsets of a century ago had seconds
        assert instant(moment.isoformat()) == pytest.approx(exact, abs=1)


def test_range_beyond_the_calendar_is_clipped():
    assert utc_text(10**15) == "9999-12-31T23:59:59.999Z"
    assert utc_text(-(10**15)) == "0001-01-01T00:00:00.000Z"
