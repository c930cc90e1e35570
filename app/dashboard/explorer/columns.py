"""Days as columns: the time of a few users as rectangles, side by side in each day."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from app.dashboard.explorer.data import ExplorerData, Lane
from app.dashboard.explorer.form import ExplorerQuery
from app.dashboard.explorer.svg import HOUR, HOUR_HEIGHT, ShownDay, clock_of
from scheduling.intervals import Intervals

# Between slots that touch, in pixels, and the least height of a slot.
GAP = 1.5
MIN_HEIGHT = 2.0
# The height of a line of text, in pixels.
TEXT = 12.0
# The distance of a text's baseline from the top of a high slot.
BASELINE = 14.0


class Block(NamedTuple):
    """A rectangle in a day's column, in pixels.

    The ``label`` of a slot is its start time. ``baseline`` is where it is written; None if it has no room.
    """

    top: float
    height: float
    label: str = ""
    baseline: float | None = None


class Column(NamedTuple):
    """One user's part of a day's column, with blocks by layer name, and the names of closed days."""

    lane: Lane
    left: float
    width: float
    layers: dict[str, list[Block]]
    closed: list[Block]


def columns(query: ExplorerQuery, data: ExplorerData, day: ShownDay) -> list[Column]:
    """The users' parts of a day, side by side; ``left`` and ``width`` are percent of the day's width."""
    width = 100 / max(1, len(data.lanes))
    return [
        Column(lane, n * width, width, _blocks(query, data, lane.group_index, day), _closed(data, lane, day))
        for n, lane in enumerate(data.lanes)
    ]


def _closed(data: ExplorerData, lane: Lane, day: ShownDay) -> list[Block]:
    """The part of each closed day of a user that lies within a day of the picture."""
    return [
        block._replace(label=each.name)
        for each in data.closed.get(lane.user, ())
        for block in _cut(Intervals.of([(each.start, each.end)]), day)
    ]


def outside_blocks(data: ExplorerData, day: ShownDay) -> list[Block]:
    """The parts of a day that no window covers."""
    return _cut(data.outside, day)


def position(day: ShownDay, at: int) -> float | None:
    """The position of a moment in a day's column, in pixels; None if it is not shown."""
    return _pixels(at - day.start) if day.start <= at < day.end else None


def _blocks(
    query: ExplorerQuery, data: ExplorerData, group_index: int | None, day: ShownDay
) -> dict[str, list[Block]]:
    if group_index is None:
        return {}
    layers = data.layers
    by_name = {"tolerated": layers.tolerated, "padded": layers.padded, "busy": layers.busy}
    if len(data.held):
        by_name["held"] = data.held
    blocks = {name: _cut(each.group(group_index), day) for name, each in by_name.items()}
    if len(data.away):
        blocks["away"] = _clocked(query, data.away.group(group_index), day)
    blocks["slots"] = _labelled(list(_slots(query, data.slots.group(group_index), day)))
    return blocks


def _clocked(query: ExplorerQuery, intervals: Intervals, day: ShownDay) -> list[Block]:
    """The parts within a day; the label has the times of start and end."""
    cut = [(max(start, day.start), min(end, day.end)) for start, end in intervals.pairs()]
    shown = [
        f"{clock_of(query.zone, start)} to {clock_of(query.zone, end)}" for start, end in cut if start < end
    ]
    return [block._replace(label=label) for block, label in zip(_cut(intervals, day), shown, strict=True)]


def _slots(query: ExplorerQuery, slots: Intervals, day: ShownDay) -> Iterator[Block]:
    """The part of each slot within a day; the label is on the day on which the slot starts.

    A slot that overlaps the next one is drawn until the next one starts.
    """
    pairs = slots.pairs()
    following = (start for start, _ in pairs[1:])
    for (start, end), after in zip_longest(pairs, following):
        if start < day.end and end > day.start:
            drawn_end = min(end, day.end) if after is None else min(end, day.end, after)
            if drawn_end <= day.start:
                continue
            top = _pixels(max(start, day.start) - day.start)
            height = _pixels(drawn_end - day.start) - top
            label = clock_of(query.zone, start) if start >= day.start else ""
            yield Block(top, max(MIN_HEIGHT, height - GAP), label)


def _labelled(blocks: list[Block]) -> list[Block]:
    """The blocks with the baselines of the labels that do not overlap, and that lie on slots entirely."""
    labelled = []
    drawn_to = free_from = 0.0
    bottoms = _bottoms(blocks)
    for block, bottom in zip(blocks, bottoms, strict=True):
        drawn_to = block.top + TEXT
        if block.label and block.top >= free_from and drawn_to <= bottom:
            high = block.height >= TEXT - GAP
            baseline = block.top + (min(block.height / 2 + 4, BASELINE) if high else TEXT - 2)
            free_from = drawn_to
            labelled.append(block._replace(baseline=round(baseline, 1)))
        else:
            labelled.append(block)
    return labelled


def _bottoms(blocks: list[Block]) -> list[float]:
    """For each block, the end of the run of blocks without a visible gap that it belongs to."""
    bottoms: list[float] = []
    for block in reversed(blocks):
        bottom = block.top + block.height + GAP
        if bottoms and bottoms[-1] - bottom > 0 and _touches(block, blocks[len(blocks) - len(bottoms)]):
            bottom = bottoms[-1]
        bottoms.append(bottom)
    return bottoms[::-1]


def _touches(block: Block, following: Block) -> bool:
    return following.top - (block.top + block.height) <= 2 * GAP


def _cut(intervals: Intervals, day: ShownDay) -> list[Block]:
    return [
        Block(_pixels(max(start, day.start) - day.start), _pixels(min(end, day.end) - max(start, day.start)))
        for start, end in intervals.pairs()
        if start < day.end and end > day.start
    ]


def _pixels(length: int) -> float:
    return round(length * HOUR_HEIGHT / HOUR, 1)
