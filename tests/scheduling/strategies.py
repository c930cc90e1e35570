"""Hypothesis strategies for calendars, windows, zones and queries, with many edge cases."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from scheduling.hours import Dates, Hours
from scheduling.query import Own, Query
from scheduling.windows import DAY, MINUTE, DateOverride, Window
from tests.scheduling import oracle


def at(text: str) -> int:
    """Milliseconds of an ISO time; without an offset it is UTC."""
    time = datetime.fromisoformat(text)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


# A zone, and a UTC time near a change of its offset or another irregularity.
ODD_TIMES = [
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Europe/London", "2026-03-29T01:00"),
    ("Europe/London", "2026-10-25T01:00"),
    ("Europe/Dublin", "2026-10-25T01:00"),
    # Half an hour of summer time.
    ("Australia/Lord_Howe", "2026-04-04T15:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    # Midnight is skipped or repeated.
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("Asia/Kathmandu", "2026-06-01T00:00"),
    ("Asia/Kathmandu", "1985-12-31T18:30"),
    ("Asia/Kolkata", "2026-06-01T00:00"),
    ("America/St_Johns", "2026-03-08T05:30"),
    # At the time, the clocks changed one minute after midnight.
    ("America/St_Johns", "2010-11-07T02:31"),
    ("Pacific/Chatham", "2026-04-04T14:00"),
    ("Pacific/Chatham", "2026-09-26T14:00"),
    # Summer time is suspended during Ramadan.
    ("Africa/Casablanca", "2026-02-15T02:00"),
    ("Africa/Casablanca", "2026-03-22T02:00"),
    ("America/Port-au-Prince", "2026-03-08T07:00"),
    ("Asia/Ust-Nera", "2011-12-31T14:00"),
    ("Asia/Ust-Nera", "2014-10-25T15:00"),
    # Skipped days: 30 December 2011 in Apia, 31 December 1994 in Kiritimati.
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("Pacific/Kiritimati", "1994-12-31T10:00"),
    # A whole day is repeated.
    ("Pacific/Kwajalein", "1993-08-21T12:00"),
    # Two hours of summer time.
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Antarctica/Troll", "2026-10-25T01:00"),
    ("Etc/GMT+5", "2026-01-01T05:00"),
    ("UTC", "2026-12-31T23:59"),
    # Three months after the change before; two changes in a week are in Boa Vista.
    ("America/Boa_Vista", "2000-10-12T04:00"),
    ("Asia/Gaza", "2026-03-28T00:00"),
]
# Local time was 44 minutes and 30 seconds behind UTC.
ODD_SECONDS = [("Africa/Monrovia", "1972-01-07T00:44:30"), ("Africa/Monrovia", "1971-05-01T00:44")]


@st.composite
def ranges(draw: st.DrawFn, odd: list[tuple[str, str]], longest: int, unit: int = MINUTE):
    """A zone, and a range of up to ``longest`` units around one of its irregular times."""
    zone, text = draw(st.sampled_from(odd))
    length = draw(st.integers(1, longest))
    before = draw(st.integers(0, length))
    start = at(text) - before * unit
    return zone, start, start + length * unit


minutes_of_day = st.one_of(st.integers(0, 1439), st.sampled_from([0, 30, 60, 90, 120, 150, 180, 540, 1380]))


@st.composite
def single_windows(draw: st.DrawFn) -> Window:
    earliest = draw(minutes_of_day)
    latest = draw(st.one_of(minutes_of_day, st.just(1440)).filter(lambda minute: minute != earliest))
    if draw(st.booleans()):
        return Window.daily(earliest, latest)
    return Window(draw(st.frozensets(st.integers(0, 6), max_size=7)), earliest, latest)


@st.composite
def daily_windows(draw: st.DrawFn) -> Window:
    earliest, latest = draw(
        st.tuples(minutes_of_day, minutes_of_day).filter(lambda edges: edges[0] != edges[1])
    )
    return Window.daily(earliest, latest)


paddings = st.sampled_from([0, 0, 1, 10, 60, 10_080])
schedules = st.lists(single_windows(), max_size=4).map(tuple)


def periods(low: int, high: int, longest: int):
    """Pairs of whole units, sometimes empty."""
    return st.tuples(st.integers(low, high), st.one_of(st.just(0), st.integers(0, longest))).map(
        lambda period: (period[0], period[0] + period[1])
    )


def calendars(low: int, high: int, longest: int, most: int = 8):
    return st.lists(periods(low, high, longest), max_size=most)


@st.composite
def overrides(draw: st.DrawFn, zone: str, start: int, end: int) -> tuple[DateOverride, ...]:
    """Overrides of different dates, in the range or near it."""
    first, last = (oracle.local(time, zone).date() for time in (start - DAY, end + DAY))
    dates = draw(st.lists(st.dates(first, last), max_size=4, unique=True))
    return tuple(DateOverride(date, draw(override_windows)) for date in dates)


override_windows = st.lists(
    single_windows().map(lambda window: (window.earliest, window.latest)), max_size=3
).map(tuple)


@st.composite
def questions(draw: st.DrawFn, longest: int = 2000, align: bool | None = None) -> Query:
    """A query on whole minutes, with a range around an irregular time."""
    zone, start, end = draw(ranges(ODD_TIMES, longest))
    aligned = draw(st.booleans()) if align is None else align
    return Query(
        start=start,
        end=end,
        duration=draw(st.integers(1, 120)) * MINUTE,
        padding_before=draw(paddings) * MINUTE,
        padding_after=draw(paddings) * MINUTE,
        max_overlaps=draw(st.sampled_from([0, 0, 1, 2, 3, 1000])),
        zone=zone,
        windows=draw(st.none() | schedules),
        each_day=draw(st.none() | daily_windows()),
        step=draw(st.none() | st.integers(1, 150).map(lambda minutes: minutes * MINUTE)),
        align_clock=aligned,
        not_before=draw(st.none() | moments_around(start, end)),
        overrides=draw(st.just(()) | overrides(zone, start, end)),
        limit=draw(st.none() | st.integers(0, 12)),
    )


ZONES = sorted({zone for zone, _ in ODD_TIMES})


@st.composite
def hours_of(draw: st.DrawFn, query: Query) -> Hours:
    """The hours of a person around the range of a query, in a zone of its own."""
    zone = draw(st.just(query.zone) | st.sampled_from(ZONES))
    dated = draw(st.just(()) | overrides(zone, query.start, query.end))
    other = draw(st.just(zone) | st.sampled_from(ZONES))
    replaced = draw(st.none() | overrides(other, query.start, query.end).map(lambda some: Dates(other, some)))
    return Hours(zone, draw(st.none() | schedules), dated, replaced)


@st.composite
def terms_of(draw: st.DrawFn, query: Query) -> Own:
    """What differs for a member."""
    return Own(
        tuple(draw(st.lists(hours_of(query), max_size=2))),
        draw(paddings) * MINUTE,
        draw(paddings) * MINUTE,
        draw(st.none() | moments_around(query.start, query.end)),
    )


def moments_around(start: int, end: int) -> st.SearchStrategy[int]:
    """Whole minutes from the start of a range, in it or near it."""
    length = (end - start) // MINUTE
    return st.integers(-60, length + 60).map(lambda minute: start + minute * MINUTE)


@st.composite
def members_of(draw: st.DrawFn, query: Query, most: int = 4) -> list[list[list[tuple[int, int]]]]:
    """The calendars of each member, with busy periods around the range of ``query``."""
    length = (query.end - query.start) // MINUTE
    rows = calendars(-90, length + 90, 240)
    members = draw(st.lists(st.lists(rows, max_size=3), max_size=most))
    return [
        [[(query.start + a * MINUTE, query.start + b * MINUTE) for a, b in rows] for rows in member]
        for member in members
    ]
