"""Slots and busy periods written as JSON, without a Python object for each.

Every item is a record of fixed width, filled from texts that are looked up in small tables: an item
costs a handful of copies of a few bytes. Long answers come in pieces, so that they need not be whole in
memory before the first byte is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from scheduling.intervals import Indexes, Intervals, Times
from scheduling.query import Slots
from scheduling.windows import DAY, MINUTE, SECOND

_EPOCH = date(1970, 1, 1)
_FIRST = (date.min - _EPOCH).days * DAY
_LAST = ((date.max - _EPOCH).days + 1) * DAY - 1
# T09:00: · 00.000Z
_CLOCK = np.dtype([("minute", "V7"), ("rest", "V7")])

# About 0.8 MB of text: a piece is written while it lies in the processor's cache.
_SLOTS_IN_A_PIECE = 8_192

# One text in each element, all of the same width: numpy copies the bytes and never looks at them.
Texts = npt.NDArray[np.void]


def timestamp(time: int) -> str:
    """RFC 3339 in UTC with milliseconds; what no date can say is the first or the last moment of all."""
    day, of_day = divmod(min(max(time, _FIRST), _LAST), DAY)
    minute, rest = divmod(of_day, MINUTE)
    return f"{_day(day)}T{minute // 60:02}:{minute % 60:02}:{rest // SECOND:02}.{rest % SECOND:03}Z"


@lru_cache(maxsize=1024)
def _day(day: int) -> str:
    return (_EPOCH + timedelta(days=day)).isoformat()


def busy_json(busy: Intervals) -> bytes:
    """A JSON array of ``{"start", "end"}``."""
    return _array(_spans(busy.starts, busy.ends, b'"},').view(np.uint8))


def slots_json(slots: Slots, member_ids: Sequence[str] | None = None) -> Iterator[bytes]:
    """A JSON array of ``{"start", "end"}``, each with its ``userId`` when ids are given; in pieces.

    ``member_ids[i]`` is the id of member ``i``, of characters that need no escaping: ``[A-Za-z0-9._-]``.
    Blanks make up for ids of unequal length, between the items, where JSON takes any.
    """
    owners = None
    if member_ids and len(slots):
        owners = _texts(_as_wide_as_the_longest([f'{member_id}"}}' for member_id in member_ids], ","))
    yield b"["
    last = len(slots) - _SLOTS_IN_A_PIECE
    for first in range(0, len(slots), _SLOTS_IN_A_PIECE):
        rows = slice(first, first + _SLOTS_IN_A_PIECE)
        items = _items(slots.starts[rows], slots.members[rows], slots.duration, owners)
        # Every item ends in a comma; behind the last there is none.
        yield items.tobytes() if first < last else items.view(np.uint8)[:-1].tobytes()
    yield b"]"


def _items(starts: Times, members: Indexes, duration: int, owners: Texts | None) -> Texts:
    """One text for each slot."""
    if owners is None:
        return _spans(starts, starts + duration, b'"},')
    # Members share starts, and slots are sorted by start: each start is written once, then copied.
    fresh = np.concatenate(([True], starts[1:] != starts[:-1]))
    distinct = starts[fresh]
    spans = _spans(distinct, distinct + duration, b'","userId":"')
    items = np.empty(starts.size, [("span", spans.dtype), ("owner", owners.dtype)])
    items["span"] = spans.take(np.cumsum(fresh) - 1)
    items["owner"] = owners.take(members)
    return items.view(f"V{items.itemsize}")


def _as_wide_as_the_longest(texts: Sequence[str], close: str) -> Iterator[str]:
    width = max(map(len, texts))
    return (text.ljust(width) + close for text in texts)


def _spans(starts: Times, ends: Times, close: bytes) -> Texts:
    """``{"start":"…","end":"…`` and ``close``, one text for each pair."""
    frame = _frame(close)
    items = np.empty(starts.size, frame.dtype)
    if not starts.size:
        return items
    items[:] = frame
    fields = items.view(_span(len(close)))
    # All in one go, as long as there are few: a call costs more than what it does then.
    days, clocks = _stamps(np.concatenate((starts, ends)))
    fields["start day"], fields["end day"] = days[: starts.size], days[starts.size :]
    fields["start clock"], fields["end clock"] = clocks[: starts.size], clocks[starts.size :]
    return items


@lru_cache(maxsize=8)
def _span(close: int) -> np.dtype[np.void]:
    start, end = ([(f"{edge} day", "V10"), (f"{edge} clock", "V14")] for edge in ("start", "end"))
    return np.dtype([("open", "V10"), *start, ("to", "V9"), *end, ("close", f"V{close}")])


@lru_cache(maxsize=8)
def _frame(close: bytes) -> np.void:
    """An item without its times."""
    blank = b"-" * 24
    return np.void(b'{"start":"%b","end":"%b%b' % (blank, blank, close))


def _stamps(times: Times) -> tuple[Texts, Texts]:
    """Each time as RFC 3339, in two parts: ``2026-11-20`` and ``T09:00:00.000Z``."""
    minutes = times // MINUTE
    rests = times - minutes * MINUTE
    days, minutes = np.divmod(minutes, DAY // MINUTE)
    first = int(days.min())
    return _days(first, int(days.max()) + 1).take(days - first), _clocks(minutes, rests)


def _clocks(minutes: Times, rests: Times) -> Texts:
    """Minutes of the day, and the milliseconds after them."""
    clocks = _minutes().take(minutes)
    if np.count_nonzero(rests):
        clocks.view(_CLOCK)["rest"] = _rests().take(rests)
    return clocks


def _array(text: npt.NDArray[np.uint8]) -> bytes:
    """Items that each end in a comma, as a JSON array."""
    return b"".join((b"[", text[:-1].data, b"]"))


@lru_cache(maxsize=64)
def _days(first: int, after: int) -> Texts:
    return _texts(np.datetime_as_string(np.arange(first, after).astype("M8[D]")))


@lru_cache(maxsize=1)
def _minutes() -> Texts:
    return _texts(f"T{minute // 60:02}:{minute % 60:02}:00.000Z" for minute in range(DAY // MINUTE))


@lru_cache(maxsize=1)
def _rests() -> Texts:
    """All 60 000 ends of a timestamp: 0.4 MB, made once."""
    return _texts(f"{time // SECOND:02}.{time % SECOND:03}Z" for time in range(MINUTE))


def _texts(texts: Iterable[str]) -> Texts:
    """ASCII texts, all of the same width."""
    packed = np.array([text.encode() for text in texts])
    return packed.view(f"V{packed.itemsize}")
