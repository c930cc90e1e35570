"""``merge``, ``clip``, ``cross`` and ``outside``, compared with sets of units."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduling.intervals import (
    Groups,
    Intervals,
    clip,
    free_parts,
    intersect,
    merge,
    merge_each,
    progressions,
    sort_in_place,
)
from tests.scheduling import oracle
from tests.scheduling.strategies import calendars

pairs = calendars(-20, 60, 15)
owners = st.lists(pairs, max_size=5)


def units(intervals):
    return {at for start, end in intervals for at in range(start, end)}


@given(pairs)
def test_merge_joins_touching_and_drops_empty_intervals(rows):
    busy = Intervals.of(rows)
    assert merge(busy.starts, busy.ends).pairs() == oracle.merged(rows, 1)


@given(owners)
def test_merge_each_is_merge_within_every_group(rows):
    merged = merge_each(Groups.of(rows))
    assert [merged.group(n).pairs() for n in range(len(merged))] == [oracle.merged(row, 1) for row in rows]


def test_merge_each_of_groups_with_overflowing_times():
    far = 2**61
    rows = [[(far, far + 5), (-far, 3), (far + 5, far + 6)], [(7, 8)], [(-far, -far + 1)]]
    merged = merge_each(Groups.of(rows))
    assert [merged.group(n).pairs() for n in range(3)] == [
        [(-far, 3), (far, far + 6)],
        [(7, 8)],
        [(-far, -far + 1)],
    ]


@given(pairs, st.integers(-30, 80), st.integers(0, 40))
def test_clip_keeps_the_parts_in_the_range(rows, start, length):
    clipped = clip(Intervals.of(rows), start, start + length).pairs()
    assert units(clipped) == {unit for unit in units(rows) if start <= unit < start + length}
    assert all(a < b for a, b in clipped)


@given(pairs, pairs)
def test_outside_keeps_the_time_that_is_not_busy(rows, others):
    busy = [(start, end) for start, end in rows if start < end]
    cover = oracle.merged(others, 1)
    free = free_parts(Intervals.of(busy), Intervals.of(cover)).pairs()
    # Intervals of the cover do not touch, so free time never continues from one into the next.
    assert free == oracle.runs(units(cover) - units(busy), 1)


# Close together, so that rows often end exactly where the cover begins.
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=6), calendars(0, 12, 4))
def test_cross_cuts_every_row_to_every_interval_it_meets(rows, others):
    rows = [(start, start + length) for start, length in rows]
    cover = oracle.merged(others, 1)
    pieces, row, met = intersect(Intervals.of(rows), Intervals.of(cover))
    assert list(zip(pieces.pairs(), row.tolist(), met.tolist(), strict=True)) == [
        ((max(a, c), min(b, d)), i, j)
        for i, (a, b) in enumerate(rows)
        for j, (c, d) in enumerate(cover)
        if max(a, c) < min(b, d)
    ]


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=6), st.integers(1, 9))
def test_progressions_follow_one_another(rows, stride):
    firsts, counts = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    assert progressions(firsts, counts, stride).tolist() == [
        first + n * stride for first, count in rows for n in range(count)
    ]


@given(owners, owners)
def test_groups_lie_flat_in_order(rows, more):
    groups = Groups.concat([Groups.of(rows), Groups.of(more)])
    assert len(groups) == len(rows + more)
    assert [groups.group(n).pairs() for n in range(len(groups))] == rows + more
    assert groups.flat().pairs() == [pair for row in rows + more for pair in row]
    assert groups.owners().tolist() == [n for n, row in enumerate(rows + more) for _ in row]
    later = groups.span(len(rows), len(groups))
    assert [later.group(n).pairs() for n in range(len(later))] == more


def test_no_owners_make_no_groups():
    assert len(Groups.of([])) == len(Groups.concat([])) == len(merge_each(Groups.of([]))) == 0


@given(st.integers(0, 2_000), st.integers(1, 400), st.integers(0, 2**32 - 1))
def test_moments_are_sorted_from_any_order(size, runs, seed):
    dice = np.random.default_rng(seed)
    moments = dice.integers(-1_000, 1_000, size)
    # In ``runs`` sorted runs, as from consecutive calendars; a single run is already sorted.
    come = np.concatenate([np.sort(run) for run in np.array_split(moments, runs)])
    sort_in_place(come)
    assert come.tolist() == sorted(moments.tolist())
