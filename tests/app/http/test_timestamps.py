"""Parsing of timestamps in requests."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.schemas import timestamps
from app.schemas.timestamps import NotATimestamp, parse
from scheduling.json_render import timestamp

FORMS = {
    # Calendar dates: midnight at their start.
    "2026-11-20": "2026-11-20T00:00:00.000Z",
    "20261120": "2026-11-20T00:00:00.000Z",
    "2026-11": "2026-11-01T00:00:00.000Z",
    "2024-02-29": "2024-02-29T00:00:00.000Z",
    # Week dates.
    "2026-W47": "2026-11-16T00:00:00.000Z",
    "2026W47": "2026-11-16T00:00:00.000Z",
    "2026-W47-5": "2026-11-20T00:00:00.000Z",
    "2026W475": "2026-11-20T00:00:00.000Z",
    "2026-W01-1": "2025-12-29T00:00:00.000Z",
    "2026-W53-7": "2027-01-03T00:00:00.000Z",
    # Ordinal dates.
    "2026-324": "2026-11-20T00:00:00.000Z",
    "2026324": "2026-11-20T00:00:00.000Z",
    "2024-366": "2024-12-31T00:00:00.000Z",
    # Date-times, extended and basic.
    "2026-11-20T09": "2026-11-20T09:00:00.000Z",
    "2026-11-20T09:30": "2026-11-20T09:30:00.000Z",
    "2026-11-20T09:30:15": "2026-11-20T09:30:15.000Z",
    "2026-11-20 09:30:15": "2026-11-20T09:30:15.000Z",
    "20261120T0930": "2026-11-20T09:30:00.000Z",
    "20261120T093015": "2026-11-20T09:30:15.000Z",
    "2026-W47-5T09:30": "2026-11-20T09:30:00.000Z",
    "2026W475T0930Z": "2026-11-20T09:30:00.000Z",
    "2026-324T09:30Z": "2026-11-20T09:30:00.000Z",
    "2026324T0930": "2026-11-20T09:30:00.000Z",
    # Fractions; digits below a millisecond are cut off.
    "2026-11-20T09:30:15.5Z": "2026-11-20T09:30:15.500Z",
    "2026-11-20T09:30:15,5Z": "2026-11-20T09:30:15.500Z",
    "2026-11-20T09:30:15.123456789Z": "2026-11-20T09:30:15.123Z",
    "2026-11-20T09:30:15.9999Z": "2026-11-20T09:30:15.999Z",
    "20261120T093015,25Z": "2026-11-20T09:30:15.250Z",
    # Fractions of minutes and of hours.
    "2026-11-20T09:30.5Z": "2026-11-20T09:30:30.000Z",
    "20261120T0930,25+0100": "2026-11-20T08:30:15.000Z",
    "2026-11-20T09.5": "2026-11-20T09:30:00.000Z",
    "2026-11-20T09,123456789012Z": "2026-11-20T09:07:24.444Z",
    "20261120T09.75Z": "2026-11-20T09:45:00.000Z",
    "2026-11-20T23:59.999999": "2026-11-20T23:59:59.999Z",
    "2026-11-20T24:00.0": "2026-11-21T00:00:00.000Z",
    # RFC 3339 allows a lower-case t.
    "2026-11-20t09:30:15z": "2026-11-20T09:30:15.000Z",
    "20261120t0930": "2026-11-20T09:30:00.000Z",
    # A leap second counts as the next second.
    "2016-12-31T23:59:60Z": "2017-01-01T00:00:00.000Z",
    "2016-12-31T23:59:60.25Z": "2017-01-01T00:00:00.250Z",
    "2016-12-31T18:59:60-05:00": "2017-01-01T00:00:00.000Z",
    "20170101T052960+0530": "2017-01-01T00:00:00.000Z",
    "2016-12-31T23:59:60": "2017-01-01T00:00:00.000Z",
    # Offsets.
    "2026-11-20T09:00:00Z": "2026-11-20T09:00:00.000Z",
    "2026-11-20T09:00:00z": "2026-11-20T09:00:00.000Z",
    "2026-11-20T09:00:00+05:30": "2026-11-20T03:30:00.000Z",
    "2026-11-20T09:00:00+0530": "2026-11-20T03:30:00.000Z",
    "2026-11-20T09:00:00+05": "2026-11-20T04:00:00.000Z",
    "2026-11-20T09:00:00-08:00": "2026-11-20T17:00:00.000Z",
    "2026-11-20T09:00:00.5+00:00": "2026-11-20T09:00:00.500Z",
    "2026-11-20T09:00+01": "2026-11-20T08:00:00.000Z",
    "20261120T0900+0100": "2026-11-20T08:00:00.000Z",
    "2026-11-20T09+01:00": "2026-11-20T08:00:00.000Z",
    # The end of a day.
    "2026-11-20T24:00": "2026-11-21T00:00:00.000Z",
    "2026-11-20T24:00:00Z": "2026-11-21T00:00:00.000Z",
    "2026-12-31T24:00:00.000Z": "2027-01-01T00:00:00.000Z",
    "20261120T2400Z": "2026-11-21T00:00:00.000Z",
    # A + that a form decoder turned into a space.
    "2026-11-20T09:00:00 02:00": "2026-11-20T07:00:00.000Z",
    "2026-11-20T09:00:00 0200": "2026-11-20T07:00:00.000Z",
    "2026-11-20T09:00:00 02": "2026-11-20T07:00:00.000Z",
    "2026-11-20 09:00:00.5 02:00": "2026-11-20T07:00:00.500Z",
    # The first and the last year.
    "1970-01-01": "1970-01-01T00:00:00.000Z",
    "2199-12-31T23:59:59.999Z": "2199-12-31T23:59:59.999Z",
}

BAD = [
    *("", " ", "2026", "202611", "26-11-20", "2026-11-2", "2026-1-20", "2026/11/20", "20-11-2026"),
    *("2026-11-31", "2026-02-30", "2026-02-29", "2026-00-10", "2026-13-01", "2026-11-00", "2026-000"),
    *("2026-366", "2026-W00", "2025-W53", "2025-W53-1", "2025W531", "2026-W47-0", "2026-W47-8", "2026-w47"),
    *("2026-11-20T", "2026-11-20T9:00", "2026-11-20T09:0", "2026-11-20T0900:00", "2026-11-20T25:00"),
    *("2026-11-20T24:01", "2026-11-20T24:00:00.001", "2026-11-20T09:60", "2026-11-20T09:00:61Z"),
    *("2026-11-20T24:00:60Z", "2026-11-20T09:60.5", "2026-11-20T24:00.1", "2026-11-20T24.1"),
    *("2026-11-20.5", "2026-11-20T09:00:00.", "2026-11-20T09:00.", "2026-11-20T09:00.5.5"),
    *("2026-11-20T09:00:00.0000000000001", "2026-11-20T09:00:00+", "2026-11-20T09:00:00+5"),
    *("2026-11-20T09:00:00+24:00", "2026-11-20T09:00:00+05:60", "2026-11-20T09:00:00+05:30:10"),
    *("2026-11-20T09:00:00+05:30Z", "2026-11-20T09:00:00ZZ", "2026-11-20T09:00:00 Z"),
    *("2026-11-20T09:00:00[Europe/Berlin]", "2026-11-20Z", "2026-11-20+01:00", "2026-11-20  09:00"),
    *("2026-11-20T09:00:00  02:00", " 2026-11-20", "2026-11-20 ", "2026-11-20\n"),
    *("2026-11-20T09:00:00\x00", "\uff12\uff10\uff12\uff16-11-20"),
    *("\u0662\u0660\u0662\u0666-\u0661\u0661-\u0662\u0660", "2026\u221211\u221220", "+2026-11-20"),
    *("-2026-11-20", "T09:00", "09:00", "1795165200000", "now", "tomorrow"),
    *("Fri, 20 Nov 2026 09:00:00 GMT", "P1D", "2026-11-20/2026-11-21", "2026-11-20" * 1000),
]

OUT_OF_RANGE = [
    *("1969-12-31", "1969-12-31T23:59:59Z", "2200-01-01", "0001-01-01", "9999-12-31", "2199-12-31T24:00"),
]


def instant(text: str, zone: str = "UTC") -> str:
    return timestamp(parse(text).milliseconds(ZoneInfo(zone)))


@pytest.mark.parametrize(("text", "expected"), FORMS.items())
def test_every_form_of_iso_8601_that_is_promised_is_read(text, expected):
    assert instant(text) == expected


@pytest.mark.parametrize("text", BAD)
def test_everything_else_is_refused(text):
    with pytest.raises(NotATimestamp):
        parse(text)


@pytest.mark.parametrize("text", OUT_OF_RANGE)
def test_years_without_trustworthy_zone_rules_are_refused_by_name(text):
    with pytest.raises(NotATimestamp, match="1970 to 2199"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-11-20T09:00", "Europe/Berlin", "2026-11-20T08:00:00.000Z"),
        ("2026-07-20T09:00", "Europe/Berlin", "2026-07-20T07:00:00.000Z"),
        ("2026-11-20", "America/New_York", "2026-11-20T05:00:00.000Z"),
        ("2026-11", "Asia/Kathmandu", "2026-10-31T18:15:00.000Z"),
        ("2026-W47", "Pacific/Auckland", "2026-11-15T11:00:00.000Z"),
        ("2026-11-20T24:00", "Asia/Tokyo", "2026-11-20T15:00:00.000Z"),
        ("1970-01-01", "Pacific/Kiritimati", "1970-01-01T10:40:00.000Z"),
    ],
)
def test_a_time_without_an_offset_is_local_to_the_zone(text, zone, expected):
    assert instant(text, zone) == expected


def test_an_offset_wins_over_the_zone():
    assert instant("2026-11-20T09:00+01:00", "Asia/Tokyo") == "2026-11-20T08:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        # 02:00 to 03:00 does not happen in Berlin that night.
        ("2026-03-29T01:59", "Europe/Berlin", "2026-03-29T00:59:00.000Z"),
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30:00.000Z"),
        ("2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00:00.000Z"),
        # Lord Howe skips half an hour.
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:45:00.000Z"),
        # São Paulo once skipped midnight itself.
        ("2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00.000Z"),
        # Samoa skipped a whole day.
        ("2011-12-30T12:00", "Pacific/Apia", "2011-12-30T22:00:00.000Z"),
    ],
)
def test_a_local_time_that_the_zone_skips_counts_from_before_the_jump(text, zone, expected):
    assert instant(text, zone) == expected


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"),
        ("2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00.000Z"),
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45:00.000Z"),
    ],
)
def test_a_local_time_that_the_zone_repeats_is_the_first_of_the_two(text, zone, expected):
    assert instant(text, zone) == expected


def test_what_was_refused_is_not_repeated_in_the_message():
    with pytest.raises(NotATimestamp) as refused:
        parse("<script>alert(1)</script>")

    assert "script" not in str(refused.value)


OFFSETS = st.builds(
    lambda minutes: timezone(timedelta(minutes=minutes)), st.integers(min_value=-23 * 60, max_value=23 * 60)
)
MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31, 23, 59, 59, 999_999), timezones=OFFSETS)  # noqa: DTZ001


@given(moment=MOMENTS, basic=st.booleans(), comma=st.booleans())
def test_any_instant_survives_being_written_and_read(moment, basic, comma):
    text = moment.isoformat(timespec="microseconds")
    if basic:
        date, time = text.split("T")
        clock, sign, offset = time[:15], time[15], time[16:]
        text = f"{date.replace('-', '')}T{clock.replace(':', '')}{sign}{offset.replace(':', '')}"
    if comma:
        text = text.replace(".", ",")

    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse(text).milliseconds(ZoneInfo("Asia/Tokyo")) == expected


@given(st.from_regex(timestamps.PLAIN, fullmatch=True))
def test_the_short_way_reads_as_the_long_one(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timestamps, "PLAIN", re.compile("never"))
        try:
            expected = timestamps.parse(text)
        except timestamps.NotATimestamp as refused:
            expected = str(refused)
    try:
        found = timestamps.parse(text)
    except timestamps.NotATimestamp as refused:
        found = str(refused)

    assert found == expected
