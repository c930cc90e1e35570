"""Rendered JSON, compared with the json module over one dictionary for each item."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.intervals import Intervals
from scheduling.json_render import busy_json, shared_slots_json, slots_json, timestamp
from scheduling.query import Slots
from scheduling.windows import MINUTE
from tests.scheduling.strategies import at

LAST = at("9999-12-31T23:59:59") + 999
times = st.one_of(st.integers(0, LAST), st.integers(0, LAST // MINUTE).map(lambda minute: minute * MINUTE))
# Close together, as in an answer: otherwise each example would build a table of days for 8000 years.
near = times.flatmap(
    lambda time: st.lists(
        st.integers(0, 10**9).map(lambda later: min(time + later, LAST)), min_size=1, max_size=6
    )
)
ids = st.lists(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{2,12}", fullmatch=True), min_size=1, max_size=4)


def plain(time):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def compact(items):
    return json.dumps(items, separators=(",", ":")).encode()


@given(times)
def test_timestamps_are_utc_with_milliseconds(time):
    assert timestamp(time) == plain(time)


def test_moment_outside_the_calendar_is_clipped():
    """Providers may return events in the year 1, in a zone where that year began before it did in UTC."""
    assert timestamp(at("0001-01-01T00:00:00") - 1) == "0001-01-01T00:00:00.000Z"
    assert timestamp(LAST + 1) == plain(LAST)


@given(near, st.integers(0, 10**9))
def test_busy_periods_are_written_as_json_would(starts, length):
    pairs = [(start, min(start + length, LAST)) for start in starts]
    expected = [{"start": plain(start), "end": plain(end)} for start, end in pairs]
    assert busy_json(Intervals.of(pairs)) == compact(expected)


@given(near, st.integers(1, 10_080).map(lambda minutes: minutes * MINUTE), ids, st.data())
def test_shared_slots_are_written_as_json_would(starts, duration, member_ids, data):
    starts = sorted({min(start, LAST - duration) for start in starts})
    some = st.lists(st.integers(0, len(member_ids) - 1), min_size=1, unique=True).map(sorted)
    free = [data.draw(some) for _ in starts]
    of_each = np.array([start for start, members in zip(starts, free, strict=True) for _ in members])
    slots = Slots(of_each, np.array([member for members in free for member in members]), duration)
    expected = [
        {
            "start": plain(start),
            "end": plain(start + duration),
            "users": [member_ids[member] for member in members],
        }
        for start, members in zip(starts, free, strict=True)
    ]
    assert b"".join(shared_slots_json(slots, member_ids)) == compact(expected)


def test_no_shared_slots_are_an_empty_array():
    nothing = Slots(np.array([], np.int64), np.array([], np.int64), MINUTE)
    assert b"".join(shared_slots_json(nothing, ["ada"])) == b"[]"


@given(near, st.integers(1, 10_080).map(lambda minutes: minutes * MINUTE), ids, st.data())
def test_slots_are_written_as_json_would(starts, duration, member_ids, data):
    starts = sorted(min(start, LAST - duration) for start in starts)
    members = data.draw(
        st.lists(st.integers(0, len(member_ids) - 1), min_size=len(starts), max_size=len(starts))
    )
    found = Slots(np.array(starts), np.array(members), duration)
    items = [{"start": plain(start), "end": plain(start + duration)} for start in starts]
    assert b"".join(slots_json(found)) == compact(items)
    named = [item | {"userId": member_ids[member]} for item, member in zip(items, members, strict=True)]
    assert b"".join(slots_json(found, member_ids)) == compact(named)


@pytest.mark.parametrize("write", [slots_json, shared_slots_json])
@pytest.mark.parametrize("count", [999, 1000, 1001, 9000])
def test_only_a_long_answer_has_padding_between_its_items(write, count):
    slots = Slots(np.arange(count) // 2 * MINUTE, np.arange(count) % 2, MINUTE)

    text = b"".join(write(slots, ["ada", "room-lagoon"]))

    assert (b" " in text) == (count > 1000)
    assert text.replace(b" ", b"") == compact(json.loads(text))


def test_nothing_is_an_empty_array():
    nothing = Slots(np.empty(0, np.int64), np.empty(0, np.int64), MINUTE)
    for written in (slots_json(nothing), slots_json(nothing, []), slots_json(nothing, ["abc"])):
        assert b"".join(written) == b"[]"
    assert busy_json(Intervals.of([])) == b"[]"


@pytest.mark.parametrize("member_ids", [None, ["ada", "bruno"]], ids=["one user", "members"])
@pytest.mark.parametrize(("count", "pieces"), [(8191, 1), (8192, 1), (8193, 2), (16_384, 2), (16_385, 3)])
def test_an_answer_of_exactly_full_pieces_has_no_comma_at_its_end(count, pieces, member_ids):
    starts = np.arange(count) * MINUTE
    members = np.arange(count) % 2

    written = list(slots_json(Slots(starts, members, MINUTE), member_ids))

    assert len(written) == pieces + 2
    assert len(json.loads(b"".join(written))) == count


def test_a_long_answer_comes_in_pieces_that_join_seamlessly():
    starts = np.arange(40_000) // 3 * MINUTE
    members = np.arange(40_000) % 3
    pieces = list(slots_json(Slots(starts, members, MINUTE), ["ada", "bruno", "chiara"]))
    items = json.loads(b"".join(pieces))
    assert len(pieces) > 3
    assert [item["start"] for item in items] == [plain(start) for start in starts.tolist()]
    assert {item["userId"] for item in items[-3:]} == {"ada", "bruno", "chiara"}
