"""The explorer's shapes, converted back to times and compared with a count of minutes."""

from __future__ import annotations

from datetime import date, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dashboard.explorer import columns as in_columns
from app.dashboard.explorer import svg
from app.dashboard.explorer.data import ExplorerData, Lane
from app.dashboard.explorer.svg import GAP, HOUR, HOUR_HEIGHT, UNITS, Ruler
from scheduling.intervals import Groups, Intervals
from scheduling.layers import layers
from scheduling.query import slots
from scheduling.windows import DAY, MINUTE, Window
from tests.dashboard.explorer_queries import explorer_queries, explorer_query
from tests.dashboard.picture import ROUNDED, dashed, pieces
from tests.scheduling.strategies import members_of
from tests.scheduling.test_query import laid

# A column's pixels have one decimal.
PIXEL = 0.051


def asked_with_members(most: int = 3):
    return explorer_queries().flatmap(
        lambda each: st.tuples(st.just(each), members_of(each.slot_query, most))
    )


def minutes_shown(days) -> list[int]:
    """Every minute shown, from left to right."""
    return [at for day in days for at in range(day.start, day.end, MINUTE)]


def places(stretches, shown: list[int]) -> list[tuple[int, int]]:
    """The intervals of a lane in minutes from its left edge, split where the time shown has a gap."""
    inside = [any(start <= at < end for start, end in stretches) for at in shown]
    edges = [n for n in range(len(shown)) if inside[n] and begins(n, shown, inside)]
    return [(n, next_end(n, shown, inside)) for n in edges]


def begins(n: int, shown: list[int], inside: list[bool]) -> bool:
    return n == 0 or not inside[n - 1] or shown[n] != shown[n - 1] + MINUTE


def next_end(n: int, shown: list[int], inside: list[bool]) -> int:
    n += 1
    while n < len(shown) and inside[n] and not begins(n, shown, inside):
        n += 1
    return n


def near(found, expected, tolerance) -> None:
    assert len(found) == len(expected), (found, expected)
    for one, other in zip(found, expected, strict=True):
        for place, exact in zip(one, other, strict=True):
            assert abs(place - exact) <= tolerance, (one, other)


def offered(query, members) -> Groups:
    found = slots(query.slot_query, *laid(members))
    of_each = [[] for _ in members]
    for start, member in zip(found.starts.tolist(), found.members.tolist(), strict=True):
        of_each[member].append((start, start + found.duration))
    return Groups.of(of_each)


@given(explorer_queries())
def test_whole_days_are_the_range_without_a_gap(query):
    days = svg.days(query, whole=True)

    assert days[0].start == query.slot_query.start
    assert days[-1].end == query.slot_query.end
    assert all(one.end == other.start and one.date < other.date for one, other in pairwise(days))
    assert all((day.odd is None) == (day.end - day.start == DAY) for day in days)


@given(explorer_queries())
def test_days_cut_to_hours_lose_nothing_of_a_window(query):
    cut, whole = svg.days(query, whole=False), svg.days(query, whole=True)

    assert {day.date for day in cut} <= {day.date for day in whole}
    assert all(one.end <= other.start for one, other in pairwise(cut))
    shown = set(minutes_shown(cut))
    assert shown <= set(minutes_shown(whole))
    for start, end in query.slot_query.open_intervals().pairs():
        assert shown.issuperset(range(start, end, MINUTE))


CHANGES = [
    ("America/New_York", date(2026, 3, 8), 23, "23 hours: clocks change"),
    ("America/New_York", date(2026, 11, 1), 25, "25 hours: clocks change"),
    ("America/New_York", date(2026, 3, 9), 24, None),
    ("Australia/Lord_Howe", date(2026, 10, 4), 23.5, "23.5 hours: clocks change"),
    ("Australia/Lord_Howe", date(2026, 4, 5), 24.5, "24.5 hours: clocks change"),
    ("America/Sao_Paulo", date(2018, 11, 4), 23, "23 hours: clocks change"),
    ("America/Sao_Paulo", date(2018, 2, 17), 25, "25 hours: clocks change"),
    ("Antarctica/Troll", date(2026, 3, 29), 22, "22 hours: clocks change"),
]


@pytest.mark.parametrize(("zone", "day", "hours", "odd"), CHANGES)
def test_day_of_a_clock_change_is_marked(zone, day, hours, odd):
    (found,) = svg.days(explorer_query(zone, day, 1, None), whole=True)

    assert (found.date, found.hours, found.odd) == (day, hours, odd)


def test_a_day_that_a_zone_left_out_is_not_there():
    days = svg.days(explorer_query("Pacific/Apia", date(2011, 12, 28), 5, None), whole=True)

    assert [day.date.day for day in days] == [28, 29, 31, 1]


def test_no_hour_of_a_day_that_was_left_out_is_shown_twice():
    days = svg.days(
        explorer_query("Pacific/Apia", date(2011, 12, 29), 3, (Window.daily(0, 60),)), whole=False
    )

    assert [(day.date.day, day.hours) for day in days] == [(29, 2), (31, 2)]


def test_only_the_hours_around_the_windows_are_shown():
    query = explorer_query("Europe/Berlin", date(2026, 12, 3), 1, (Window.daily(9 * 60, 16 * 60 + 30),))
    (day,) = svg.days(query, whole=False)

    labels = [label for _, label in svg.hour_labels(day, query.zone)]
    assert (labels[0], labels[-1]) == ("08:00", "17:00")
    assert day.hours == 10


def test_a_window_after_a_jump_of_two_hours_is_shown():
    """In Troll, clocks jump from 01:00 to 03:00: the cut must not skip time after the jump."""
    query = explorer_query("Antarctica/Troll", date(2026, 3, 29), 1, (Window.daily(3 * 60, 5 * 60),))
    (day,) = svg.days(query, whole=False)

    assert day.start <= query.slot_query.open_intervals().pairs()[0][0]


def test_an_overnight_window_shows_whole_days():
    query = explorer_query("UTC", date(2026, 12, 3), 3, (Window.daily(22 * 60, 6 * 60),))

    assert [day.hours for day in svg.days(query, whole=False)] == [24, 24, 24]


@given(asked_with_members(), st.booleans())
def test_every_stroke_of_a_lane_is_where_its_time_is(case, whole):
    query, members = case
    days = svg.days(query, whole=whole)
    ruler, shown = Ruler.of(days), minutes_shown(days)
    layer = layers(query.slot_query, *laid(members))
    minute = ruler.per_hour * UNITS / 60

    for groups in (layer.padded, layer.tolerated, layer.busy):
        paths = ruler.paths(groups)
        assert len(paths) == len(members)
        for n, path in enumerate(paths):
            expected = [(a * minute, b * minute) for a, b in places(groups.group(n).pairs(), shown)]
            near(pieces(path), expected, 2 * ROUNDED)


@given(explorer_queries())
def test_each_day_begins_where_its_first_minute_is_drawn(query):
    days = svg.days(query, whole=False)
    ruler = Ruler.of(days)
    (path,) = ruler.paths(Groups.of([[(day.start, day.start + MINUTE) for day in days]]))

    near([piece[:1] for piece in pieces(path)], [(left * UNITS,) for left in ruler.lefts()], ROUNDED)
    assert ruler.width >= svg.LANE_WIDTH - 1e-6
    assert ruler.per_hour >= svg.MIN_HOUR


@given(explorer_queries(), st.booleans())
def test_above_lanes_hours_are_named_where_they_begin(query, whole):
    days = svg.days(query, whole=whole)
    ruler, place = Ruler.of(days), {at: n for n, at in enumerate(minutes_shown(days))}
    heads = ruler.heads(query.zone)
    room = 3 * ruler.per_hour >= svg.MIN_BETWEEN_HOURS

    assert [(head.day, head.left) for head in heads] == list(zip(days, ruler.lefts(), strict=True))
    for day, _, hours in heads:
        clocks = {at: datetime.fromtimestamp(at / 1000, query.zone) for at in range(day.start, day.end, HOUR)}
        named = [at for at, wall in clocks.items() if f"{wall:%H:%M}" in svg.NAMED_HOURS and at > day.start]
        assert [hour for _, hour in hours] == [clocks[at].hour for at in named if room]
        expected = [place[at] * ruler.per_hour / 60 for at in named if room]
        assert [at for at, _ in hours] == pytest.approx(expected)


@given(asked_with_members())
def test_dashes_are_the_slots(case):
    query, members = case
    days = svg.days(query, whole=False)
    ruler = Ruler.of(days)
    place = {at: n for n, at in enumerate(minutes_shown(days))}
    minute = ruler.per_hour * UNITS / 60
    found = offered(query, members)
    rows = svg.rows_of_slots(found, query.slot_query.stride, ruler.runs)
    pattern = svg.dashes(query, ruler)

    for n, path in enumerate(ruler.paths(rows)):
        drawn = dashed(path, pattern)
        expected = [place[start] * minute for start, _ in found.group(n).pairs()]
        if query.slot_query.stride >= query.slot_query.duration:
            length = max(1.0, query.slot_query.duration // MINUTE * minute - GAP)
            near([each for row in drawn for each in row], [(at, at + length) for at in expected], 2 * ROUNDED)
        else:
            # Slots that overlap cover their whole time, with a mark at the start of each.
            firsts = [first for row in drawn for first, _ in row]
            assert all(any(abs(first - at) <= 2 * ROUNDED for first in firsts) for at in expected)
            ends = [place[end - MINUTE] + 1 for _, end in rows.group(n).pairs()]
            near([(end,) for _, end in pieces(path)], [(end * minute,) for end in ends], 2 * ROUNDED)


def test_slots_of_a_minute_are_drawn_without_a_gap():
    query = explorer_query("UTC", date(2026, 12, 3), 14, None, duration=MINUTE)
    ruler = Ruler.of(svg.days(query, whole=True))

    dash, gap = map(float, svg.dashes(query, ruler).split())
    assert gap == 0
    assert dash == pytest.approx(ruler.per_hour * UNITS / 60)


def data_of(query, members) -> ExplorerData:
    lanes = [Lane(f"user-{n}", n) for n in range(len(members))]
    layer = layers(query.slot_query, *laid(members))
    within = query.slot_query.open_intervals().pairs()
    outside = Intervals.of(minus((query.slot_query.start, query.slot_query.end), within))
    return ExplorerData(lanes, layer, offered(query, members), outside, 0, None, 0.0, None, {})


def minus(whole, holes) -> list[tuple[int, int]]:
    starts, ends = [whole[0], *(end for _, end in holes)], [*(start for start, _ in holes), whole[1]]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def pixels(stretches, day) -> list[tuple[float, float]]:
    """The part of each interval within a day, in pixels from the top of its column."""
    cut = [(max(start, day.start), min(end, day.end)) for start, end in stretches]
    return [
        tuple((edge - day.start) * HOUR_HEIGHT / HOUR for edge in each) for each in cut if each[0] < each[1]
    ]


def extents(blocks) -> list[tuple[float, float]]:
    return [(block.top, block.top + block.height) for block in blocks]


@given(asked_with_members(), st.booleans())
def test_every_block_of_a_column_is_where_its_time_is(case, whole):
    query, members = case
    shown = data_of(query, members)
    layer = shown.layers
    for day in svg.days(query, whole=whole):
        near(extents(in_columns.outside_blocks(shown, day)), pixels(shown.outside.pairs(), day), 2 * PIXEL)
        columns = in_columns.columns(query, shown, day)
        assert [column.lane for column in columns] == shown.lanes
        for n, column in enumerate(columns):
            for name in ("padded", "tolerated", "busy"):
                expected = pixels(getattr(layer, name).group(n).pairs(), day)
                near(extents(column.layers[name]), expected, 2 * PIXEL)


@pytest.mark.slow
@given(asked_with_members())
def test_every_slot_stands_in_its_columns_with_its_time_once(case):
    query, members = case
    shown, days = data_of(query, members), svg.days(query, whole=False)
    drawn = [in_columns.columns(query, shown, day) for day in days]

    for n in range(len(members)):
        found = shown.slots.group(n).pairs()
        labels = [block.label for of_day in drawn for block in of_day[n].layers["slots"] if block.label]
        assert labels == [f"{datetime.fromtimestamp(s / 1000, query.zone):%H:%M}" for s, _ in found]
        for day, of_day in zip(days, drawn, strict=True):
            blocks = of_day[n].layers["slots"]
            # Of slots that overlap, each is drawn until the next one starts.
            starts = [start for start, _ in found[1:]]
            following = [*starts, None][: len(found)]
            cut = [
                (start, end if after is None else min(end, after))
                for (start, end), after in zip(found, following, strict=True)
            ]
            expected = pixels(cut, day)
            near([(block.top,) for block in blocks], [(top,) for top, _ in expected], PIXEL)
            for block, (top, end) in zip(blocks, expected, strict=True):
                # A little shorter at the end, to separate slots that touch.
                assert min(2.0, end - top) - 0.2 <= block.height <= max(2.0, end - top - 1.4)


@pytest.mark.parametrize(
    ("zone", "day", "expected"),
    [
        ("Europe/Berlin", date(2026, 3, 29), ["00:00", "01:00", "03:00", "04:00"]),
        ("Europe/Berlin", date(2026, 10, 25), ["00:00", "01:00", "02:00", "02:00", "03:00"]),
        ("Australia/Lord_Howe", date(2026, 10, 4), ["00:00", "01:00", "02:30", "03:30"]),
        ("America/Sao_Paulo", date(2018, 11, 4), ["01:00", "02:00", "03:00"]),
    ],
)
def test_hours_are_those_that_the_clock_shows(zone, day, expected):
    query = explorer_query(zone, day, 1, None)
    (shown,) = svg.days(query, whole=True)

    labels = svg.hour_labels(shown, query.zone)

    assert [label for _, label in labels][: len(expected)] == expected
    assert [top for top, _ in labels[:3]] == [0, HOUR_HEIGHT, 2 * HOUR_HEIGHT]
