"""What travels between web tier and workers comes back as it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from providers.base import Failed, Read
from providers.errors import Reason
from scheduling.intervals import Intervals
from store.calendar_lists import ListedCalendar
from workers.jobs import (
    ListCalendars,
    ReadBusy,
    Reply,
    Revoke,
    pack_job,
    pack_reply,
    unpack_job,
    unpack_reply,
)

# Whatever a provider may call a calendar; JSON has no surrogates.
names = st.text(st.characters(exclude_categories=["Cs"]))
moments = st.integers(-(2**53) + 1, 2**53 - 1)
numbers = st.integers(0, 2**31)

jobs = st.one_of(
    st.builds(ReadBusy, names, st.none() | st.lists(names, max_size=5).map(tuple), moments, moments),
    st.builds(ListCalendars, names),
    st.builds(Revoke, names),
)
failures = st.builds(
    Failed, st.sampled_from(Reason), names, st.none() | names, st.none() | st.floats(0, 1e9, allow_nan=False)
)
intervals = st.lists(st.tuples(moments, moments), max_size=6).map(Intervals.of)
answers = st.builds(
    Reply,
    read_at=moments,
    failed=st.none() | failures,
    listed=st.none() | st.lists(st.builds(ListedCalendar, names, st.booleans()), max_size=4).map(tuple),
    outcomes=st.dictionaries(names, intervals.map(Read) | failures, max_size=5),
)


@given(numbers, jobs)
def test_a_job_comes_back_as_it_was(number, job):
    assert unpack_job(pack_job(number, job)) == (number, job)


@given(numbers, answers)
def test_a_reply_comes_back_as_it_was(number, reply):
    back_number, back = unpack_reply(pack_reply(number, reply))
    assert back_number == number
    assert (back.read_at, back.failed, back.listed) == (reply.read_at, reply.failed, reply.listed)
    assert list(back.outcomes) == list(reply.outcomes)
    for name, outcome in reply.outcomes.items():
        if isinstance(outcome, Failed):
            assert back.outcomes[name] == outcome
        else:
            assert np.array_equal(back.outcomes[name].busy.starts, outcome.busy.starts)
            assert np.array_equal(back.outcomes[name].busy.ends, outcome.busy.ends)


def test_a_reply_tells_what_was_read_and_what_failed_apart():
    failed = Failed(Reason.NOT_FOUND, "gone")
    empty = Intervals.of([])
    reply = Reply(outcomes={"empty": Read(empty), "gone": failed})
    _, back = unpack_reply(pack_reply(0, reply))
    assert [name for name, _ in back.read()] == ["empty"]
    assert back.outcomes["gone"] == failed
