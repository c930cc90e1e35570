"""JSON of slots and busy periods, rendered with numpy and without a Python object for each.

Every item is a record of fixed width, filled with texts from small tables, so that it costs a few copies of
a few bytes. Long answers are rendered in chunks, so that the first bytes are sent before the whole answer is
in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise

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

# In an answer of up to this many slots, the padding between ids is removed, which takes 0.08 ms. For a chunk
# of a long answer it would take 0.6 ms, half of the time in which the chunk is rendered.
_SLOTS_WITHOUT_PADDING = 1_000

# About 0.8 MB of text: a chunk fits in the CPU cache.
_SLOTS_IN_A_CHUNK = 8_192

# One text in each element, all of the same width. As "void" data, numpy copies the bytes unread.
Texts = npt.NDArray[np.void]


def timestamp(time: int) -> str:
    """RFC 3339 in UTC with milliseconds, clamped to the years 1 to 9999."""
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
    """A JSON array of ``{"start", "end"}``, each with its ``userId`` if ids are given; in chunks.

    ``member_ids[i]`` is the id of member ``i``, in characters that need no escaping: ``[A-Za-z0-9._-]``.
    In a long answer, ids of unequal length are padded with spaces between the items, where JSON allows them.
    """
    owners = None
    if member_ids and len(slots):
        owners = _texts(_padded([f'{member_id}"}}' for member_id in member_ids], ","))
        if len(slots) <= _SLOTS_WITHOUT_PADDING:
            yield b"[%b]" % _compact(
                _items(slots.starts, slots.members, slots.duration, owners).tobytes()[:-1]
            )
            return
    yield b"["
    last = len(slots) - _SLOTS_IN_A_CHUNK
    for first in range(0, len(slots), _SLOTS_IN_A_CHUNK):
        rows = slice(first, first + _SLOTS_IN_A_CHUNK)
        items = _items(slots.starts[rows], slots.members[rows], slots.duration, owners)
        # Every item ends in a comma, which is cut off after the last one.
        yield items.tobytes() if first < last else items.view(np.uint8)[:-1].tobytes()
    yield b"]"


def shared_slots_json(slots: Slots, member_ids: Sequence[str]) -> Iterator[bytes]:
    """A JSON array of ``{"start", "end", "users"}``, one item for each start, with the ids of its members.

    It is yielded in chunks. For the ids, see ``slots_json``.
    """
    firsts = slots.firsts()
    starts = slots.starts.take(firsts)
    yield b"["
    if firsts.size:
        ids = _texts(_padded([f'"{member_id}"' for member_id in member_ids], ","))
        spans = _spans(starts, starts + slots.duration, b'","users":[').tolist()
        borders = [*(firsts * ids.itemsize).tolist(), len(slots) * ids.itemsize]
        users = memoryview(ids.take(slots.members).tobytes())
        last = firsts.size - 1
        short = len(slots) <= _SLOTS_WITHOUT_PADDING
        for number, (span, edges) in enumerate(zip(spans, pairwise(borders), strict=True)):
            # Every id ends in a comma, which is cut off after the last one.
            item = b"".join((span, users[edges[0] : edges[1] - 1], b"]}" if number == last else b"]},"))
            yield _compact(item) if short else item
    yield b"]"


def _items(starts: Times, members: Indexes, duration: int, owners: Texts | None) -> Texts:
    """One text for each slot."""
    if owners is None:
        return _spans(starts, starts + duration, b'"},')
    # Many members have the same start, and slots are sorted by start: each start is rendered once and copied.
    fresh = np.concatenate(([True], starts[1:] != starts[:-1]))
    distinct = starts[fresh]
    spans = _spans(distinct, distinct + duration, b'","userId":"')
    items = np.empty(starts.size, [("span", spans.dtype), ("owner", owners.dtype)])
    items["span"] = spans.take(np.cumsum(fresh) - 1)
    items["owner"] = owners.take(members)
    return items.view(f"V{items.itemsize}")


def _compact(text: bytes) -> bytes:
    """The text without padding: neither times nor ids have spaces."""
    return text.replace(b" ", b"")


def _padded(texts: Sequence[str], close: str) -> Iterator[str]:
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
    # Starts and ends in one call: with few items, the overhead of a call is most of its cost.
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
    """An item with placeholders for its times."""
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
    """``T09:00:00.000Z`` from minutes of the day and the milliseconds after them."""
    clocks = _minutes().take(minutes)
    if np.count_nonzero(rests):
        clocks.view(_CLOCK)["rest"] = _rests().take(rests)
    return clocks


def _array(text: npt.NDArray[np.uint8]) -> bytes:
    """A JSON array of items that each end in a comma."""
    return b"".join((b"[", text[:-1].data, b"]"))


@lru_cache(maxsize=64)
def _days(first: int, after: int) -> Texts:
    return _texts(np.datetime_as_string(np.arange(first, after).astype("M8[D]")))


@lru_cache(maxsize=1)
def _minutes() -> Texts:
    return _texts(f"T{minute // 60:02}:{minute % 60:02}:00.000Z" for minute in range(DAY // MINUTE))


@lru_cache(maxsize=1)
def _rests() -> Texts:
    """The seconds and milliseconds of all 60 000 timestamps in a minute: 0.4 MB, built once."""
    return _texts(f"{time // SECOND:02}.{time % SECOND:03}Z" for time in range(MINUTE))


def _texts(texts: Iterable[str]) -> Texts:
    """An array of ASCII texts that all have the same width."""
    packed = np.array([text.encode() for text in texts])
    return packed.view(f"V{packed.itemsize}")
