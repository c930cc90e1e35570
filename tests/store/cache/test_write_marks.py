"""Reads that overlap an event write are not cached, until its outcome is known or its deadline has passed."""

from __future__ import annotations

import time

import pytest

from scheduling.intervals import Intervals
from store.cache.busy_cache import MARK_MARGIN_SECONDS, UNCACHED, BusyRead, CalendarKey, mark_key
from store.cache.cache_tags import Tags

TAGS = pytest.mark.parametrize("kind", ["mailboxes", "calendars"])


@pytest.fixture
def key(unique) -> CalendarKey:
    return CalendarKey(unique("connection"), "primary")


@pytest.fixture
def tags(unique, kind) -> Tags:
    return Tags(**{kind: (unique(f"google:{kind}"),)})


@pytest.fixture
def generation(stores, key, tags):
    """The generation of a read of the calendar that begins now."""
    return lambda: stores.busy.begin_reads([key.connection], {key: tags})[key.connection]


@TAGS
def test_a_read_during_a_write_is_not_cached(stores, key, tags, generation):
    assert generation() != UNCACHED

    writes = [stores.busy.begin_write(tags, "another", 10) for _ in range(2)]

    assert generation() == UNCACHED
    stores.busy.end_write(tags, writes[0])
    # The other write is still under way.
    assert generation() == UNCACHED
    stores.busy.end_write(tags, writes[1])
    assert generation() != UNCACHED


def test_only_reads_of_a_calendar_that_is_written_to_are_not_cached(stores, unique):
    first, second = (CalendarKey(unique("connection"), "primary") for _ in range(2))
    tags = {each: Tags(calendars=(unique("google:calendar"),)) for each in (first, second)}
    stores.busy.begin_write(tags[second], "another", 10)

    found = stores.busy.begin_reads([first.connection, second.connection], tags)

    assert [found[each.connection] == UNCACHED for each in (first, second)] == [False, True]


@TAGS
def test_a_read_whose_tags_are_known_after_it_began_is_not_cached(stores, key, tags):
    """It has looked up its generation before."""
    before = stores.busy.begin_reads([key.connection], {})
    stores.busy.begin_write(tags, "another", 10)

    stores.busy.register_readers({key: tags})

    assert stores.busy.begin_reads([key.connection], {}) != before


@TAGS
def test_what_is_cached_at_the_begin_of_a_write_is_used_no_longer_than_its_mark(stores, key, tags, unique):
    """The worker may be killed before it knows the outcome."""
    other = CalendarKey(unique("connection"), "primary")
    for each, names in ((key, tags), (other, Tags(mailboxes=(unique("google:other"),)))):
        generation = stores.busy.begin_reads([each.connection], {each: names})[each.connection]
        read = BusyRead(
            each,
            Intervals.of([(0, 1)]),
            0,
            stores.settings.busy_bucket,
            time.time_ns() // 1_000_000,
            generation,
        )
        with stores.redis.pipeline(transaction=False) as pipe:
            stores.busy.store(pipe, [read])
            pipe.execute()
    lives = {each: stores.redis.pttl(bucket(each)) / 1000 for each in (key, other)}

    stores.busy.begin_write(tags, "another", 0.0)

    assert 0 < stores.redis.pttl(bucket(key)) / 1000 <= MARK_MARGIN_SECONDS < lives[key]
    assert lives[other] - 2 < stores.redis.pttl(bucket(other)) / 1000 <= lives[other]


def bucket(key: CalendarKey) -> str:
    return f"busy:{key.connection}:{key.calendar}:0"


@TAGS
@pytest.mark.parametrize(("seconds", "left"), [(10.0, 10.0), (-3.0, 0.0)])
def test_a_mark_outlasts_the_deadline_of_its_write(stores, tags, seconds, left):
    """The provider may execute the write late."""
    stores.busy.begin_write(tags, "another", seconds)

    (name,) = (*tags.mailboxes, *tags.calendars)
    expires_in = stores.redis.pttl(mark_key(name)) / 1000
    assert left + MARK_MARGIN_SECONDS - 2 < expires_in <= left + MARK_MARGIN_SECONDS
