"""Values in Redis and jobs in lists, with wrong bytes: read right, or refused with the known error."""

from __future__ import annotations

import fakeredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.http.errors import Invalid
from app.http.paging import after, cut_by_sort_key
from providers.base import Failed, Read
from providers.errors import Reason
from providers.events import Draft
from scheduling.intervals import Intervals
from store.cache.busy_cache import FORMAT, HEAD, BusyCache, CalendarKey
from store.cache.calendar_lists import CalendarList, CalendarLists, ListedCalendar
from store.cache.fast_redis import FastRedis
from store.security.crypto import Keyring, Undecipherable
from store.security.one_time_secrets import OneTimeSecrets, PendingConsent, PendingExchange
from tests.fuzz.counting import count
from tests.fuzz.operations import KEY, WRITTEN
from workers.fanout.codec import (
    DecodeError,
    pack_body,
    pack_job,
    pack_reply,
    unpack_body,
    unpack_jobs,
    unpack_reply,
)
from workers.jobs import CreateEvent, ListCalendars, ReadBusy, Reply

pytestmark = pytest.mark.fuzz

WEEK = 7 * 86_400_000
CALENDAR = CalendarKey("connection", "primary")
KEYRING = Keyring([b"k" * 32])
PERIODS = Intervals.of([(1000, 2000), (5000, 9000)])
REPLY = Reply(
    read_at=7,
    listed=(ListedCalendar("ada@example.com", True),),
    outcomes={"primary": Read(PERIODS), "other": Failed(Reason.NOT_FOUND, "gone")},
)
JOBS = (
    ReadBusy("connection", ("primary",), 0, WEEK),
    ListCalendars("connection"),
    CreateEvent("connection", "primary", Draft(WRITTEN, KEY, KEY)),
)


@st.composite
def spoilt(draw: st.DrawFn, whole: bytes) -> bytes:
    """Any bytes at all, or the right ones with some lost, added or changed."""
    count("bytes of ours spoilt")
    kind = draw(st.integers(0, 4))
    place = draw(st.integers(0, len(whole)))
    if kind == 0:
        return draw(st.binary(max_size=200))
    if kind == 1:
        return whole[:place]
    if kind == 2:
        return whole[place:]
    if kind == 3:
        return whole[:place] + draw(st.binary(min_size=1, max_size=32)) + whole[place:]
    return whole[:place] + draw(st.binary(min_size=1, max_size=4)) + whole[place + 1 :]


@given(st.data())
def test_a_reply_is_whole_or_refused(data: st.DataObject):
    whole = pack_reply(3, REPLY)
    damaged = data.draw(spoilt(whole))
    try:
        _, reply = unpack_reply(damaged)
    except DecodeError:
        return
    # A changed value may be a number; a missing one is noticed.
    if len(damaged) < len(whole) and "primary" in reply.outcomes:
        outcome = reply.outcomes["primary"]
        assert isinstance(outcome, Failed) or len(outcome.busy) == len(PERIODS)


@pytest.mark.parametrize("lost", range(1, 64))
def test_periods_that_are_lost_on_the_way_are_no_free_time(lost):
    with pytest.raises(DecodeError):
        unpack_body(pack_body(REPLY)[:-lost])


@given(st.data())
def test_a_job_is_whole_or_refused(data: st.DataObject):
    damaged = data.draw(spoilt(pack_job(3, data.draw(st.sampled_from(JOBS)))))
    try:
        (packed,) = unpack_jobs(damaged)
    except DecodeError:
        return
    assert isinstance(packed.number, int)


@given(st.data())
def test_a_bucket_that_is_none_counts_as_not_read(data: st.DataObject):
    """A changed number is not noticed: Redis is trusted."""
    redis = fakeredis.FakeRedis()
    cache = BusyCache(redis, FastRedis(redis), ttl_seconds=60, bucket=WEEK)
    name = f"busy:{CALENDAR.connection}:{CALENDAR.calendar}:0"
    bucket = HEAD.pack(FORMAT, 500) + HEAD.pack(1000, 2000) + HEAD.pack(5000, 9000)
    damaged = data.draw(st.binary(max_size=80) | st.integers(0, 47).map(lambda length: bucket[:length]))
    redis.set(name, damaged)
    known = cache.load([CALENDAR], 0, WEEK)
    aligned = len(damaged) >= HEAD.size and not len(damaged) % HEAD.size
    assert bool(known.missing) == (not aligned or HEAD.unpack_from(damaged)[0] != FORMAT)


@given(st.data())
def test_a_calendar_list_that_is_none_counts_as_not_read(data: st.DataObject):
    redis = fakeredis.FakeRedis()
    lists = CalendarLists(redis, 60)
    kept = CalendarList(5, (ListedCalendar("ada@example.com", True), ListedCalendar("team", False)))
    lists.store(redis.pipeline(), "c", kept)
    with redis.pipeline() as pipe:
        lists.store(pipe, "c", kept)
        pipe.execute()
    assert lists.load(["c"]) == {"c": kept}
    redis.set("calendars:c", data.draw(spoilt(redis.get("calendars:c"))))
    found = lists.load(["c"], newer_than=0)
    assert all(isinstance(each, CalendarList) for each in found.values())


CONSENT = PendingConsent(1, "google", ("calendar",), True, "https://a", True, None, "alm_1", None, "verifier")


@given(st.data())
def test_a_corrupted_one_time_secret_is_whole_or_lost(data: st.DataObject):
    redis = fakeredis.FakeRedis()
    states = OneTimeSecrets(redis, KEYRING, "oauth-state", PendingConsent, hashed=True)
    exchanges = OneTimeSecrets(redis, KEYRING, "oauth-code", PendingExchange)
    state = states.put(CONSENT)
    exchange = PendingExchange(CONSENT, "code")
    name = exchanges.put(exchange)
    for key in list(redis.scan_iter()):
        redis.set(key, data.draw(spoilt(redis.get(key))))
    assert states.take(state) in (None, CONSENT)
    assert exchanges.take(name) in (None, exchange)


def test_a_one_time_secret_of_another_version_is_lost():
    redis = fakeredis.FakeRedis()
    states = OneTimeSecrets(redis, KEYRING, "oauth-state", PendingConsent, hashed=True)
    state = states.put(CONSENT)
    (key,) = redis.scan_iter()
    redis.set(key, KEYRING.encrypt('{"user_id": "one"}', key.decode()))
    assert states.take(state) is None


@given(st.data())
def test_a_secret_opens_whole_or_not_at_all(data: st.DataObject):
    sealed = KEYRING.encrypt("token", "here")
    damaged = data.draw(spoilt(sealed))
    try:
        assert KEYRING.decrypt(damaged, "here") == "token"
    except Undecipherable:
        assert damaged != sealed


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_a_cursor_is_ours_or_refused(cursor: str):
    count("cursors tried")
    rows = [("a", 1), ("b", 2)]
    for read in (
        lambda: after({"cursor": cursor}),
        lambda: cut_by_sort_key({"cursor": cursor, "limit": 1}, rows, lambda row: row),
    ):
        try:
            read()
        except Invalid:
            continue
