"""Slots and busy periods written as JSON, without a Python object for each.

Every item is a record of fixed width, filled from texts that are looked up in small tables: an item
costs a handful of copies of a few bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from scheduling.intervals import Intervals, Times
from scheduling.query import Slots
from scheduling.windows import DAY, MINUTE, SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# 2026-11-20 · T09:00: · 00.000Z
_STAMP = np.dtype([("day", "V10"), ("minute", "V7"), ("rest", "V7")])

# One text in each element, all of the same width: numpy copies the bytes and never looks at them.
Texts = npt.NDArray[np.void]


def timestamp(time: int) -> str:
    """RFC 3339 in UTC with milliseconds; ``time`` in milliseconds, years 1970 to 9999."""
    text = (_EPOCH + timedelta(milliseconds=time)).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"


def busy_json(busy: Intervals) -> bytes:
    """A JSON array of ``{"start", "end"}``."""
    return _array(_spans(busy.starts, busy.ends, b'"},').view(np.uint8))


def slots_json(slots: Slots, member_ids: Sequence[str] | None = None) -> bytes:
    """A JSON array of ``{"start", "end"}``, each with its ``userId`` when ids are given.

    ``member_ids[i]`` is the id of member ``i``, of characters that need no escaping: ``[A-Za-z0-9._-]``.
    """
    if member_ids is None or not len(slots):
        return _array(_spans(slots.starts, slots.starts + slots.duration, b'"},').view(np.uint8))
    # Members share starts, and slots are sorted by start: each start is written once, then copied.
    fresh = np.concatenate(([True], slots.starts[1:] != slots.starts[:-1]))
    starts = slots.starts[fresh]
    spans = _spans(starts, starts + slots.duration, b'","userId":"')
    owners = _texts(f'{member_id}"}},' for member_id in member_ids)
    items = np.empty(len(slots), [("span", spans.dtype), ("owner", owners.dtype)])
    items["span"] = spans.take(np.cumsum(fresh) - 1)
    items["owner"] = owners.take(slots.members)
    text = items.view(np.uint8)
    if len({len(member_id) for member_id in member_ids}) > 1:
        # Shorter ids were filled up with NUL.
        text = text[text != 0]
    return _array(text)


def _spans(starts: Times, ends: Times, close: bytes) -> Texts:
    """``{"start":"…","end":"…`` and ``close``, one text for each pair."""
    items = np.empty(
        starts.size,
        [("open", "V10"), ("start", _STAMP), ("to", "V9"), ("end", _STAMP), ("close", f"V{len(close)}")],
    )
    if starts.size:
        items["open"] = np.void(b'{"start":"')
        _stamp(items["start"], starts)
        items["to"] = np.void(b'","end":"')
        _stamp(items["end"], ends)
        items["close"] = np.void(close)
    return items.view(f"V{items.itemsize}")


def _stamp(field: npt.NDArray[Any], times: Times) -> None:
    """Write each time as RFC 3339 into a field of ``_STAMP``."""
    minutes = times // MINUTE
    days = minutes // (DAY // MINUTE)
    first = int(days.min())
    field["day"] = _days(first, int(days.max()) + 1).take(days - first)
    field["minute"] = _minutes().take(minutes - days * (DAY // MINUTE))
    field["rest"] = _rests().take(times - minutes * MINUTE)


def _array(text: npt.NDArray[np.uint8]) -> bytes:
    """Items that each end in a comma, as a JSON array."""
    return b"".join((b"[", text[:-1].data, b"]"))


@lru_cache(maxsize=64)
def _days(first: int, after: int) -> Texts:
    return _texts(np.datetime_as_string(np.arange(first, after).astype("M8[D]")))


@lru_cache(maxsize=1)
def _minutes() -> Texts:
    return _texts(f"T{minute // 60:02}:{minute % 60:02}:" for minute in range(DAY // MINUTE))


@lru_cache(maxsize=1)
def _rests() -> Texts:
    """All 60 000 ends of a timestamp: 0.4 MB, made once."""
    return _texts(f"{time // SECOND:02}.{time % SECOND:03}Z" for time in range(MINUTE))


def _texts(texts: Iterable[str]) -> Texts:
    """ASCII texts as wide as the longest, shorter ones filled up with NUL."""
    packed = np.array([text.encode() for text in texts])
    return packed.view(f"V{packed.itemsize}")
