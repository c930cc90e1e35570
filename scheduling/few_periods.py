"""The slots of one member with few busy periods, in plain Python.

numpy takes about a microsecond for each call, however short the arrays are, so loops over a few dozen
integers are faster. ``scheduling.query`` chooses by size; the slots are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from scheduling.intervals import Groups

Pair = tuple[int, int]


def starts(
    opens: list[int], closes: list[int], within: Iterable[Pair], duration: int, stride: int
) -> list[int]:
    """The starts of the slots in the intervals of ``within``, outside the blocks that ``blocking`` returned.

    The intervals are sorted and do not overlap.
    """
    found: list[int] = []
    after = duration - 1
    first, blocks = 0, len(opens)
    for low, high in within:
        while first < blocks and closes[first] <= low:
            first += 1
        # A block may reach into the next interval, which begins its search at this one's first block.
        block = first
        while block < blocks and opens[block] < high:
            found.extend(range(low, opens[block] - after, stride))
            low = closes[block]
            block += 1
        found.extend(range(low, high - after, stride))
    return found


def blocking(
    calendars: Groups, padding_before: int, padding_after: int, max_overlaps: int
) -> tuple[list[int], list[int]]:
    """The starts and the ends, each sorted, of the time that more than ``max_overlaps`` padded periods cover.

    With K = ``max_overlaps``, and starts and ends each sorted separately: K + 1 periods overlap from start
    number ``m + K`` to end number ``m``, if that start is earlier.
    """
    rows = list(zip(calendars.starts.tolist(), calendars.ends.tolist(), strict=True))
    opens: list[int] = []
    closes: list[int] = []
    if not max_overlaps:
        _add(rows, opens, closes)
    else:
        # Periods of one calendar that overlap or touch count as one.
        offsets = calendars.offsets.tolist()
        for first, last in pairwise(offsets):
            _add_merged(sorted(rows[first:last]), opens, closes)
    opens = sorted([start - padding_before for start in opens])
    closes = sorted([end + padding_after for end in closes])
    if not max_overlaps:
        return opens, closes
    pairs = [pair for pair in zip(opens[max_overlaps:], closes, strict=False) if pair[0] < pair[1]]
    return [start for start, _ in pairs], [end for _, end in pairs]


def _add(rows: list[Pair], opens: list[int], closes: list[int]) -> None:
    for start, end in rows:
        if start < end:
            opens.append(start)
            closes.append(end)


def _add_merged(rows: list[Pair], opens: list[int], closes: list[int]) -> None:
    last = None
    for start, end in rows:
        if start >= end:
            continue
        if last is None or start > last:
            opens.append(start)
            closes.append(end)
            last = end
        elif end > last:
            closes[-1] = last = end
