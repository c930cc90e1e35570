"""Plots: values computed back from the drawn positions equal the counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dashboard.activity import HEAD, HEIGHT, TICKS, Chart, PlotSeries

counted = st.integers(0, 10**7)
stacks = st.integers(1, 40).flatmap(
    lambda count: st.lists(st.lists(counted, min_size=count, max_size=count), min_size=1, max_size=5)
)
measured = st.lists(st.none() | st.floats(0.01, 20_000), min_size=1, max_size=40)


def chart(rows, *, stacked: bool) -> Chart:
    return Chart("", [PlotSeries(str(n), f"style-{n}", row) for n, row in enumerate(rows)], "", stacked)


@pytest.mark.parametrize(("slowest", "label"), [(2000, "2 s"), (6000, "6 s"), (800, "800 ms"), (0.5, "1 ms")])
def test_a_long_time_is_labelled_in_seconds(slowest, label):
    found = Chart("Response times", [PlotSeries("median", "p50", [slowest])], " ms", stacked=False)

    assert found.ticks()[-1].label == label


def value_of(found: Chart, height: float) -> float:
    return height / (HEIGHT - HEAD) * found.top


@given(stacks)
def test_stacked_bars_have_heights_of_their_numbers(rows):
    found = chart(rows, stacked=True)
    step = 100 / len(rows[0])
    # Two decimals of a pixel.
    fine = found.top / 10_000

    stands_on = [float(HEIGHT)] * len(rows[0])
    bars = iter(found.bars())
    for n, row in enumerate(rows):
        for place, value in enumerate(row):
            if not value:
                continue
            bar = next(bars)
            assert bar.style == f"style-{n}"
            assert place * step <= bar.x < bar.x + bar.width <= (place + 1) * step + 0.01
            assert value_of(found, bar.height) == pytest.approx(value, abs=fine)
            assert bar.y + bar.height == pytest.approx(stands_on[place], abs=0.02)
            stands_on[place] = bar.y
    assert next(bars, None) is None


@given(stacks)
def test_the_highest_fits_below_a_round_number(rows):
    found = chart(rows, stacked=True)
    highest = max(map(sum, zip(*rows, strict=True)))

    assert highest <= found.top * 1.000001
    assert found.top <= max(TICKS, 2 * highest)
    assert [tick.y for tick in found.ticks()] == pytest.approx(
        [HEIGHT - (HEIGHT - HEAD) * n / TICKS for n in range(1, TICKS + 1)], abs=0.01
    )


@given(measured)
def test_lines_go_through_each_value_and_break_where_there_is_none(values):
    found = chart([values], stacked=False)
    step = 1000 / len(values)

    drawn = []
    for line in found.lines(found.series[0]):
        points = [tuple(map(float, point.split(","))) for point in line.split()]
        # A single point is drawn as a short stroke.
        alone = len(points) == 2 and points[1][0] - points[0][0] < 3
        drawn.append(points[:1] if alone else points)

    runs = [[]]
    for place, value in enumerate(values):
        runs = [*runs, []] if value is None else [*runs[:-1], [*runs[-1], (place, value)]]
    expected = [run for run in runs if run]
    assert [len(line) for line in drawn] == [len(run) for run in expected]
    for line, run in zip(drawn, expected, strict=True):
        for (x, y), (place, value) in zip(line, run, strict=True):
            assert x == pytest.approx((place + 0.5) * step, abs=0.06)
            assert value_of(found, HEIGHT - y) == pytest.approx(value, abs=found.top / 1000)


def test_a_plot_of_nothing_is_empty():
    assert chart([[0, 0], [0, 0]], stacked=True).empty
    assert chart([[None, None]], stacked=False).empty
    assert not chart([[0, 1]], stacked=True).empty
