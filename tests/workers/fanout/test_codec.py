"""Jobs and replies are unchanged after encoding and decoding."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers import registry
from providers.base import Calendar, Failed, Read
from providers.errors import Problem, Reason
from providers.events import (
    Attendee,
    Changes,
    Day,
    Draft,
    Event,
    EventStatus,
    Moment,
    Organizer,
    ResponseStatus,
    ShowAs,
)
from providers.oauth.registration_probe import Finding, ProbeVerdict
from scheduling.intervals import Intervals
from store.cache.calendar_lists import ListedCalendar
from workers.fanout.codec import DecodeError, Packed, pack_job, pack_reply, unpack_jobs, unpack_reply
from workers.jobs import (
    CheckRegistration,
    CreateEvent,
    DeleteEvent,
    ExchangeCode,
    FreshToken,
    GetEvent,
    ListCalendars,
    OpenAccount,
    ReadBusy,
    ReadBusyWithout,
    ReadChanges,
    ReadEvents,
    Reply,
    Revoke,
    ShowCalendars,
    UpdateEvent,
)

# Any calendar id of a provider; JSON has no surrogates.
names = st.text(st.characters(exclude_categories=["Cs"]))
moments = st.integers(-(2**53) + 1, 2**53 - 1)
numbers = st.integers(0, 2**31)

edges = st.builds(Moment, moments, st.none() | names) | st.builds(
    Day, st.dates().map(lambda date: date.isoformat())
)
changes = st.builds(
    Changes,
    subject=st.none() | names,
    description=st.none() | names,
    location=st.none() | names,
    start=st.none() | edges,
    end=st.none() | edges,
    attendees=st.none() | st.lists(names, max_size=3).map(tuple),
    meeting=st.booleans(),
    meeting_url=st.none() | names,
    meta_id=st.none() | names,
    notify=st.none() | st.booleans(),
)
drafts = st.builds(Draft, changes, names, names, names, st.none() | names, st.booleans())
jobs = st.one_of(
    st.builds(ReadBusy, names, st.none() | st.lists(names, max_size=5).map(tuple), moments, moments),
    st.builds(ReadEvents, names, st.lists(names, max_size=5).map(tuple), moments, moments),
    st.builds(ReadChanges, names, names, moments, moments, st.none() | names),
    st.builds(CreateEvent, names, names, drafts),
    st.builds(UpdateEvent, names, names, names, changes, st.booleans(), st.none() | names),
    st.builds(
        DeleteEvent,
        *(names, names, names, st.none() | st.booleans(), st.booleans(), st.none() | names),
        st.none() | names,
    ),
    st.builds(GetEvent, names, names, names, st.booleans()),
    st.builds(ReadBusyWithout, names, names, names, moments, moments),
    *(
        st.builds(kind, names)
        for kind in (
            ListCalendars,
            ShowCalendars,
            FreshToken,
            Revoke,
            ExchangeCode,
            OpenAccount,
            CheckRegistration,
        )
    ),
)
failures = st.builds(
    Failed,
    st.sampled_from(Reason),
    names,
    st.none() | names,
    st.none() | st.floats(0, 1e9, allow_nan=False),
    st.none() | st.sampled_from(Problem),
)
records = st.dictionaries(names, st.none() | names | st.booleans() | st.lists(names, max_size=2), max_size=3)
providers = st.sampled_from(registry.names())
calendars = st.builds(
    Calendar,
    *(
        names,
        providers,
        names,
        names,
        st.booleans(),
        st.booleans(),
        names,
        names,
        names,
    ),
    original=records,
)
attendees = st.builds(Attendee, names, st.booleans(), st.sampled_from(ResponseStatus), records)
events = st.builds(
    Event,
    *(
        names,
        names,
        providers,
        st.none() | names,
        names,
        names,
        names,
        moments,
        moments,
    ),
    all_day=st.booleans(),
    meeting_url=st.none() | names,
    mark=st.none() | names,
    attendees=st.lists(attendees, max_size=2).map(tuple),
    original=records,
    status=st.none() | st.sampled_from(EventStatus),
    show_as=st.none() | st.sampled_from(ShowAs),
    organizer=st.none() | st.builds(Organizer, names, st.booleans(), st.none() | names),
    web_link=st.none() | names,
    recurring_event_id=st.none() | names,
    updated_at=st.none() | moments,
    etag=st.none() | names,
)
intervals = st.lists(st.tuples(moments, moments), max_size=6).map(Intervals.of)
answers = st.builds(
    Reply,
    read_at=moments,
    failed=st.none() | failures,
    listed=st.none() | st.lists(st.builds(ListedCalendar, names, st.booleans()), max_size=4).map(tuple),
    outcomes=st.dictionaries(names, intervals.map(Read) | failures, max_size=5),
    calendars=st.lists(calendars, max_size=2).map(tuple),
    events=st.dictionaries(names, st.lists(events, max_size=2).map(tuple) | failures, max_size=2),
    made=st.booleans(),
    finding=st.none() | st.builds(Finding, st.sampled_from(ProbeVerdict), st.text(), st.text()),
)


@given(numbers, jobs)
def test_a_job_comes_back_as_it_was(number, job):
    assert unpack_jobs(pack_job(number, job)) == (Packed(number, job),)


@given(numbers, answers)
def test_a_reply_comes_back_as_it_was(number, reply):
    back_number, back = unpack_reply(pack_reply(number, reply))
    assert back_number == number
    assert (back.read_at, back.failed, back.listed) == (reply.read_at, reply.failed, reply.listed)
    assert (back.calendars, back.events, back.made) == (reply.calendars, reply.events, reply.made)
    assert back.finding == reply.finding
    assert list(back.outcomes) == list(reply.outcomes)
    for name, outcome in reply.outcomes.items():
        if isinstance(outcome, Failed):
            assert back.outcomes[name] == outcome
        else:
            assert np.array_equal(back.outcomes[name].busy.starts, outcome.busy.starts)
            assert np.array_equal(back.outcomes[name].busy.ends, outcome.busy.ends)


def test_a_reply_that_has_lost_a_busy_period_is_refused():
    """A period that is missing must not become free time."""

    def packed(*starts_and_ends: int) -> bytes:
        return msgspec.msgpack.encode(np.array(starts_and_ends, "<i8").tobytes())

    whole = pack_reply(0, Reply(outcomes={"primary": Read(Intervals.of([(1, 2), (3, 4)]))}))
    assert packed(1, 3, 2, 4) in whole

    with pytest.raises(DecodeError):
        unpack_reply(whole.replace(packed(1, 3, 2, 4), packed(1, 2)))


def test_reply_separates_reads_from_failures():
    failed = Failed(Reason.NOT_FOUND, "gone")
    empty = Intervals.of([])
    reply = Reply(outcomes={"empty": Read(empty), "gone": failed})
    _, back = unpack_reply(pack_reply(0, reply))
    assert [name for name, _ in back.read()] == ["empty"]
    assert back.outcomes["gone"] == failed
