"""Audits of watched calendars confirm, find changes, and leave some calendars alone."""

from __future__ import annotations

import logging
import time

import pytest

from providers.base import Failed
from providers.errors import Reason
from scheduling.intervals import Intervals
from store.cache.busy_cache import BusyRead, CalendarKey
from store.cache.calendar_usage import AskedCalendars
from store.coordination.provider_limits import note_rejection, rejection_key
from store.sql.queries import connection_rows
from tests.workers.upkeep.watching import HOUR, NINE, PROVIDERS, READ, rows, run
from workers.execution import identity
from workers.runtime import Runtime

# Milliseconds since the read of cached periods that are due for an audit, and of others.
DUE, YOUNG = 500_000, 300_000

MEETING = (NINE, NINE + HOUR)


def cache(
    runtime: Runtime, key: CalendarKey, *periods: tuple[int, int], age: int = DUE, asked: bool = True
) -> int:
    """Cache the week of tomorrow, as it was read some time ago, and have a request use it; returns when."""
    busy = runtime.stores.busy
    start, end = busy.hull(*MEETING)
    read_at = time.time_ns() // 1_000_000 - age
    noted = busy.begin_reads([key.connection], {})[key.connection]
    read = BusyRead(key, Intervals.of(periods), start, end, read_at=read_at, generation=noted)
    with runtime.stores.redis.pipeline(transaction=False) as pipe:
        busy.store(pipe, [read])
        pipe.execute()
    if asked:
        asked_calendars = AskedCalendars(runtime.stores.redis, ttl_seconds=60, max_age_seconds=600)
        asked_calendars.note([key], busy.load([key], *MEETING))
        asked_calendars.flush()
    return read_at


def read_at(runtime: Runtime, key: CalendarKey) -> int | None:
    """When the cached week of tomorrow was read."""
    known = runtime.stores.busy.load([key], *MEETING)
    return None if known.missing else int(known.read_at[0])


def reads(sandbox, provider: str) -> int:
    return sandbox.requests().by_operation.get(READ[provider], 0)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_unchanged_calendar_is_confirmed_by_one_read(reached, watched, sandbox, provider):
    key = watched(provider)
    (row,) = rows(reached, key)
    before = cache(reached, key, MEETING)
    for _ in range(3):
        run(reached)

    assert reads(sandbox, provider) == 1
    assert read_at(reached, key) > before + DUE - 1000
    assert reached.stores.busy.watched([key]) == [row.id]


def test_a_successful_audit_ends_the_memory_of_a_rejected_token(reached, watched):
    key = watched("google")
    note_rejection(reached.stores.redis, key.connection)
    cache(reached, key, MEETING)
    run(reached)
    assert not reached.stores.redis.exists(rejection_key(key.connection))


@pytest.mark.parametrize(
    ("provider", "before"),
    [
        ("google", ()),
        ("microsoft", ()),
        ("google", ((NINE, NINE + 2 * HOUR),)),
        ("google", ((NINE - HOUR, NINE + HOUR),)),
        ("google", (MEETING, (NINE + 3 * HOUR, NINE + 4 * HOUR))),
    ],
    ids=["new at google", "new at microsoft", "ends earlier", "starts later", "one less"],
)
def test_a_change_without_notification_is_found(reached, watched, sandbox, provider, before, caplog):
    key = watched(provider)
    cache(reached, key, *before)
    with caplog.at_level(logging.WARNING):
        run(reached)

    assert "provider sent no notification for a change" in caplog.text
    assert read_at(reached, key) is None
    assert reached.stores.busy.watched([key]) == [None]
    assert rows(reached, key) == sandbox.channels() == []
    # The next read opens another.
    assert reached.stores.channel_usage.claim([key], 60) == [key]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_calendar_that_no_request_has_used_is_not_read(reached, watched, sandbox, provider):
    key = watched(provider)
    before = cache(reached, key, MEETING, asked=False)
    run(reached)

    assert sandbox.requests().total == 0
    assert read_at(reached, key) == before


def test_a_calendar_is_audited_again_only_after_another_use(reached, watched, sandbox):
    key = watched("google")
    cache(reached, key, MEETING)
    run(reached)

    for asked, expected in ((False, 0), (True, 1)):
        reached.stores.busy.invalidate_calendar(key)
        cache(reached, key, MEETING, asked=asked)
        sandbox.forget_requests()
        run(reached)
        assert reads(sandbox, "google") == expected


def test_periods_that_were_read_lately_are_not_read_again(reached, watched, sandbox):
    key = watched("google")
    cache(reached, key, MEETING, age=YOUNG)
    run(reached)
    assert sandbox.requests().total == 0


def test_nothing_is_read_of_a_calendar_of_which_nothing_is_cached(reached, watched, sandbox):
    watched("google")
    run(reached)
    assert sandbox.requests().total == 0


def test_a_notification_during_the_audit_is_no_lost_one(reached, watched, monkeypatch):
    key = watched("google")
    (row,) = rows(reached, key)
    cache(reached, key)
    busy = type(reached.provider("google").calendars).busy

    def read_and_hear(*args, **more):
        reached.stores.busy.invalidate_calendar(key)
        return busy(*args, **more)

    monkeypatch.setattr(type(reached.provider("google").calendars), "busy", read_and_hear)
    run(reached)
    assert reached.stores.busy.watched([key]) == [row.id]
    assert read_at(reached, key) is None


def test_what_an_audit_stores_is_invalidated_by_writes_through_other_connections(reached, watched, sandbox):
    key = watched("google")
    cache(reached, key, MEETING)
    run(reached)
    with reached.stores.database.reading() as session:
        row = connection_rows.sealed(session, [key.connection])[key.connection]
    (tags,) = identity.known_tags(row, [key.calendar]).values()
    assert read_at(reached, key) is not None

    reached.stores.busy.invalidate_tags(tags)

    assert read_at(reached, key) is None


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [500, 429])
def test_an_audit_that_cannot_read_just_now_changes_nothing(reached, watched, sandbox, provider, status):
    key = watched(provider)
    (row,) = rows(reached, key)
    before = cache(reached, key)
    sandbox.fault(operation=READ[provider], status=status)
    run(reached)
    assert reached.stores.busy.watched([key]) == [row.id]
    # It expires when it is too old.
    assert read_at(reached, key) == before
    assert 0 < reached.stores.redis.pttl(f"busy:{key.connection}:primary:{bucket(reached)}") <= 600_000 - DUE


def bucket(runtime: Runtime) -> int:
    return NINE // runtime.settings.busy_bucket


@pytest.mark.parametrize("reason", [Reason.NOT_FOUND, Reason.ACCESS_DENIED])
def test_a_calendar_that_is_out_of_reach_is_neither_cached_nor_watched(
    reached, watched, sandbox, monkeypatch, reason
):
    key = watched("google")
    cache(reached, key, MEETING)
    failed = {"primary": Failed(reason, "The calendar is not there")}
    monkeypatch.setattr(type(reached.provider("google").calendars), "busy", lambda *_, **__: failed)
    run(reached)
    assert read_at(reached, key) is None
    assert reached.stores.busy.watched([key]) == [None]
    assert rows(reached, key) == sandbox.channels() == []


def test_an_account_that_may_read_no_more_is_neither_cached_nor_watched(reached, watched, sandbox):
    key = watched("google")
    cache(reached, key, MEETING)
    sandbox.fault(operation=READ["google"], status=403)
    run(reached)
    assert read_at(reached, key) is None
    assert rows(reached, key) == []
