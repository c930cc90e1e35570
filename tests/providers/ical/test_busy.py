"""The time that an event of a calendar blocks; an event that cannot be read is never free."""

from __future__ import annotations

import time
from zoneinfo import ZoneInfo

import pytest

from providers.errors import ProviderError, Unavailable
from providers.ical.bounds import InvalidCalendar, Limits
from providers.ical.busy import busy_periods
from providers.ical.calendar import read
from tests.providers.ical.texts import at, calendar, event, parsed, shown, soon

YEAR = (at("2026-01-01"), at("2027-01-01"))
BERLIN = ZoneInfo("Europe/Berlin")

# As Outlook writes a zone that has no name elsewhere.
CUSTOM = """
BEGIN:VTIMEZONE
TZID:Customized Time Zone
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
"""


def busy(content, start=YEAR[0], end=YEAR[1], **options):
    """The periods as text, in order."""
    found = busy_periods(parsed(content), start, end, deadline=soon(), **options)
    return [f"{shown(first)} / {shown(last)}" for first, last in sorted(found)]


def of(lines, **options):
    """The periods of one event."""
    return busy(calendar(event(lines)), **options)


NINE = "2026-03-02 09:00 / 2026-03-02 10:00"
TIME = "DTSTART:20260302T090000Z\nDTEND:20260302T100000Z"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (TIME, [NINE]),
        (f"{TIME}\nTRANSP:OPAQUE\nSTATUS:TENTATIVE", [NINE]),
        (f"{TIME}\nTRANSP:TRANSPARENT", []),
        (f"{TIME}\ntransp:transparent", []),
        (f"{TIME}\nSTATUS:CANCELLED", []),
        (f"{TIME}\nSTATUS:cancelled", []),
        (f"{TIME}\nTRANSP:MAYBE\nSTATUS:WHO-KNOWS", [NINE]),
        (f"{TIME}\nX-MICROSOFT-CDO-BUSYSTATUS:FREE", []),
        (f"{TIME}\nX-MICROSOFT-CDO-BUSYSTATUS:WORKINGELSEWHERE", []),
        (f"{TIME}\nX-MICROSOFT-CDO-BUSYSTATUS:OOF", [NINE]),
        (f"{TIME}\nTRANSP:TRANSPARENT\nX-MICROSOFT-CDO-BUSYSTATUS:FREE", []),
        (f"{TIME}\nTRANSP:TRANSPARENT\nX-MICROSOFT-CDO-BUSYSTATUS:BUSY", [NINE]),
        (f"{TIME}\nTRANSP:OPAQUE\nX-MICROSOFT-CDO-BUSYSTATUS:FREE", [NINE]),
        # Contradictions are busy, in either order.
        (f"{TIME}\nTRANSP:TRANSPARENT\nTRANSP:OPAQUE", [NINE]),
        (f"{TIME}\nTRANSP:OPAQUE\nTRANSP:TRANSPARENT", [NINE]),
        (f"{TIME}\nTRANSP:TRANSPARENT\nTRANSP;X", [NINE]),
        (f"{TIME}\nTRANSP:TRANSPARENT\nTRANSP;X=1:transparent", []),
        (f"{TIME}\nSTATUS:CONFIRMED\nSTATUS:CANCELLED", [NINE]),
        (f"{TIME}\nSTATUS:CANCELLED\nSTATUS:CONFIRMED", [NINE]),
        (f"{TIME}\nSTATUS:CANCELLED\nSTATUS;X", [NINE]),
        (f"{TIME}\nSTATUS:CANCELLED\nSTATUS:Cancelled", []),
        (f"{TIME}\nX-MICROSOFT-CDO-BUSYSTATUS:FREE\nX-MICROSOFT-CDO-BUSYSTATUS:BUSY", [NINE]),
        (f"{TIME}\nX-MICROSOFT-CDO-BUSYSTATUS:OOF\nX-MICROSOFT-CDO-BUSYSTATUS:FREE", [NINE]),
        (
            f"{TIME}\nTRANSP:TRANSPARENT\nX-MICROSOFT-CDO-BUSYSTATUS:FREE\nX-MICROSOFT-CDO-BUSYSTATUS:BUSY",
            [NINE],
        ),
        ("DTSTART:20260302T090000Z\nDURATION:PT1H", [NINE]),
        ("DTSTART:20260302T090000Z\nDURATION:P1DT1H", ["2026-03-02 09:00 / 2026-03-03 10:00"]),
        ("DTSTART:20260302T090000Z\nDURATION:P1W", ["2026-03-02 09:00 / 2026-03-09 09:00"]),
        # RFC 5545, 3.6.1: no end means a day for a date, and no time otherwise.
        ("DTSTART;VALUE=DATE:20260302", ["2026-03-02 00:00 / 2026-03-03 00:00"]),
        ("DTSTART:20260302", ["2026-03-02 00:00 / 2026-03-03 00:00"]),
        ("DTSTART:20260302T090000Z", []),
        ("DTSTART:20260302T090000Z\nDTEND:20260302T090000Z", []),
        ("DTSTART;VALUE=DATE:20260302\nDTEND;VALUE=DATE:20260304", ["2026-03-02 00:00 / 2026-03-04 00:00"]),
        # Wrong, and seen in exports: the time that is stated counts.
        ("DTSTART;VALUE=DATE:20260302\nDTEND;VALUE=DATE:20260302", ["2026-03-02 00:00 / 2026-03-03 00:00"]),
        ("DTSTART:20260302T100000Z\nDTEND:20260302T090000Z", [NINE]),
        ("DTSTART:20260302T090000Z\nDTEND;VALUE=DATE:20260302", ["2026-03-02 09:00 / 2026-03-03 00:00"]),
        ("DTSTART:20260302T230000Z\nDTEND:20260302T240000Z", ["2026-03-02 23:00 / 2026-03-03 00:00"]),
        ("DTSTART:20260302T240000Z\nDURATION:PT1H", ["2026-03-03 00:00 / 2026-03-03 01:00"]),
        ("DTSTART:20260302T085960Z\nDTEND:20260302T100000Z", ["2026-03-02 08:59 / 2026-03-02 10:00"]),
        ("DTSTART;TZID=Europe/Berlin:20260302T100000\nDTEND;TZID=Europe/Berlin:20260302T110000", [NINE]),
        ('DTSTART;TZID="Europe/Berlin":20260302T100000\nDURATION:PT1H', [NINE]),
        ("DTSTART;TZID=W. Europe Standard Time:20260302T100000\nDURATION:PT1H", [NINE]),
        ("DTSTART;TZID=/mozilla.org/20050126_1/Europe/Berlin:20260302T100000\nDURATION:PT1H", [NINE]),
        # The hour that the clock skips has the offset before it, and of a repeated one the first is meant.
        (
            "DTSTART;TZID=Europe/Berlin:20260329T023000\nDURATION:PT1H",
            ["2026-03-29 01:30 / 2026-03-29 02:30"],
        ),
        (
            "DTSTART;TZID=Europe/Berlin:20261025T023000\nDURATION:PT1H",
            ["2026-10-25 00:30 / 2026-10-25 01:30"],
        ),
    ],
)
def test_an_event(lines, found):
    assert of(lines) == found


def test_an_event_that_one_has_declined():
    lines = (
        f"{TIME}\nATTENDEE;PARTSTAT=DECLINED;CN=Ada:mailto:Ada@Example.com\nATTENDEE:mailto:bob@example.com"
    )

    assert of(lines, own_addresses={"ada@example.com"}) == []
    assert of(lines, own_addresses={"bob@example.com"}) == [NINE]
    assert of(lines) == [NINE]


@pytest.mark.parametrize("stated", [True, False])
def test_dates_and_floating_times_are_of_the_calendars_zone_then_of_the_persons(stated):
    day, floating = (
        event("DTSTART;VALUE=DATE:20260302"),
        event("DTSTART:20260302T100000\nDURATION:PT1H", "two"),
    )
    head = "X-WR-TIMEZONE:Europe/Berlin" if stated else ""
    other = ZoneInfo("America/New_York") if stated else BERLIN

    found = busy(calendar(day, floating, head=head), zone=other)

    assert found == ["2026-03-01 23:00 / 2026-03-02 23:00", NINE]


FLOATING = "DTSTART:20260302T100000\nDTEND:20260302T110000"
A_DAY = "DTSTART;VALUE=DATE:20260302"
WIDE = "2026-03-01 20:00 / 2026-03-02 23:00"
WIDE_DAY, LATER_DAY = "2026-03-01 10:00 / 2026-03-03 12:00", "2026-03-08 10:00 / 2026-03-10 12:00"


@pytest.mark.parametrize("name", ["Mars/Phobos", "GMT+02:00", "US Eastern", "Customized Time Zone"])
@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (FLOATING, [WIDE]),
        ("DTSTART:20260302T100000\nDURATION:PT1H", [WIDE]),
        ("DTSTART:20260302T100000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=1", [WIDE]),
        (A_DAY, [WIDE_DAY]),
        (f"{A_DAY}\nDTEND;VALUE=DATE:20260302", [WIDE_DAY]),
        (f"{A_DAY}\nRRULE:FREQ=DAILY;COUNT=1", [WIDE_DAY]),
        # The midnight of the 9th where a day begins first.
        (f"{A_DAY}\nRRULE:FREQ=WEEKLY;UNTIL=20260308T100000Z", [WIDE_DAY, LATER_DAY]),
        (f"{A_DAY}\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE;VALUE=DATE:20260303", [WIDE_DAY]),
        (f"{TIME}\nRDATE:20260401T100000", [NINE, "2026-03-31 20:00 / 2026-04-01 23:00"]),
        (f"{TIME}\nRDATE;VALUE=DATE:20260401", [NINE, "2026-03-31 10:00 / 2026-04-02 13:00"]),
        (TIME, [NINE]),
        ("DTSTART;TZID=Europe/Berlin:20260302T100000\nDURATION:PT1H", [NINE]),
    ],
)
def test_a_stated_zone_that_nobody_knows_is_not_replaced_by_the_persons(name, lines, found):
    assert busy(calendar(event(lines), head=f"X-WR-TIMEZONE:{name}"), zone=BERLIN) == found


def test_a_stated_zone_that_nobody_knows_in_one_of_several_calendars():
    def floating(day, head=""):
        return calendar(event(f"DTSTART:202603{day}T100000\nDURATION:PT1H", day), head=head)

    unknown, known = "X-WR-TIMEZONE:Mars/Phobos", "X-WR-TIMEZONE:Europe/Berlin"

    assert [each[5:16] for each in busy(floating("02", unknown) + floating("09"), zone=BERLIN)] == [
        "03-01 20:00",
        "03-08 20:00",
    ]
    content = floating("02", unknown) + floating("09", known) + floating("16")
    assert [each[5:16] for each in busy(content)] == ["03-01 20:00", "03-09 09:00", "03-16 09:00"]


def test_a_zone_that_the_file_defines():
    lines = "DTSTART;TZID=Customized Time Zone:2026{}T100000\nDURATION:PT1H"
    content = calendar(CUSTOM, *(event(lines.format(day), day) for day in ("0302", "0329", "0701", "1025")))

    assert [each[:16] for each in busy(content)] == [
        "2026-03-02 09:00",
        "2026-03-29 08:00",
        "2026-07-01 08:00",
        "2026-10-25 09:00",
    ]


@pytest.mark.parametrize("name", ["EST", "MST", "HST", "GMT"])
def test_an_abbreviation_means_what_the_file_defines(name):
    zone = CUSTOM.replace("Customized Time Zone", name).replace("+0200", "-0400").replace("+0100", "-0500")
    summer = event(f"DTSTART;TZID={name}:20260701T100000\nDURATION:PT1H")

    assert busy(calendar(zone, summer)) == ["2026-07-01 14:00 / 2026-07-01 15:00"]
    if name == "EST":
        assert busy(calendar(summer)) == ["2026-07-01 15:00 / 2026-07-01 16:00"]


def test_zones_are_those_of_the_calendar_that_defines_them():
    other = CUSTOM.replace("+0200", "-0400").replace("+0100", "-0500")
    lines = "DTSTART;TZID=Customized Time Zone:202603{}T100000\nDURATION:PT1H"
    first = calendar(CUSTOM, event(lines.format("02")))
    second = calendar(other, event(lines.format("03"), "two"))

    assert [each[:16] for each in busy(first + second + calendar(event(lines.format("05"), "three")))] == [
        "2026-03-02 09:00",
        "2026-03-03 15:00",
        # Not defined there.
        "2026-03-04 20:00",
    ]


def test_a_zone_that_nobody_knows_blocks_from_where_the_time_is_first_to_where_it_is_last():
    assert of("DTSTART;TZID=Mars/Phobos:20260302T100000\nDTEND;TZID=Mars/Phobos:20260302T110000") == [
        "2026-03-01 20:00 / 2026-03-02 23:00"
    ]
    series = "DTSTART;TZID=Mars/Phobos:20260302T100000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=2"
    assert of(series) == ["2026-03-01 20:00 / 2026-03-02 23:00", "2026-03-08 20:00 / 2026-03-09 23:00"]


MONDAYS = "DTSTART:20260302T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=3"


def moved(lines, *more):
    return busy(calendar(event(MONDAYS), event(lines), *more))


def test_an_occurrence_that_moves_in_and_out_of_the_range():
    out = "RECURRENCE-ID:20260309T090000Z\nDTSTART:20270309T090000Z\nDURATION:PT1H"
    content = calendar(event(MONDAYS), event(out))

    assert [each[:10] for each in busy(content)] == ["2026-03-02", "2026-03-16"]
    assert busy(content, at("2027-03-01"), at("2027-04-01")) == ["2027-03-09 09:00 / 2027-03-09 10:00"]


@pytest.mark.parametrize("free", ["STATUS:CANCELLED", "TRANSP:TRANSPARENT"])
def test_an_occurrence_that_is_free(free):
    exception = f"RECURRENCE-ID:20260309T090000Z\nDTSTART:20260309T090000Z\nDURATION:PT1H\n{free}"

    assert [each[:10] for each in moved(exception)] == ["2026-03-02", "2026-03-16"]


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        ("RECURRENCE-ID:20260309T090000Z\nSTATUS:CANCELLED", ["02", "16"]),
        ("RECURRENCE-ID;TZID=Europe/Berlin:20260309T100000\nSTATUS:CANCELLED", ["02", "16"]),
        ("RECURRENCE-ID:20260310T090000Z\nSTATUS:CANCELLED", ["02", "09", "16"]),
        ("RECURRENCE-ID:20260309T090000Z\nSTATUS:CANCELLED\nDTSTART:tomorrow", ["02", "09", "16"]),
    ],
)
def test_an_occurrence_that_is_cancelled_without_a_time(lines, days):
    assert [each[8:10] for each in moved(lines)] == days


EXCEPTION = "RECURRENCE-ID:20260309T090000Z\nDTSTART:20260309T090000Z\nDURATION:PT1H\n"
OTHER_TIME = "RECURRENCE-ID:20260309T090000Z\nDTSTART:20260310T090000Z\nDURATION:PT1H"
SINGLE = "DTSTART:20260309T090000Z\nDURATION:PT1H"
LATER = EXCEPTION.replace("ID:", "ID;RANGE=THISANDFUTURE:")


@pytest.mark.parametrize(
    "exception",
    [
        f"{EXCEPTION}STATUS:CANCELLED",
        f"{EXCEPTION}TRANSP:TRANSPARENT",
        f"{LATER}STATUS:CANCELLED",
        OTHER_TIME,
    ],
)
@pytest.mark.parametrize("other", [MONDAYS, MONDAYS.replace("PT1H", "PT30M"), SINGLE])
@pytest.mark.parametrize("apart", [True, False])
def test_an_exception_leaves_the_occurrence_of_another_copy(exception, other, apart):
    if apart:
        content = calendar(event(MONDAYS), event(exception)) + calendar(event(other))
    else:
        content = calendar(event(MONDAYS), event(exception), event(other))

    assert any(each.startswith("2026-03-09 09:00") for each in busy(content))


def test_an_exception_replaces_the_occurrence_of_the_one_master_that_has_it():
    other = "DTSTART:20260302T140000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=3"
    removed = f"{MONDAYS}\nEXDATE:20260309T090000Z"

    assert "2026-03-09 09:00 / 2026-03-09 10:00" not in moved(f"{EXCEPTION}STATUS:CANCELLED", event(other))
    assert len(moved(f"{EXCEPTION}STATUS:CANCELLED", event(other))) == 5
    assert [each[8:10] for each in moved(f"{EXCEPTION}STATUS:CANCELLED", event(removed))] == [
        "02",
        "02",
        "16",
        "16",
    ]
    day = "RECURRENCE-ID;VALUE=DATE:20260309\nSTATUS:CANCELLED"
    assert len(moved(day, event(other))) == 6
    assert len(moved(day)) == 2


def test_an_exception_for_all_later_occurrences_shifts_them():
    exception = "RECURRENCE-ID;RANGE=THISANDFUTURE:20260309T090000Z\nDTSTART:20260310T120000Z\nDURATION:PT2H"

    assert moved(exception) == [
        NINE,
        "2026-03-10 12:00 / 2026-03-10 14:00",
        "2026-03-17 12:00 / 2026-03-17 14:00",
    ]


def test_a_series_that_is_cancelled_from_an_occurrence_on():
    exception = (
        "RECURRENCE-ID;RANGE=THISANDFUTURE:20260309T090000Z\nDTSTART:20260309T090000Z\nSTATUS:CANCELLED"
    )

    assert moved(exception) == [NINE]


def test_an_exception_without_its_series_is_an_event():
    assert of(f"RECURRENCE-ID:20260302T090000Z\n{TIME}") == [NINE]


def test_periods_added_to_a_series():
    lines = f"{TIME}\nRDATE;VALUE=PERIOD:20260401T090000Z/PT2H,20260402T090000Z/20260402T093000Z"

    assert of(lines) == [
        NINE,
        "2026-04-01 09:00 / 2026-04-01 11:00",
        "2026-04-02 09:00 / 2026-04-02 09:30",
    ]


@pytest.mark.parametrize(
    ("added", "found"),
    [
        ("RDATE;TZID=Mars/Phobos:20260401T090000", "2026-03-31 19:00 / 2026-04-01 22:00"),
        ("RDATE;VALUE=DATE:20260401", "2026-04-01 00:00 / 2026-04-02 01:00"),
        ("RDATE;VALUE=PERIOD;TZID=Mars/Phobos:20260401T090000/PT1H", "2026-03-31 19:00 / 2026-04-01 22:00"),
    ],
)
@pytest.mark.parametrize("length", ["DTEND:20260302T100000Z", "DURATION:PT1H"])
def test_an_added_occurrence_whose_time_is_not_known_blocks_all_that_it_may_be(added, found, length):
    assert of(f"DTSTART:20260302T090000Z\n{length}\n{added}") == [NINE, found]


@pytest.mark.parametrize("until", ["20260303", "20260303T000000Z", "20260302T230000Z"])
def test_the_last_day_of_an_all_day_series_counts_however_it_is_written(until):
    found = of(f"DTSTART;VALUE=DATE:20260301\nRRULE:FREQ=DAILY;UNTIL={until}", zone=BERLIN)

    assert [each[:10] for each in found] == ["2026-02-28", "2026-03-01", "2026-03-02"]


def test_an_hourly_event_in_the_hour_that_occurs_twice():
    lines = "DTSTART;TZID=Europe/Berlin:20261025T010000\nDURATION:PT1H\nRRULE:FREQ=HOURLY;COUNT=4"

    assert [each[11:16] for each in of(lines)] == ["23:00", "00:00", "01:00", "02:00", "03:00"]


def test_a_night_in_which_the_clock_changes_is_blocked_to_the_later_end():
    lines = (
        "DTSTART;TZID=Europe/Berlin:20261023T230000\nDTEND;TZID=Europe/Berlin:20261024T050000\n"
        "RRULE:FREQ=DAILY;COUNT=2"
    )
    # Six hours end at 04:00, the wall clock shows 05:00 an hour later.
    assert of(lines)[1] == "2026-10-24 21:00 / 2026-10-25 04:00"


def test_busy_times_without_events():
    part = """
    BEGIN:VFREEBUSY
    DTSTART:20260302T000000Z
    DTEND:20260303T000000Z
    FREEBUSY:20260302T090000Z/PT1H,20260302T120000Z/20260302T123000Z
    FREEBUSY;FBTYPE=FREE:20260302T150000Z/PT1H
    FREEBUSY;FBTYPE=BUSY-TENTATIVE:20260302T160000Z/PT1H
    FREEBUSY;FBTYPE=X-NEW:20260302T180000Z/PT1H
    END:VFREEBUSY
    """
    assert [each[11:16] for each in busy(calendar(part))] == ["09:00", "12:00", "16:00", "18:00"]


def test_busy_times_that_cannot_be_read_block_all_that_they_are_about():
    part = (
        "BEGIN:VFREEBUSY\nDTSTART:20260302T000000Z\nDTEND:20260303T000000Z\nFREEBUSY:tomorrow\nEND:VFREEBUSY"
    )

    assert busy(calendar(part)) == ["2026-03-02 00:00 / 2026-03-03 00:00"]
    with pytest.raises(InvalidCalendar):
        busy(calendar("BEGIN:VFREEBUSY\nFREEBUSY:tomorrow\nEND:VFREEBUSY"))


def test_alarms_and_tasks_block_nothing():
    alarm = f"{TIME}\nBEGIN:VALARM\nTRIGGER:-PT10M\nDURATION:PT9H\nACTION:DISPLAY\nEND:VALARM"
    task = "BEGIN:VTODO\nUID:t\nDTSTART:20260401T090000Z\nDUE:20260401T100000Z\nEND:VTODO"

    assert busy(calendar(event(alarm), task)) == [NINE]


@pytest.mark.parametrize("ends", [b"\n", b"\r", b"\r\n"])
def test_lines_are_unfolded_in_the_middle_of_a_character(ends):
    content = calendar(event(f"{TIME}\nSUMMARY:Caf\N{LATIN SMALL LETTER E WITH ACUTE}"))
    folded = content.replace(b"\xc3\xa9", b"\xc3\r\n \xa9").replace(b"T090000Z", b"T09\r\n 0000Z")

    assert busy(folded.replace(b"\r\n", ends)) == [NINE]
    assert "Caf\N{LATIN SMALL LETTER E WITH ACUTE}" in parsed(folded).text
    assert busy(b"\xef\xbb\xbf" + folded) == [NINE]


def test_line_breaks_that_an_export_has_not_escaped():
    raw = f"{TIME}\nDESCRIPTION:first\nsecond: and more\nBegin: at nine\nEnd: at ten o'clock"

    assert of(raw) == [NINE]


@pytest.mark.parametrize(
    "lines",
    [
        "SUMMARY:no time",
        "DTEND:20260302T100000Z",
        "DTSTART:tomorrow",
        "DTSTART",
        "DTSTART;TZID=Europe/Berlin",
        "DTSTART:20260230T090000Z\nDURATION:PT1H",
        "DTSTART:20260302T090000Z\nDTEND:later",
        "DTSTART:20260302T090000Z\nDURATION:-PT1H",
        "DTSTART:20260302T090000Z\nDURATION:P",
        f"{TIME}\nDTSTART:20260303T090000Z",
        f"{TIME}\nRRULE:FREQ=FORTNIGHTLY",
        f"{TIME}\nRRULE:FREQ=DAILY;BYEASTER=1",
        f"{TIME}\nRRULE:FREQ=DAILY;COUNT=-1",
        f"{TIME}\nRRULE:FREQ=DAILY;COUNT=0;COUNT=2",
        f"{TIME}\nRRULE:FREQ=DAILY;COUNT=2;UNTIL=tomorrow",
        "DTSTART:20260302T240001Z\nDURATION:PT1H",
        f"{TIME}\nRRULE:FREQ=DAILY;INTERVAL=0",
        f"{TIME}\nRRULE:FREQ=DAILY;FREQ=WEEKLY",
        f"{TIME}\nRRULE:FREQ=YEARLY;RSCALE=CHINESE",
        f"{TIME}\nRRULE FREQ=DAILY",
        f"{TIME}\nRDATE:20260401T090000Z,tomorrow",
        f"{TIME}\nRECURRENCE-ID;RANGE=THISANDPRIOR:20260302T090000Z",
        f"{TIME}\nRECURRENCE-ID:20260302T090000Z\nRRULE:FREQ=DAILY;COUNT=4",
        f"{TIME}\nRECURRENCE-ID:20260302T090000Z\nRDATE:20260401T090000Z",
        f"{TIME}\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260302T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE",
        # Ends before it begins, so that it does not say how long its occurrences are.
        "DTSTART:20260302T090000Z\nDTEND:20260302T080000Z\nRRULE:FREQ=DAILY;COUNT=2",
    ],
)
def test_an_event_that_may_block_any_time_fails_the_calendar(lines):
    with pytest.raises(InvalidCalendar):
        of(lines)


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("COUNT=1;UNTIL=20260305T090000Z", ["02", "03", "04", "05"]),
        ("COUNT=5;UNTIL=20260303T090000Z", ["02", "03", "04", "05", "06"]),
        ("COUNT=2;UNTIL=20260101T000000Z", ["02", "03"]),
        ("COUNT=0;UNTIL=20260303T090000Z", ["02", "03"]),
        # No limit.
        ("COUNT=0", ["02", "03", "04", "05", "06", "07", "08", "09"]),
    ],
)
def test_a_rule_with_a_limit_that_may_mean_more_or_less_means_more(rule, days):
    found = of(f"{TIME}\nRRULE:FREQ=DAILY;{rule}", end=at("2026-03-10"))

    assert [each[8:10] for each in found] == days


def test_such_an_event_does_no_harm_before_it_begins_nor_if_it_is_free():
    broken = f"{TIME}\nRRULE:FREQ=FORTNIGHTLY"

    assert of(broken, end=at("2026-03-02")) == []
    assert of(f"{broken}\nTRANSP:TRANSPARENT") == []


@pytest.mark.parametrize("lines", ["EXDATE", "RECURRENCE-ID"])
def test_a_floating_time_names_an_occurrence_if_both_zones_agree_on_it(lines):
    """It may be meant in the zone of the series or of the calendar: 12:00 in one is 11:00 in the other."""
    hourly = "DTSTART;TZID=Europe/Berlin:20260302T100000\nDURATION:PT1H\nRRULE:FREQ=HOURLY;COUNT=4"
    named = ":20260302T120000"
    parts = (
        [event(f"{hourly}\nEXDATE{named}")]
        if lines == "EXDATE"
        else [event(hourly), event(f"RECURRENCE-ID{named}\nSTATUS:CANCELLED")]
    )

    def hours(zone):
        return [each[11:16] for each in busy(calendar(*parts, head=f"X-WR-TIMEZONE:{zone}"))]

    assert hours("Europe/London") == ["09:00", "10:00", "11:00", "12:00"]
    assert hours("Europe/Berlin") == ["09:00", "10:00", "12:00"]


def test_an_exdate_that_cannot_be_read_removes_nothing():
    assert len(of(f"{MONDAYS}\nEXDATE:20260309T090000Z,tomorrow\nEXDATE;X")) == 2


@pytest.mark.parametrize(
    ("removed", "days"),
    [
        # The midnight of the 21st, in Berlin.
        ("EXDATE:20261120T230000Z", ["18", "19", "21"]),
        ("EXDATE:20261120T000000Z", ["18", "20", "21"]),
        ("EXDATE:20261120T090000", ["18", "20", "21"]),
        ("EXDATE;TZID=America/New_York:20261120T000000", ["18", "20", "21"]),
        ("EXDATE;VALUE=DATE:20261120", ["18", "20", "21"]),
        # The midnight of another place: which day that is, the file does not say.
        ("EXDATE:20261120T150000Z", ["18", "19", "20", "21"]),
        ("EXDATE;TZID=UTC:20261120T150000", ["18", "19", "20", "21"]),
        ("EXDATE;TZID=Mars/Phobos:20261120T000000", ["18", "19", "20", "21"]),
    ],
)
def test_a_time_removes_one_day_of_an_all_day_series(removed, days):
    found = of(f"DTSTART;VALUE=DATE:20261119\nRRULE:FREQ=DAILY;COUNT=4\n{removed}", zone=BERLIN)

    assert [each[8:10] for each in found] == days


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<!DOCTYPE html><html><body>Sign in</body></html>",
        b'{"error": "not found"}',
        b"BEGIN:VEVENT\r\nUID:1\r\nEND:VEVENT\r\n",
        b"BEGIN:VCARD\r\nEND:VCARD\r\n",
        b"\x00\x01\x02" * 100,
        calendar(event(TIME))[:-20],
        calendar(event(TIME))[: len(calendar(event(TIME))) // 2],
        calendar(event(TIME), event(TIME)).replace(b"END:VEVENT\r\nBEGIN:VEVENT\r\n", b"BEGIN:VEVENT\r\n"),
        calendar(event(TIME), event(TIME)).replace(b"END:VEVENT\r\nBEGIN:VEVENT\r\n", b"END:VEVENT\r\n"),
        calendar(event(TIME)).replace(b"BEGIN:VEVENT", b"BEGIN:VEVEN7"),
    ],
)
def test_what_is_no_whole_calendar(content):
    with pytest.raises(InvalidCalendar):
        parsed(content)


def test_events_that_are_lost_between_two_others_do_not_merge_them():
    two = calendar(event(TIME), event("DTSTART:20260401T090000Z\nDTEND:20260401T100000Z"))
    with pytest.raises(InvalidCalendar):
        busy(two.replace(b"END:VEVENT\r\nBEGIN:VEVENT\r\n", b""))


def test_a_calendar_without_events_is_free():
    assert busy(calendar()) == []
    assert busy(calendar() + calendar(event(TIME))) == [NINE]


def test_bounds():
    limits = Limits(size=10_000, components=3, depth=3, steps=50, rule_steps=40)
    parts = [event(TIME, str(each)) for each in range(4)]

    assert read(calendar(*parts[:3]), limits=limits, deadline=soon())
    with pytest.raises(InvalidCalendar, match="more than 3 components"):
        read(calendar(*parts), limits=limits, deadline=soon())
    with pytest.raises(InvalidCalendar, match="larger than 10,000 bytes"):
        read(calendar(head="X-A:" + "a" * 10_000), limits=limits, deadline=soon())
    deep = event(f"{TIME}\nBEGIN:A\nBEGIN:B\nEND:B\nEND:A")
    with pytest.raises(InvalidCalendar, match="nested"):
        read(calendar(deep), limits=limits, deadline=soon())
    often = read(calendar(event(f"{TIME}\nRRULE:FREQ=DAILY")), limits=limits, deadline=soon())
    assert busy_periods(often, YEAR[0], at("2026-03-10"), deadline=soon())
    with pytest.raises(InvalidCalendar, match="recurs more often"):
        busy_periods(often, *YEAR, deadline=soon())


@pytest.mark.parametrize("rule", ["FREQ=SECONDLY", "FREQ=SECONDLY;BYSECOND=1,2,3", "FREQ=MINUTELY"])
def test_a_series_that_recurs_for_ever_and_ever_ends(rule):
    began = time.process_time()
    with pytest.raises(InvalidCalendar, match="recurs more often"):
        of(f"DTSTART:20200101T000000Z\nDURATION:PT1S\nRRULE:{rule}")
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYWEEKNO=54",
    ],
)
def test_a_rule_that_matches_nothing_ends(rule):
    try:
        found = of(f"DTSTART:20250101T000000Z\nDURATION:PT1S\nRRULE:{rule}")
    except InvalidCalendar:
        return
    assert found == []


def test_the_deadline_ends_the_work():
    with pytest.raises(Unavailable):
        read(calendar(), deadline=time.monotonic() - 1)
    content = parsed(calendar(event("DTSTART:20260101T000000Z\nDURATION:PT1M\nRRULE:FREQ=HOURLY")))
    with pytest.raises(Unavailable):
        busy_periods(content, *YEAR, deadline=time.monotonic() - 1)


def test_one_event_or_occurrence_may_be_left_out():
    content = calendar(event(MONDAYS), event(TIME, "two"))

    assert busy(content, without="two") == busy(calendar(event(MONDAYS)))
    assert busy(content, without="one") == [NINE]
    assert len(busy(content, without="one_20260309T090000Z")) == 3


def test_years_beyond_those_of_the_calendar():
    lines = "DTSTART:99991231T230000Z\nDURATION:P999999W\nRRULE:FREQ=YEARLY"
    early = "DTSTART;TZID=Europe/Berlin:00010101T000000\nDURATION:P1D\nRRULE:FREQ=YEARLY;BYMONTH=5"

    assert busy(calendar(event(lines), event(early, "two"))) == of(early)
    assert of(early, start=at("2026-04-01"), end=at("2026-06-01")) == ["2026-04-30 22:00 / 2026-05-01 22:00"]
    assert of(lines) == []


def test_the_error_is_one_of_a_provider_that_a_retry_does_not_help():
    assert issubclass(InvalidCalendar, ProviderError)
    assert not InvalidCalendar("x").retryable
