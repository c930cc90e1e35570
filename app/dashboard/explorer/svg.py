"""Stretches of time as shapes: lanes along a week, or days beside each other.

Positions are SVG attributes, as the page's policy allows no inline styles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from app.dashboard.explorer.data import Lane, Shown
from app.dashboard.explorer.form import Question, moment
from scheduling.intervals import Groups, Intervals, cross, merge
from scheduling.windows import DAY, MINUTE

HOUR = 60 * MINUTE

# People who fit beside each other in the columns of days; more get a lane each.
MOST_IN_DAYS = 3

# In pixels. A week of lanes fits a desktop; a phone scrolls.
LANE_WIDTH, LEAST_HOUR = 880, 4.0
LANE_HEIGHT = 34
HOUR_HEIGHT = 28

# Above lanes every third hour is named, but a day's first: where there are so many pixels between them.
NAMED_HOURS = frozenset(("06:00", "09:00", "12:00", "15:00", "18:00"))
LEAST_BETWEEN_HOURS = 24

# Tenths of a pixel are enough, and whole numbers are written fastest.
UNITS = 10
# Between slots that touch, so that they can be told apart.
GAP = 8


class Day(NamedTuple):
    """What is shown of a day, from ``start`` until ``end``; where clocks change, ``odd`` says so."""

    date: date
    start: int
    end: int
    odd: str | None

    @property
    def hours(self) -> float:
        """How much is shown."""
        return (self.end - self.start) / HOUR


def days(question: Question, *, whole: bool) -> list[Day]:
    """The days of the range, cut to the hours of the windows unless they are to be ``whole``.

    One that a zone left out is not there.
    """
    cut = _days(question, *question.hours())
    # Where clocks change by more than an hour, or at odd times, the hours may miss some of a window.
    if whole or not _cover(cut, question.engine.within()):
        return _days(question, 0, 24)
    return cut


def _days(question: Question, first: int, last: int) -> list[Day]:
    dates = (question.first + timedelta(days=n) for n in range(question.days))
    return [day for date in dates if (day := _day(date, question.zone, first, last)).start < day.end]


# A picture that follows its controls shows the same days again and again.
@lru_cache(maxsize=2048)
def _day(date: date, zone: ZoneInfo, first: int, last: int) -> Day:
    """A day from one full hour to another; empty where its zone left it out."""
    midnight, after = moment(date, zone, 0), moment(date, zone, 24)
    odd = None if after - midnight == DAY else f"{(after - midnight) / HOUR:g} hours: clocks change"
    # Of a day that was left out, each hour is the next day's.
    return Day(date, moment(date, zone, first), min(moment(date, zone, last), after), odd)


def _cover(days: Sequence[Day], within: Intervals) -> bool:
    """Whether all of it is shown."""
    pieces, _, _ = cross(within, _runs(days))
    return int((pieces.ends - pieces.starts).sum()) == int((within.ends - within.starts).sum())


def _runs(days: Sequence[Day]) -> Intervals:
    """What is shown, as stretches without a break."""
    shown = Intervals.of((day.start, day.end) for day in days)
    return merge(shown.starts, shown.ends)


class Head(NamedTuple):
    """What stands above a day in lanes: where the day begins, and where which of its hours do, in pixels."""

    day: Day
    left: float
    hours: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Ruler:
    """Days laid along a lane, one after the other; each hour is ``per_hour`` pixels."""

    days: Sequence[Day]
    per_hour: float

    @classmethod
    def of(cls, days: Sequence[Day]) -> Ruler:
        """Wide enough that an hour can be seen."""
        return cls(days, max(LEAST_HOUR, LANE_WIDTH / sum(day.hours for day in days)))

    @property
    def width(self) -> float:
        """Of a lane, in pixels."""
        return sum(day.hours for day in self.days) * self.per_hour

    def lefts(self) -> list[float]:
        """Where each day begins, in pixels."""
        return [0.0, *accumulate(day.hours * self.per_hour for day in self.days)][:-1]

    def heads(self, zone: ZoneInfo) -> list[Head]:
        """What stands above the lanes, the hours only where there is room for them."""
        room = 3 * self.per_hour >= LEAST_BETWEEN_HOURS
        return [
            Head(day, left, self._hours(day, left, zone) if room else ())
            for day, left in zip(self.days, self.lefts(), strict=True)
        ]

    def _hours(self, day: Day, left: float, zone: ZoneInfo) -> Sequence[tuple[float, int]]:
        return [
            (left + top / HOUR_HEIGHT * self.per_hour, int(label[:2]))
            for top, label in hour_labels(day, zone)
            if top and label in NAMED_HOURS
        ]

    def paths(self, groups: Groups) -> list[str]:
        """For each owner the ``d`` of a path along the middle of a lane, in tenths of a pixel.

        A stroke as wide as the lane is high makes it rectangles, in half the words of their outlines.
        """
        if not len(groups.flat()):
            return [""] * len(groups)
        scale = self.per_hour * UNITS / HOUR
        shown = _runs(self.days)
        pieces, rows, met = cross(groups.flat(), shown)
        # From the moment to the place: less the start of what is shown around it, more all that is before.
        lengths = shown.ends - shown.starts
        shift = ((lengths.cumsum() - lengths - shown.starts) * scale)[met]
        lefts = (pieces.starts * scale + shift).round().astype(int)
        widths = ((pieces.ends * scale + shift).round().astype(int) - lefts).clip(1)
        middle = LANE_HEIGHT * UNITS // 2
        pairs = zip(lefts.tolist(), widths.tolist(), strict=True)
        strokes = [f"M{left} {middle}h{width}" for left, width in pairs]
        bounds = rows.searchsorted(groups.offsets).tolist()
        return ["".join(strokes[first:last]) for first, last in pairwise(bounds)]


class Row(NamedTuple):
    """A person's lane, how often they are busy and have slots, and its paths; without them, it is empty."""

    lane: Lane
    periods: int = 0
    slots: int = 0
    padded: str = ""
    tolerated: str = ""
    busy: str = ""
    offered: str = ""


def rows(question: Question, shown: Shown, ruler: Ruler) -> list[Row]:
    """Everybody's lane with its paths."""
    layers = shown.layers
    offered = rows_of_slots(shown.slots, question.engine.stride, ruler.days)
    drawn = zip(
        layers.busy.sizes().tolist(),
        shown.slots.sizes().tolist(),
        *map(ruler.paths, (layers.padded, layers.tolerated, layers.busy, offered)),
        strict=True,
    )
    # Those who were read have their places in the order in which they are shown.
    return [Row(lane) if lane.place is None else Row(lane, *next(drawn)) for lane in shown.lanes]


def rows_of_slots(slots: Groups, stride: int, days: Sequence[Day]) -> Groups:
    """Slots that follow each other at the same distance, as one stretch: it is drawn dashed."""
    run = _runs(days).ends.searchsorted(slots.starts, "right")
    first = np.ones(slots.starts.size, np.bool_)
    first[1:] = (slots.starts[1:] - slots.starts[:-1] != stride) | (run[1:] != run[:-1])
    # Where another member's begin, and there may be nobody's at all.
    first[slots.offsets[:-1][slots.sizes() > 0]] = True
    last = np.append(first[1:], True)[: first.size]
    owners = slots.owners()[first]
    return Groups.sized(slots.starts[first], slots.ends[last], np.bincount(owners, minlength=len(slots)))


def dashes(question: Question, ruler: Ruler) -> str:
    """The pattern that makes slots of such a stretch, in tenths of a pixel.

    Slots that overlap show the time they cover, marked where each begins.
    """
    scale = ruler.per_hour * UNITS / HOUR
    engine = question.engine
    step = engine.stride * scale
    slot = min(step, max(1.0, min(engine.duration, engine.stride) * scale - GAP))
    # Fine enough that a thousand of them end where the last slot does.
    return f"{slot:.6f} {step - slot:.6f}"


class Block(NamedTuple):
    """A rectangle in a day's column: where it begins and how high it is, in pixels; a slot has its time."""

    top: float
    height: float
    label: str = ""


class Column(NamedTuple):
    """One person's share of a day: its layers by name."""

    lane: Lane
    left: float
    width: float
    layers: dict[str, list[Block]]


def columns(question: Question, shown: Shown, day: Day) -> list[Column]:
    """Everybody's share of a day, beside each other; left and width are percent of the day's."""
    width = 100 / max(1, len(shown.lanes))
    return [
        Column(lane, n * width, width, _blocks(question, shown, lane.place, day))
        for n, lane in enumerate(shown.lanes)
    ]


def outside_blocks(shown: Shown, day: Day) -> list[Block]:
    """What of a day no window covers."""
    return _cut(shown.outside, day)


@lru_cache(maxsize=2048)
def hour_labels(day: Day, zone: ZoneInfo) -> Sequence[tuple[float, str]]:
    """Where each hour after a day's start is, and what the clock shows then."""
    return tuple(
        ((at - day.start) * HOUR_HEIGHT / HOUR, _clock(zone, at)) for at in range(day.start, day.end, HOUR)
    )


def _blocks(question: Question, shown: Shown, place: int | None, day: Day) -> dict[str, list[Block]]:
    if place is None:
        return {}
    layers = shown.layers
    stretches = {"tolerated": layers.tolerated, "padded": layers.padded, "busy": layers.busy}
    blocks = {name: _cut(each.group(place), day) for name, each in stretches.items()}
    blocks["slots"] = list(_slots(question, shown.slots.group(place), day))
    return blocks


def _slots(question: Question, slots: Intervals, day: Day) -> Iterator[Block]:
    """What a day has of each slot; the time stands on the day that it begins on."""
    for start, end in slots.pairs():
        if start < day.end and end > day.start:
            top = _pixels(max(start, day.start) - day.start)
            height = _pixels(min(end, day.end) - day.start) - top
            label = _clock(question.zone, start) if start >= day.start else ""
            yield Block(top, max(2.0, height - 1.5), label)


def _clock(zone: ZoneInfo, at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, zone):%H:%M}"


def _cut(stretches: Intervals, day: Day) -> list[Block]:
    return [
        Block(_pixels(max(start, day.start) - day.start), _pixels(min(end, day.end) - max(start, day.start)))
        for start, end in stretches.pairs()
        if start < day.end and end > day.start
    ]


def _pixels(length: int) -> float:
    return round(length * HOUR_HEIGHT / HOUR, 1)
