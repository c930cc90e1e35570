"""The baseline of the engine: a sorted sweep in plain Python, written with care."""

from __future__ import annotations

from itertools import chain

from scheduling.query import Query

Pair = tuple[int, int]


def sweep(query: Query, calendars: list[list[Pair]], within: list[Pair]) -> list[int]:
    """The starts of one member's slots; ``within`` is range and windows, resolved beforehand."""
    stretches = one_blocks(query, calendars) if query.max_overlaps == 0 else more_block(query, calendars)
    return cut(stretches, within, query.duration)


def one_blocks(query: Query, calendars: list[list[Pair]]) -> list[Pair]:
    """Free stretches when a single period blocks: one pass over all periods by start."""
    before, after, free, cursor, end = query.padding_before, query.padding_after, [], query.start, query.end
    for opens, closes in sorted(chain.from_iterable(calendars)):
        if opens == closes:
            continue
        if opens - before > cursor:
            if opens - before >= end:
                break
            free.append((cursor, opens - before))
        if closes + after > cursor:
            cursor = closes + after
    if cursor < end:
        free.append((cursor, end))
    return free


def more_block(query: Query, calendars: list[list[Pair]]) -> list[Pair]:
    """Free stretches when it takes more: between each end and the start that comes K + 1 periods later."""
    periods = [period for calendar in calendars for period in merged(calendar)]
    starts = sorted(opens - query.padding_before for opens, _ in periods)
    ends = sorted(closes + query.padding_after for _, closes in periods)
    lows = [query.start, *ends]
    highs = starts[query.max_overlaps :]
    highs += [query.end] * (len(lows) - len(highs))
    free: list[Pair] = []
    for low, high in zip(lows, highs, strict=True):
        low, high = max(low, query.start), min(high, query.end)
        if low >= high:
            continue
        if free and low <= free[-1][1]:
            free[-1] = (free[-1][0], high)
        else:
            free.append((low, high))
    return free


def merged(calendar: list[Pair]) -> list[Pair]:
    joined: list[Pair] = []
    last = None
    for opens, closes in sorted(calendar):
        if opens == closes:
            continue
        if last is not None and opens <= last:
            if closes > last:
                last = closes
                joined[-1] = (joined[-1][0], closes)
        else:
            joined.append((opens, closes))
            last = closes
    return joined


def cut(stretches: list[Pair], within: list[Pair], duration: int) -> list[int]:
    """Slots of the stretches within the windows, both walked side by side."""
    starts: list[int] = []
    windows = iter(within)
    opens, closes = next(windows, (0, 0))
    for low, high in stretches:
        while opens < closes:
            first, last = max(low, opens), min(high, closes)
            starts.extend(range(first, last - duration + 1, duration))
            if closes > high:
                break
            opens, closes = next(windows, (0, 0))
    return starts
