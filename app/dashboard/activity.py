"""The activity page: requests, how long they took, the cache, and the providers, over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

from flask import request
from flask.typing import ResponseReturnValue

from app.availability.explanation_text import reason_words
from app.availability.parameters import now_ms
from app.dashboard.blueprint import blp, page
from app.http.routes import route_facts
from app.services import services
from providers import registry
from store.metrics.counters import DAY, GROUPS, HOUR, MINUTE, Counts, Histogram, Point, Status, together


class ShownPeriod(NamedTuple):
    """The period that the page shows, and the length of each bucket of a plot, both in milliseconds."""

    title: str
    length: int
    step: int


SPANS = {
    "3h": ShownPeriod("3 hours", 3 * HOUR, 5 * MINUTE),
    "1d": ShownPeriod("a day", DAY, 15 * MINUTE),
    "7d": ShownPeriod("a week", 7 * DAY, 2 * HOUR),
    "30d": ShownPeriod("30 days", 30 * DAY, 8 * HOUR),
}
ORDINARY = "3h"
# The colours of providers.
PROVIDER_STYLES = ("one", "two", "three", "four", "five")
REASON_STYLES = ("four", "three", "five", "two", "one")
# Shown when there is no number.
NONE = "\N{EN DASH}"
MILLISECONDS = " ms"


@blp.get("/activity")
def activity() -> ResponseReturnValue:
    """The page; of a request by htmx, its plots alone."""
    return page("activity.html", spans=SPANS, **_context())


@blp.get("/activity/plots")
@route_facts(polled=True)
def activity_plots() -> ResponseReturnValue:
    """The plots, which refresh themselves."""
    return activity()


def _context() -> dict[str, Any]:
    chosen = request.args.get("span", ORDINARY)
    span = SPANS.get(chosen, SPANS[ORDINARY])
    points = _points(span)
    every = together(point.counts for point in points)
    return {
        "span": chosen if chosen in SPANS else ORDINARY,
        "title": span.title,
        "every": every,
        "charts": _charts(points),
        "moments": [_moment(point.start, span) for point in points],
        "routes": [(group, every.requests(group)) for group in GROUPS if every.requests(group).total],
        "milliseconds": milliseconds,
    }


def _points(span: ShownPeriod) -> list[Point]:
    """The counts in buckets of the span's step. The last bucket is still being filled."""
    recorded = services().stores.counters
    # Include the requests that this process has counted since its last periodic flush.
    recorded.flush()
    until = now_ms()
    start = (until - span.length) // span.step * span.step + span.step
    fine = recorded.points(start, until)
    size = max(1, span.step // (fine[0].end - fine[0].start))
    return [
        Point(each[0].start, each[-1].end, together(point.counts for point in each))
        for each in (fine[first : first + size] for first in range(0, len(fine), size))
    ]


def _charts(points: Sequence[Point]) -> list[Chart]:
    counts = [point.counts for point in points]

    def series(name: str, style: str, value: Callable[[Counts], float | None]) -> PlotSeries:
        return PlotSeries(name, style, [value(each) for each in counts])

    answers = [
        series("answered", "one", lambda each: _total(each, "2xx") + _total(each, "3xx")),
        series("refused (4xx)", "three", lambda each: _total(each, "4xx")),
        series("failed (5xx)", "four", lambda each: _total(each, "5xx")),
    ]
    latency = [
        series("median", "p50", lambda each: each.requests().percentile(50)),
        series("95th percentile", "p95", lambda each: each.requests().percentile(95)),
        series("99th percentile", "p99", lambda each: each.requests().percentile(99)),
    ]
    cache = [
        series("fresh in the cache", "one", lambda each: each.cache.hits),
        series("stale in the cache", "three", lambda each: each.cache.stale),
        series("read from a provider", "two", lambda each: each.cache.misses),
    ]
    providers = [
        series(registry.title(name), style, partial(_reads, name))
        for name, style in zip(registry.names(), cycle(PROVIDER_STYLES), strict=False)
    ]
    kinds = sorted({kind for each in counts for kind in each.failed})
    failures = [
        PlotSeries(
            f"{registry.title(of)}: {reason_words(why)}", style, [n.failed.get((of, why), 0) for n in counts]
        )
        for (of, why), style in zip(kinds, cycle(REASON_STYLES), strict=False)
    ]
    charts = [
        Chart("Requests", answers, "", stacked=True),
        Chart("Response times", latency, MILLISECONDS, stacked=False),
        Chart("Calendars requested", cache, "", stacked=True),
        Chart("Reads from providers", providers, "", stacked=True),
    ]
    return [*charts, Chart("Provider failures by reason", failures, "", stacked=True)] if failures else charts


def _reads(provider: str, counts: Counts) -> int:
    return counts.reads(provider).total


def _total(counts: Counts, status: Status) -> int:
    return counts.requests(status=status).total


def _moment(start: int, span: ShownPeriod) -> str:
    moment = datetime.fromtimestamp(start / 1000, UTC)
    clock = f"{moment:%H:%M}"
    return clock if span.length <= DAY else f"{moment.day} {moment:%b} {clock}"


def milliseconds(latency: Histogram, percent: int) -> str:
    """A percentile as the page shows it."""
    found = latency.percentile(percent)
    if found is None:
        return NONE
    if found >= 1000:
        return f"{found / 1000:.1f} s"
    return f"{found:.0f} ms" if found >= 10 else f"{found:.1f} ms"


HEIGHT = 180
# Pixels above the highest value, for its label.
HEAD = 18
TICKS = 4
# The gap between two bars, as a fraction of the distance between them.
BETWEEN = 0.18


class PlotSeries(NamedTuple):
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
    series: Sequence[PlotSeries]
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
        return [Tick(self._y(n * step), _label(n * step, self.unit)) for n in range(1, TICKS + 1)]

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

    def lines(self, series: PlotSeries) -> list[str]:
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


def _label(value: float, unit: str) -> str:
    if value >= 1000:
        return f"{value / 1000:g} {'s' if unit == MILLISECONDS else f'k{unit}'}"
    return f"{value:.3g}{unit}"
