"""The scheduled maintenance of channels, step by step."""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from scheduling.intervals import Intervals
from store.cache.busy_cache import BusyRead, CalendarKey
from store.coordination.locks import hold
from store.sql.models import Channel, now
from store.sql.queries import channels
from tests.workers.upkeep.watching import HOUR, NINE, PROVIDERS, confirm, rows, run
from workers.process import CHANNELS_SECONDS
from workers.runtime import Runtime
from workers.upkeep import channel_maintenance as rounds
from workers.upkeep import channel_opening, watches

RENEWAL = {"google": "google.events.watch", "microsoft": "microsoft.subscriptions.update"}


def hurry(runtime: Runtime, key: CalendarKey) -> None:
    for row in rows(runtime, key):
        with runtime.stores.database.writing() as session:
            channels.make_due(session, row.id)


def age(runtime: Runtime, key: CalendarKey, **changed: datetime) -> None:
    """Change the timestamps of a calendar's channels."""
    with runtime.stores.database.writing() as session:
        session.execute(update(Channel).where(Channel.connection_id == key.connection).values(**changed))


def cache(runtime: Runtime, key: CalendarKey, *periods: tuple[int, int]) -> None:
    """Cache the week of tomorrow, as it was just read."""
    busy = runtime.stores.busy
    start, end = busy.hull(NINE, NINE + HOUR)
    noted = busy.begin_reads([key.connection], {})[key.connection]
    read_at = time.time_ns() // 1_000_000
    with runtime.stores.redis.pipeline(transaction=False) as pipe:
        busy.store(
            pipe, [BusyRead(key, Intervals.of(periods), start, end, read_at=read_at, generation=noted)]
        )
        pipe.execute()


def is_kept(runtime: Runtime, key: CalendarKey) -> bool:
    return not runtime.stores.busy.load([key], NINE, NINE + HOUR).missing


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nothing_is_done_for_a_channel_that_is_well(reached, watched, sandbox, provider):
    key = watched(provider)
    run(reached)
    assert sandbox.requests().total == 0
    assert len(rows(reached, key)) == 1


def test_google_s_is_replaced_without_a_gap(reached, watched, sandbox):
    key = watched("google")
    (old,) = rows(reached, key)
    hurry(reached, key)
    run(reached)
    # The new channel is not confirmed yet.
    assert reached.stores.busy.watched([key]) == [old.id]
    _, new = rows(reached, key)
    with reached.stores.database.writing() as session:
        channels.make_due(session, old.id)
    run(reached)
    assert len(rows(reached, key)) == len(sandbox.channels()) == 2

    confirm(reached, key)
    with reached.stores.database.writing() as session:
        channels.make_due(session, old.id)
    run(reached)

    assert [row.id for row in rows(reached, key)] == [new.id]
    assert [each["id"] for each in sandbox.channels()] == [new.id]
    assert reached.stores.busy.watched([key]) == [new.id]
    counted = sandbox.requests().by_operation
    assert counted["google.events.watch"] == counted["google.channels.stop"] == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_channel_of_an_unused_calendar_expires(reached, watched, sandbox, provider):
    key = watched(provider, used=False)
    hurry(reached, key)
    run(reached)
    run(reached)
    assert sandbox.requests().total == 0

    age(reached, key, expires_at=now())
    run(reached)
    assert rows(reached, key) == []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_renewal_that_fails_is_retried_and_the_watch_stays(reached, watched, sandbox, provider):
    key = watched(provider)
    (old,) = rows(reached, key)
    sandbox.fault(operation=RENEWAL[provider], status=503)
    hurry(reached, key)
    run(reached)
    assert reached.stores.busy.watched([key]) == [old.id]
    assert [row.id for row in rows(reached, key)] == [old.id]

    sandbox.clear_faults()
    hurry(reached, key)
    before = sandbox.requests().by_operation[RENEWAL[provider]]
    run(reached)
    assert sandbox.requests().by_operation[RENEWAL[provider]] == before + 1


def test_subscription_unknown_at_renewal_is_replaced(reached, watched, sandbox):
    key = watched("microsoft")
    (old,) = rows(reached, key)
    cache(reached, key, (NINE, NINE + HOUR))
    sandbox.drop_channels()
    hurry(reached, key)
    run(reached)

    (new,) = rows(reached, key)
    assert new.id != old.id
    assert reached.stores.busy.watched([key]) == [new.id]
    assert not is_kept(reached, key)


def test_a_channel_without_any_notification_is_removed(reached, watched, sandbox, caplog):
    key = watched("google", confirmed=False)
    age(reached, key, created_at=now() - channels.UNCONFIRMED_LIFETIME - timedelta(seconds=1))
    with caplog.at_level(logging.WARNING):
        run(reached)

    assert "ALMANAC_PUBLIC_URL" in caplog.text
    assert rows(reached, key) == sandbox.channels() == []
    # The next attempt is in an hour. The channel itself would have lived for days.
    assert reached.stores.channel_usage.claim([key], 60) == []
    (claim,) = reached.stores.redis.keys(f"watch-claim:{key.connection}:*")
    assert 3590 < reached.stores.redis.ttl(claim) <= 3600


def test_channel_confirmed_during_its_removal_leaves_no_watch(reached, watched, monkeypatch):
    key = watched("google", confirmed=False)
    age(reached, key, created_at=now() - channels.UNCONFIRMED_LIFETIME - timedelta(seconds=1))
    close = rounds.close_channel

    def close_late(runtime: Runtime, row: Channel) -> None:
        confirm(reached, key)
        assert reached.stores.busy.watched([key]) == [row.id]
        close(runtime, row)

    monkeypatch.setattr(rounds, "close_channel", close_late)
    run(reached)
    assert rows(reached, key) == []
    assert reached.stores.busy.watched([key]) == [None]


def test_the_watch_of_a_channel_that_is_replaced_is_its_heir_s(reached, watched):
    key = watched("google")
    (old,) = rows(reached, key)
    assert channel_opening.open_one(reached, key)
    confirm(reached, key)
    watches.watch(reached.stores, old)
    with reached.stores.database.writing() as session:
        channels.make_due(session, old.id)
    run(reached)
    (successor,) = rows(reached, key)
    assert reached.stores.busy.watched([key]) == [successor.id]

    watches.remove_and_allow_reopening(reached.stores, key, successor.id)
    assert reached.stores.busy.watched([key]) == [None]


@pytest.mark.parametrize("older_first", [True, False])
def test_of_two_channels_that_watch_a_calendar_the_newer_is_restored(reached, watched, older_first):
    key = watched("google")
    assert channel_opening.open_one(reached, key)
    confirm(reached, key)
    first, second = sorted(rows(reached, key), key=lambda row: row.id)
    older, newer = (first, second) if older_first else (second, first)
    with reached.stores.database.writing() as session:
        for row, age in ((older, timedelta(hours=1)), (newer, timedelta(0))):
            session.get_one(Channel, row.id).created_at = now() - age
    reached.stores.redis.flushdb()
    run(reached)
    assert reached.stores.busy.watched([key]) == [newer.id]


def test_two_rounds_do_not_overlap(reached, watched, sandbox):
    hurry(reached, watched("microsoft"))
    with hold(reached.stores.redis, "round:channels", deadline=time.monotonic() + 60):
        run(reached)
    assert sandbox.requests().total == 0


def test_the_watch_of_a_channel_outlasts_several_rounds():
    # A renewal is due in the last quarter of the channel's life; the watch ends in the last eighth.
    shortest = timedelta(minutes=45)
    assert shortest * (channels.RENEWED_FOR_THE_LAST - channels.MARGIN_OF_LIFE) > timedelta(
        seconds=CHANNELS_SECONDS
    )
