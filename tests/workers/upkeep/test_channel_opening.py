"""Channels are opened once for calendars in use, recorded, not retried after a refusal, and closed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from threading import Barrier, BoundedSemaphore, Event

import pytest
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy import select

from providers import registry
from providers.base import OpenChannel
from providers.errors import RateLimited
from store.cache.busy_cache import CalendarKey
from store.coordination.provider_limits import Access
from store.sql.models import Channel
from store.sql.queries import channels, connections
from workers import tasks
from workers.celery_app import Almanac
from workers.runtime import Runtime
from workers.upkeep import channel_opening, watches

PROVIDERS = ("google", "microsoft")
OPENING = {"google": "google.events.watch", "microsoft": "microsoft.subscriptions.create"}


@pytest.fixture
def calendar(reached, sandbox, connected, unique):
    """The main calendar of a connected account."""

    def make(provider: str, **more) -> CalendarKey:
        account = sandbox.account(provider, f"{unique('ada')}@example.com", **more)
        return CalendarKey(connected(account), "primary")

    return make


@pytest.fixture
def rows(reached):
    """The channels in the database."""

    def find(key: CalendarKey) -> list[Channel]:
        with reached.stores.database.reading() as session:
            query = select(Channel).where(Channel.connection_id == key.connection)
            return list(session.scalars(query.order_by(Channel.created_at)))

    return find


class Sent:
    """Replaces Celery where no task must run."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.calendars: list[CalendarKey] = []
        self.down = False

    def send_task(self, name: str, *, kwargs, kwargsrepr) -> None:
        if self.down:
            raise BrokerError
        assert name == "upkeep.open_channels"
        # Flower shows the arguments, and the id of a calendar may be a person's address.
        assert kwargsrepr == f"{{'calendars': {len(kwargs['calendars'])}}}"
        self.calendars += kwargs["calendars"]


@pytest.fixture
def celery(reached) -> Almanac:
    return Sent(reached)


def test_channel_of_a_read_calendar_is_requested_once(reached, celery, calendar):
    key = calendar("google")
    for _ in range(3):
        tasks.note_use(celery.runtime, celery.send_task, [("google", key)])

    assert celery.calendars == [key]
    assert reached.stores.channel_usage.used([key]) == [True]


def test_channel_of_a_watched_calendar_is_not_requested(reached, celery, calendar):
    key = calendar("google")
    reached.stores.busy.watch(key, "channel", 60)
    tasks.note_use(celery.runtime, celery.send_task, [("google", key)])

    assert celery.calendars == []
    assert reached.stores.channel_usage.used([key]) == [True]


@pytest.mark.parametrize(
    "changed", [{"public_url": ""}, {"push_ttl_seconds": 0.0}, {"busy_ttl_seconds": 0.0}]
)
def test_nothing_is_noted_while_push_is_off(reached, celery, calendar, changed):
    key = calendar("google")
    reached.settings = replace(reached.settings, **changed)
    tasks.note_use(celery.runtime, celery.send_task, [("google", key)])

    assert celery.calendars == []
    assert reached.stores.channel_usage.used([key]) == [False]


def test_many_calendars_go_in_several_tasks(celery, calendar, monkeypatch):
    monkeypatch.setattr(tasks, "CALENDARS_PER_TASK", 2)
    keys = [CalendarKey(calendar("google").connection, f"c{n}") for n in range(5)]
    tasks.note_use(celery.runtime, celery.send_task, [("google", key) for key in keys])
    assert celery.calendars == keys


def test_a_broker_that_is_down_does_not_fail_the_reads(celery, calendar):
    celery.down = True
    tasks.note_use(celery.runtime, celery.send_task, [("google", calendar("google"))])
    assert celery.calendars == []


def test_microsoft_watches_when_its_channel_is_open(reached, calendar, rows, receiver):
    key = calendar("microsoft")
    assert channel_opening.open_one(reached, key)

    (row,) = rows(key)
    assert reached.stores.busy.watched([key]) == [row.id]
    assert len(receiver.handshakes) == 1


@pytest.mark.parametrize("first", ["answer", "word"])
def test_google_watches_when_it_has_answered_and_reached_us(reached, calendar, rows, monkeypatch, first):
    key = calendar("google")
    stores = reached.stores
    opening = channel_opening._open

    def open_and_hear(runtime, credentials, key, wanted) -> OpenChannel:
        opened = opening(runtime, credentials, key, wanted)
        if first == "word":
            with stores.database.writing() as session:
                watches.watch(stores, channels.confirmed(session, wanted.id))
            assert stores.busy.watched([key]) == [None]
        return opened

    monkeypatch.setattr(channel_opening, "_open", open_and_hear)
    assert channel_opening.open_one(reached, key)
    (row,) = rows(key)
    if first == "answer":
        assert stores.busy.watched([key]) == [None]
        with stores.database.writing() as session:
            watches.watch(stores, channels.confirmed(session, row.id))
    assert stores.busy.watched([key]) == [row.id]


def test_a_watch_that_is_set_after_its_channel_was_forgotten_ends(reached, calendar, rows):
    key = calendar("microsoft")
    assert channel_opening.open_one(reached, key)
    (row,) = rows(key)
    watches.remove_channel(reached.stores, key, row.id)
    assert reached.stores.busy.watched([key]) == [None]

    watches.watch(reached.stores, row)
    assert reached.stores.busy.watched([key]) == [None]


def test_a_channel_is_not_forgotten_while_redis_is_down(reached, calendar, rows, monkeypatch):
    key = calendar("microsoft")
    assert channel_opening.open_one(reached, key)
    (row,) = rows(key)

    def down(*_: object, **__: object) -> None:
        raise RedisConnectionError

    monkeypatch.setattr(reached.stores.busy, "invalidate_calendar", down)
    with pytest.raises(RedisConnectionError):
        watches.remove_channel(reached.stores, key, row.id)
    assert [each.id for each in rows(key)] == [row.id]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "held"), [(403, channel_opening.REFUSED_SECONDS), (503, channel_opening.FAILED_SECONDS)]
)
def test_a_failure_leaves_nothing_and_holds_the_calendar(
    reached, sandbox, calendar, rows, provider, status, held
):
    key = calendar(provider)
    sandbox.fault(operation=OPENING[provider], status=status)
    assert not channel_opening.open_one(reached, key)

    assert rows(key) == []
    left = reached.stores.redis.pttl(f"watch-claim:{key.connection}:primary") / 1000
    assert held - 30 < left <= held


def test_a_google_channel_without_confirmation_is_not_relied_on(reached, calendar, rows, receiver):
    receiver.statuses = [404] * 10
    key = calendar("google")
    assert channel_opening.open_one(reached, key)
    receiver.wait(1)

    assert reached.stores.busy.watched([key]) == [None]
    # No second channel is requested while this one exists.
    assert reached.stores.channel_usage.claim([key], 60) == []


def test_channel_of_a_deleted_connection_is_closed(reached, sandbox, calendar, rows, monkeypatch):
    key = calendar("microsoft")
    opening = channel_opening._open

    def open_and_delete(runtime, credentials, key, wanted) -> OpenChannel:
        opened = opening(runtime, credentials, key, wanted)
        with runtime.stores.database.writing() as session:
            connections.remove(session, [key.connection])
        return opened

    monkeypatch.setattr(channel_opening, "_open", open_and_delete)
    assert not channel_opening.open_one(reached, key)

    assert sandbox.channels() == []
    assert rows(key) == []
    assert reached.stores.busy.watched([key]) == [None]


def test_no_channel_is_opened_for_a_connection_that_is_gone_or_dead(reached, sandbox, calendar):
    key = calendar("google")
    with reached.stores.database.writing() as session:
        connections.mark_dead(session, key.connection, "the grant has ended")
    assert not channel_opening.open_one(reached, key)
    assert not channel_opening.open_one(reached, CalendarKey("gone", "primary"))
    assert sandbox.requests().total == 0


def test_a_round_opens_those_of_many(reached, calendar):
    keys = [calendar(provider) for provider in PROVIDERS for _ in range(3)]
    assert channel_opening.open_channels(reached, keys, deadline=channel_opening.time.monotonic() + 60) == 6


def test_all_rounds_together_hold_no_more_places_than_are_upkeep_s(reached, calendar, monkeypatch):
    keys = [calendar("google") for _ in range(4)]
    reached.upkeep = BoundedSemaphore(2)
    stores, hanging, go_on = reached.stores, Barrier(3), Event()

    def hang(*_: object) -> bool:
        hanging.wait(30)
        return go_on.wait(30)

    monkeypatch.setattr(channel_opening, "open_one", hang)
    assert stores.channel_usage.claim(keys, 600) == keys

    def opening(*wanted: CalendarKey) -> int:
        return channel_opening.open_channels(reached, wanted, deadline=channel_opening.time.monotonic() + 60)

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(opening, *keys[:2])
        hanging.wait(30)
        try:
            # No free thread: skipped at once, for the next read to retry.
            assert opening(*keys[2:]) == 0
            assert stores.channel_usage.claim(keys, 600) == keys[2:]
        finally:
            go_on.set()
        assert first.result(30) == 2
    assert [reached.upkeep.acquire(blocking=False) for _ in range(3)] == [True, True, False]


def test_upkeep_does_not_wait_long_for_a_permit(reached, calendar):
    key = calendar("microsoft")
    credentials = channel_opening.credentials_of(reached, key.connection)
    far = channel_opening.time.monotonic() + 600
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(channel_opening.acquire(reached, credentials, 1, Access.WRITES, deadline=far))
        with (
            pytest.raises(RateLimited),
            channel_opening.acquire(reached, credentials, 1, Access.WRITES, deadline=far),
        ):
            pytest.fail("five calls at once to a mailbox")
    assert channel_opening.time.monotonic() < far - 300


def test_an_opened_channel_is_recorded_although_its_permit_cannot_be_released(
    reached, calendar, rows, monkeypatch, caplog
):
    """Otherwise nothing could close it, and a second one would be opened."""
    key = calendar("microsoft")
    monkeypatch.setattr(
        reached.stores.provider_limits,
        "release",
        lambda pipe, _, **_probe: pipe.execute_command("NO-COMMAND"),
    )
    assert channel_opening.open_one(reached, key)
    assert [row.provider_id is not None for row in rows(key)] == [True]
    assert "permit not released, it expires by itself: ResponseError" in caplog.text


def test_real_providers_get_only_https_addresses(reached):
    real = replace(
        reached.settings.providers,
        google_api_url="https://www.googleapis.com/calendar/v3",
        microsoft_graph_url="https://graph.microsoft.com/v1.0",
    )
    for url, reachable in (("http://127.0.0.1:8080", False), ("https://calendar.example.com", True)):
        settings = replace(reached.settings, public_url=url, providers=real)
        for provider in registry.names():
            address = f"{url}/v1/push/{provider}" if reachable else None
            assert settings.push_address(provider) == address


@pytest.mark.parametrize("provider", PROVIDERS)
def test_channels_wait_for_their_turn_among_the_reads(reached, sandbox, calendar, rows, provider):
    limits = {"google_per_minute_and_user": 2, "microsoft_per_mailbox": 2}
    limited = replace(reached.settings.providers, **limits)
    reached.stores.settings = replace(reached.settings, providers=limited)
    key = calendar(provider)
    assert channel_opening.open_one(reached, key)
    # Half of the limit is available at once, the other half within a minute.
    assert not channel_opening.open_one(reached, key)

    assert sandbox.requests().by_operation[OPENING[provider]] == 1
    assert len(rows(key)) == 1


def test_a_turn_that_is_over_gives_its_lease_back(reached, calendar):
    key = calendar("microsoft")
    for _ in range(6):
        # A mailbox has four leases.
        assert channel_opening.open_one(reached, key)
