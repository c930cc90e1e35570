"""Numbers over time as plots: positions in percent of the width and in pixels of the height."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

HEIGHT = 180
# Pixels above the highest value, for its label.
HEAD = 18
TICKS = 4
# The gap between two bars, as a fraction of the distance between them.
BETWEEN = 0.18


class Series(NamedTuple):
    """A line or a colour of bars: one value for each bucket, None without data; ``style`` is a CSS class."""

    name: str
    style: str
    values: Sequence[float | None]


class Tick(NamedTuple):
    """A horizontal line of the grid, with its label."""

    y: float
    label: str


class Bar(NamedTuple):
    """One series' part of a bucket's bar; ``x`` and ``width`` in percent."""

    style: str
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot of several series over the same buckets. ``unit`` follows each number."""

    title: str
    series: Sequence[Series]
    unit: str
    stacked: bool

    @property
    def top(self) -> float:
        """The value at the upper edge: a round number, not less than the highest value."""
        # At least TICKS, so that the labels of counts are whole numbers.
        least = float(TICKS) if self.stacked else 1.0
        return _round_up(max([least, *self._heights()]))

    @property
    def empty(self) -> bool:
        """Whether every value is zero or missing."""
        return not any(each.values and any(each.values) for each in self.series)

    def at(self, bucket: int) -> bool:
        """Whether any series has a value other than zero in a bucket."""
        return any(each.values[bucket] for each in self.series)

    def ticks(self) -> list[Tick]:
        """The lines of the grid, at round values, the lowest first."""
        step = self.top / TICKS
        return [Tick(self._y(n * step), f"{_number(n * step)}{self.unit}") for n in range(1, TICKS + 1)]

    def bars(self) -> list[Bar]:
        """The bars of stacked series; the first series is the lowest."""
        count = len(self.series[0].values)
        width = 100 / max(1, count)
        below = [0.0] * count
        bars = []
        for series in self.series:
            for n, value in enumerate(series.values):
                if value:
                    high, low = self._y(below[n] + value), self._y(below[n])
                    x = round((n + BETWEEN / 2) * width, 3)
                    bars.append(Bar(series.style, x, round(width * (1 - BETWEEN), 3), high, low - high))
                    below[n] += value
        return bars

    def lines(self, series: Series) -> list[str]:
        """The ``points`` of a series' SVG lines, 1000 units wide. A missing value starts a new line."""
        step = 1000 / max(1, len(series.values))
        lines: list[list[str]] = [[]]
        for n, value in enumerate(series.values):
            if value is None:
                lines.append([])
            else:
                lines[-1].append(f"{(n + 0.5) * step:.1f},{self._y(value):.1f}")
        # A single point becomes a short stroke: a line of length zero would be invisible.
        return [" ".join(each if len(each) > 1 else [each[0], _beside(each[0])]) for each in lines if each]

    def _heights(self) -> list[float]:
        rows = zip(*(each.values for each in self.series), strict=True)
        if self.stacked:
            return [sum(value or 0.0 for value in row) for row in rows]
        return [max((value or 0.0 for value in row), default=0.0) for row in rows]

    def _y(self, value: float) -> float:
        return round(HEIGHT - value / self.top * (HEIGHT - HEAD), 2)


def _beside(point: str) -> str:
    x, y = point.split(",")
    return f"{float(x) + 2:.1f},{y}"


def _round_up(value: float) -> float:
    """The next of 1, 2, 4, 6, 8 and 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value * 0.999999)


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value / 1000:g} k"
    return f"{value:.3g}"
