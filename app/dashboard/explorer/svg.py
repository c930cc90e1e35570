"""Intervals as shapes: the days of a picture, and horizontal lanes along them.

Positions are SVG attributes, because the page's Content-Security-Policy forbids inline styles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from app.dashboard.explorer.data import ExplorerData, Lane
from app.dashboard.explorer.form import ExplorerQuery, moment
from app.dashboard.explorer.working_time import ClosedDay
from scheduling.intervals import Groups, Intervals, intersect, merge
from scheduling.windows import DAY, MINUTE

HOUR = 60 * MINUTE

# Up to this many users are shown as columns in each day; more get a lane each.
MAX_IN_DAYS = 3

# In pixels. A week of lanes fits a desktop; a phone scrolls.
LANE_WIDTH, MIN_HOUR = 800, 4.0
LANE_HEIGHT = 34
HOUR_HEIGHT = 28

# Above lanes, every third hour except a day's first is labelled, if the labels are this many pixels apart.
NAMED_HOURS = frozenset(("06:00", "09:00", "12:00", "15:00", "18:00"))
MIN_BETWEEN_HOURS = 24

# Path coordinates are whole tenths of a pixel: precise enough, and fast to format.
UNITS = 10
# Tenths of a pixel between slots that touch, to separate them visibly.
GAP = 8


class ShownDay(NamedTuple):
    """The part of a day that is shown: ``start`` to ``end``, exclusive, in milliseconds.

    ``odd`` is a note for a day on which clocks change, else None.
    """

    date: date
    start: int
    end: int
    odd: str | None

    @property
    def hours(self) -> float:
        """The length of the part shown, in hours."""
        return (self.end - self.start) / HOUR


def days(query: ExplorerQuery, *, whole: bool) -> list[ShownDay]:
    """The days of the range that have a window, cut to the hours of the windows.

    If ``whole`` is true, all days from midnight to midnight. A day that the time zone skipped is left out.
    """
    if whole:
        return _days(query, 0, 24)
    cut = _days(query, *query.hours())
    within = query.slot_query.inside_windows()
    pieces, _, met = intersect(within, _intervals(cut))
    # If clocks change by more than an hour, or at unusual times, those hours may not cover every window.
    if _length(pieces) < _length(within):
        return _days(query, 0, 24)
    # If no day has a window, every day is shown.
    return [cut[n] for n in sorted(set(met.tolist()))] or cut


def _days(query: ExplorerQuery, first: int, last: int) -> list[ShownDay]:
    dates = (query.first + timedelta(days=n) for n in range(query.days))
    return [day for date in dates if (day := _day(date, query.zone, first, last)).start < day.end]


# Cached, because every change of a control draws the same days again.
@lru_cache(maxsize=2048)
def _day(date: date, zone: ZoneInfo, first: int, last: int) -> ShownDay:
    """A day from one full hour to another; empty if the time zone skipped it."""
    midnight, after = moment(date, zone, 0), moment(date, zone, 24)
    odd = None if after - midnight == DAY else f"{(after - midnight) / HOUR:g} hours: clocks change"
    # The hours of a skipped day are those of the next day.
    return ShownDay(date, moment(date, zone, first), min(moment(date, zone, last), after), odd)


def _intervals(days: Sequence[ShownDay]) -> Intervals:
    return Intervals.of((day.start, day.end) for day in days)


def _length(intervals: Intervals) -> int:
    return int((intervals.ends - intervals.starts).sum())


class Head(NamedTuple):
    """The labels above a day in lanes; ``hours`` has the pixels and the number of each labelled hour."""

    day: ShownDay
    left: float
    hours: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Ruler:
    """Days along a lane, one after the other; each hour is ``per_hour`` pixels wide.

    ``runs`` is the time shown: days that touch are one interval.
    """

    days: Sequence[ShownDay]
    per_hour: float
    runs: Intervals

    @classmethod
    def of(cls, days: Sequence[ShownDay]) -> Ruler:
        """A ruler of ``LANE_WIDTH``, or wider if an hour would be narrower than ``MIN_HOUR``."""
        shown = _intervals(days)
        per_hour = max(MIN_HOUR, LANE_WIDTH / sum(day.hours for day in days))
        return cls(days, per_hour, merge(shown.starts, shown.ends))

    @property
    def width(self) -> float:
        """The width of a lane, in pixels."""
        return sum(day.hours for day in self.days) * self.per_hour

    def lefts(self) -> list[float]:
        """The left edge of each day, in pixels."""
        return [0.0, *accumulate(day.hours * self.per_hour for day in self.days)][:-1]

    def heads(self, zone: ZoneInfo) -> list[Head]:
        """The labels above the lanes, with hours if there is room for them."""
        room = 3 * self.per_hour >= MIN_BETWEEN_HOURS
        return [
            Head(day, left, self._hours(day, left, zone) if room else ())
            for day, left in zip(self.days, self.lefts(), strict=True)
        ]

    def _hours(self, day: ShownDay, left: float, zone: ZoneInfo) -> Sequence[tuple[float, int]]:
        return [
            (left + top / HOUR_HEIGHT * self.per_hour, int(label[:2]))
            for top, label in hour_labels(day, zone)
            if top and label in NAMED_HOURS
        ]

    def position(self, at: int) -> float | None:
        """The position of a moment, in pixels; None if it is not shown."""
        for day, left in zip(self.days, self.lefts(), strict=True):
            if day.start <= at < day.end:
                return left + (at - day.start) / HOUR * self.per_hour
        return None

    def closed(self, days: Sequence[ClosedDay]) -> list[tuple[ClosedDay, float, float]]:
        """The left edge and the width of the longest shown part of each closed day, in pixels."""
        placed = []
        for each in days:
            parts = [
                (min(each.end, day.end) - start, left + (start - day.start) / HOUR * self.per_hour)
                for day, left in zip(self.days, self.lefts(), strict=True)
                if (start := max(each.start, day.start)) < min(each.end, day.end)
            ]
            if parts:
                length, left = max(parts)
                placed.append((each, left, length / HOUR * self.per_hour))
        return placed

    def paths(self, groups: Groups) -> list[str]:
        """The ``d`` of a path for each owner, along the middle of a lane, in tenths of a pixel.

        A stroke as wide as the lane is high draws rectangles, with half the text of their outlines.
        """
        if not len(groups.flat()):
            return [""] * len(groups)
        scale = self.per_hour * UNITS / HOUR
        runs = self.runs
        pieces, rows, met = intersect(groups.flat(), runs)
        # From time to position: subtract the start of the run, and add the length of the runs before it.
        lengths = runs.ends - runs.starts
        shift = ((lengths.cumsum() - lengths - runs.starts) * scale)[met]
        lefts = (pieces.starts * scale + shift).round().astype(int)
        widths = ((pieces.ends * scale + shift).round().astype(int) - lefts).clip(1)
        # One format for all paths takes half the time of one for each stroke.
        stroke = f"M%d {LANE_HEIGHT * UNITS // 2}h%d"
        numbers = tuple(np.column_stack((lefts, widths)).ravel().tolist())
        bounds = rows.searchsorted(groups.offsets).tolist()
        lines = "\n".join([stroke * (last - first) for first, last in pairwise(bounds)])
        return (lines % numbers).split("\n")


class Row(NamedTuple):
    """A user's lane: the numbers of periods, and a path for each layer; "" if it is empty.

    ``away`` is the number of periods outside the person's hours, ``night`` their path. ``closed`` has the
    left edge and the width of each closed day that is shown.
    """

    lane: Lane
    periods: int = 0
    slots: int = 0
    away: int = 0
    night: str = ""
    padded: str = ""
    tolerated: str = ""
    busy: str = ""
    held: str = ""
    offered: str = ""
    closed: Sequence[tuple[ClosedDay, float, float]] = ()


def rows(query: ExplorerQuery, data: ExplorerData, ruler: Ruler) -> list[Row]:
    """The lanes of all users, in the order of the query."""
    layers = data.layers
    offered = rows_of_slots(data.slots, query.slot_query.stride, ruler.runs)
    drawn = zip(
        layers.busy.sizes().tolist(),
        data.slots.sizes().tolist(),
        data.away.sizes().tolist(),
        *map(ruler.paths, (data.away, layers.padded, layers.tolerated, layers.busy, data.held, offered)),
        [ruler.closed(data.closed.get(each.user, ())) for each in data.lanes if each.group_index is not None],
        strict=True,
    )
    # The group indexes of the lanes are in the order of the lanes.
    made = [Row(lane) if lane.group_index is None else Row(lane, *next(drawn)) for lane in data.lanes]
    return sorted(made, key=_ORDERS[query.sort])


# Lanes without an answer are behind the others, or before them.
_ORDERS: Mapping[str, Callable[[Row], tuple[bool, int]]] = {
    "listed": lambda row: (False, 0),
    "most": lambda row: (row.lane.group_index is None, -row.slots),
    "fewest": lambda row: (row.lane.group_index is None, row.slots),
    "unread": lambda row: (row.lane.group_index is not None, 0),
}


def rows_of_slots(slots: Groups, stride: int, runs: Intervals) -> Groups:
    """Merge a user's slots at a constant distance in a run into one interval, which is drawn dashed."""
    run = runs.ends.searchsorted(slots.starts, "right")
    first = np.ones(slots.starts.size, np.bool_)
    first[1:] = (slots.starts[1:] - slots.starts[:-1] != stride) | (run[1:] != run[:-1])
    # The first slot of each owner starts a run; an owner may have no slots.
    first[slots.offsets[:-1][slots.sizes() > 0]] = True
    last = np.append(first[1:], True)[: first.size]
    owners = slots.owners()[first]
    return Groups.sized(slots.starts[first], slots.ends[last], np.bincount(owners, minlength=len(slots)))


def dashes(query: ExplorerQuery, ruler: Ruler) -> str:
    """The ``stroke-dasharray`` that divides such an interval into slots, in tenths of a pixel.

    Slots that overlap are drawn as the time that they cover, with a gap before each start.
    """
    scale = ruler.per_hour * UNITS / HOUR
    slot_query = query.slot_query
    step = slot_query.stride * scale
    slot = min(step, max(1.0, min(slot_query.duration, slot_query.stride) * scale - GAP))
    # Six decimals: after a thousand dashes, the last one still ends where the last slot does.
    return f"{slot:.6f} {step - slot:.6f}"


@lru_cache(maxsize=2048)
def hour_labels(day: ShownDay, zone: ZoneInfo) -> Sequence[tuple[float, str]]:
    """For each hour from a day's start: its position in pixels, and the time that the clock shows."""
    return tuple(
        ((at - day.start) * HOUR_HEIGHT / HOUR, clock_of(zone, at)) for at in range(day.start, day.end, HOUR)
    )


def clock_of(zone: ZoneInfo, at: int) -> str:
    """The time that the clock of a zone shows: ``09:30``."""
    return f"{datetime.fromtimestamp(at / 1000, zone):%H:%M}"
