"""Numbers over time as plots: where everything stands, in percent of the width and pixels of the height."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

HEIGHT = 180
# Above the highest value, for its label.
HEAD = 18
TICKS = 4
# Between the bars, in parts of their distance.
BETWEEN = 0.18


class Series(NamedTuple):
    """One kind of thing: a value for each stretch of time, None where there is none, and its ``look``."""

    name: str
    look: str
    values: Sequence[float | None]


class Tick(NamedTuple):
    """A line across the plot."""

    y: float
    label: str


class Bar(NamedTuple):
    """A part of a stretch's bar; ``x`` and ``width`` in percent."""

    look: str
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot of several series over the same stretches. ``unit`` follows each number."""

    title: str
    series: Sequence[Series]
    unit: str
    stacked: bool

    @property
    def top(self) -> float:
        """The value at the upper edge: a round number, at least as high as the highest."""
        # Of things that are counted there are no quarters.
        least = float(TICKS) if self.stacked else 1.0
        return _round_up(max([least, *self._heights()]))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to be seen."""
        return not any(each.values and any(each.values) for each in self.series)

    def at(self, place: int) -> bool:
        """Whether any series has something in a stretch."""
        return any(each.values[place] for each in self.series)

    def ticks(self) -> list[Tick]:
        """Lines at round values, the lowest first."""
        step = self.top / TICKS
        return [Tick(self._y(n * step), f"{_number(n * step)}{self.unit}") for n in range(1, TICKS + 1)]

    def bars(self) -> list[Bar]:
        """The series on top of each other, the first lowest."""
        count = len(self.series[0].values)
        width = 100 / max(1, count)
        below = [0.0] * count
        bars = []
        for series in self.series:
            for n, value in enumerate(series.values):
                if value:
                    high, low = self._y(below[n] + value), self._y(below[n])
                    x = round((n + BETWEEN / 2) * width, 3)
                    bars.append(Bar(series.look, x, round(width * (1 - BETWEEN), 3), high, low - high))
                    below[n] += value
        return bars

    def lines(self, series: Series) -> list[str]:
        """The ``points`` of a series as lines over 1000 units of width, broken where it has no value."""
        step = 1000 / max(1, len(series.values))
        lines: list[list[str]] = [[]]
        for n, value in enumerate(series.values):
            if value is None:
                lines.append([])
            else:
                lines[-1].append(f"{(n + 0.5) * step:.1f},{self._y(value):.1f}")
        # A point alone is a short stroke: of no length, nothing would be seen.
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
