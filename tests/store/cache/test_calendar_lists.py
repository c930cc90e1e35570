"""How long lists of calendars are cached, and which of them a request may use."""

from __future__ import annotations

import time

import fakeredis
import pytest

from store.cache.calendar_lists import CalendarList, CalendarLists, ListedCalendar

CALENDARS = (ListedCalendar("ada@example.com", True), ListedCalendar("team", False, "bob@example.com"))
SECOND = 1000


@pytest.fixture
def redis():
    return fakeredis.FakeRedis()


@pytest.fixture
def store(redis):
    """Store a list that was read some seconds ago."""

    def store(lists: CalendarLists, age: int = 0, connection: str = "c") -> CalendarList:
        found = CalendarList(time.time_ns() // 1_000_000 - age * SECOND, CALENDARS)
        with redis.pipeline() as pipe:
            lists.store(pipe, connection, found)
            pipe.execute()
        return found

    return store


@pytest.mark.parametrize(
    ("age", "expected"), [(0, 70), (50, 50), (99, 1), (100, None)], ids=["new", "old", "older", "too old"]
)
def test_a_list_is_kept_while_it_is_stale_and_never_beyond_the_highest_age(redis, store, age, expected):
    lists = CalendarLists(redis, 60, stale_seconds=10, max_age_seconds=100)

    found = store(lists, age)

    if expected is None:
        assert lists.load(["c"]) == {}
    else:
        assert lists.load(["c", "another"]) == {"c": found}
        assert expected - 2 <= redis.pttl("calendars:c") / SECOND <= expected


def test_without_a_cache_nothing_is_kept(redis, store):
    lists = CalendarLists(redis, 0, stale_seconds=10)
    store(lists)
    assert lists.load(["c"]) == {}
    assert redis.keys() == []


def test_a_list_is_used_if_it_is_as_new_as_required(redis, store):
    lists = CalendarLists(redis, 60)
    found = store(lists, 5)

    assert lists.load(["c"], newer_than=found.read_at) == {"c": found}
    assert lists.load(["c"], newer_than=found.read_at + 1) == {}
    assert lists.fresh(found, found.read_at + 60 * SECOND)
    assert not lists.fresh(found, found.read_at + 60 * SECOND + 1)


def test_owners_stay_when_the_list_is_gone_and_end_with_the_connection(redis, store):
    lists = CalendarLists(redis, 60)
    store(lists)
    lists.store_owners("c", {"team": "bob@example.com", "own": ""})
    redis.delete("calendars:c")

    asked = ["team", "own", "unknown"]
    assert lists.owners("c", asked) == {"team": "bob@example.com", "own": ""}
    assert lists.owners("another", asked) == {}

    lists.forget(["c"])
    assert lists.owners("c", asked) == {}
