"""Coherence of the cache: a request that begins after a write was answered never sees the state before it.

Hypothesis chooses the order of the steps of clients, readers, writers and notifications, against a real
Redis. Readers may be slow, fail, die or seem dead; writers may die; buckets, locks, results and marks of
writes expire; Redis is emptied; notifications are late, duplicated, out of order or lost.
"""

from __future__ import annotations

import secrets
import struct
import time
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from redis import Redis

from scheduling.intervals import Intervals
from store.cache.busy_cache import MARK_MARGIN_SECONDS, BusyCache, BusyRead, CalendarKey
from store.cache.cache_tags import Tags
from store.cache.fast_redis import FastRedis
from store.coordination import single_flight
from store.coordination.single_flight import (
    Ended,
    Locked,
    ReadLock,
    Recorded,
    SharedRead,
    SingleFlight,
    Waiting,
    Wanted,
    lock_key,
    result_key,
)

pytestmark = pytest.mark.slow

BUCKET = 1_000_000
FAILED = b"failed"
# Shorter than buckets are cached.
WRITE_SECONDS = 10

MISFORTUNES = ["refusal", "death", "locks", "results", "buckets", "restart"]

seen: Counter[str] = Counter()


@dataclass(eq=False)
class Client:
    """A request that began at ``began`` and must not get a state older than ``floor``.

    ``waits_for`` is the holder of the lock that it waits for.
    """

    name: str
    floor: int
    began: float
    newer_than: int | None
    waits_for: str = ""


@dataclass(eq=False)
class Reader:
    """A read in progress: the generation of its lock, and its state so far."""

    client: Client
    locked: str
    sent: int
    generation: bytes | None = None
    read_at: int = 0
    picture: int | None = None


class History(RuleBasedStateMachine):
    """One calendar. Its state is a number that every change increments."""

    def __init__(self, redis: Redis) -> None:
        super().__init__()
        self.redis = redis
        self.cache = BusyCache(redis, FastRedis(redis), ttl_seconds=60, watched_seconds=3600, bucket=BUCKET)
        self.key = CalendarKey(secrets.token_hex(6), "primary")
        self.tags = Tags((f"google:mailbox:{self.key.connection}",))
        self.clock = 1_800_000_000_000
        self.truth = 0
        # The oldest state that a request may see that begins now.
        self.answered = 0
        self.looked: list[Client] = []
        self.waiting: list[Client] = []
        self.readers: list[Reader] = []
        self.read = SharedRead(self.key.connection, f"read of {self.key.connection}")
        self.writes: list[tuple[int, str]] = []
        self.dead_writes: list[tuple[int, str]] = []
        self.notices: list[int] = []

    def teardown(self) -> None:
        self.redis.delete("busy", *self.redis.keys(f"*{self.key.connection}*"))

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def told(self, client: Client, picture: int, how: str) -> None:
        seen[how] += 1
        assert picture >= client.floor, f"{how}: state {picture}, although {client.floor} was answered"

    @invariant()
    def cached_state_is_current(self) -> None:
        """At any moment, a request that begins then may use the cached state."""
        known = self.cache.load([self.key], 0, BUCKET)
        assert known.missing or int(known.busy.starts[0]) >= self.answered

    @initialize(kept=st.booleans())
    def begin(self, kept: bool) -> None:
        """Failures are kept for the whole history, which is shorter than their lifetime, or not at all."""
        self.single_flight = SingleFlight(
            self.redis, failure_seconds=60.0 if kept else 0.0, keep_seconds=60.0
        )

    # Requests

    @rule(fresh=st.sampled_from([False, False, False, True]), at_once=st.booleans())
    def ask(self, fresh: bool, at_once: bool) -> None:
        """Look into the cache; a missing state is read at once, or some time later."""
        asked, began = self.now(), time.time() * 1000
        # A request for fresh data must see every earlier change, wherever it was made.
        floor = self.truth if fresh else self.answered
        client = Client(f"f{asked}:0", floor, began, asked if fresh else None)
        known = self.cache.load([self.key], 0, BUCKET, newer_than=client.newer_than)
        if not known.missing:
            self.told(client, int(known.busy.starts[0]), "from the cache")
        elif at_once:
            self._take(client)
        else:
            self.looked.append(client)

    @precondition(lambda self: self.looked)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        """Begin the read of a request that looked into the cache earlier."""
        client = self.looked.pop(data.draw(st.integers(0, len(self.looked) - 1)))
        self._take(client)

    def _take(self, client: Client) -> None:
        sent = self.now()
        terms = self.single_flight.terms(sent, client.began, client.newer_than)
        (found,) = self.single_flight.take([Wanted(self.read, client.name, client.waits_for)], terms)
        seen[type(found).__name__] += 1
        match found:
            case Recorded(body):
                self._reply(client, body, "recorded")
            case Locked(generation):
                self.readers.append(Reader(client, generation, sent))
            case Waiting(holder):
                client.waits_for = holder
                self.waiting.append(client)

    @precondition(lambda self: self.waiting)
    @rule()
    def look_again(self) -> None:
        """Jobs that wait for the read of another look at its lock and its result again."""
        waiting, self.waiting = self.waiting, []
        for client in waiting:
            self._take(client)

    def _reply(self, client: Client, body: bytes, how: str) -> None:
        if body != FAILED:
            self.told(client, struct.unpack("<q", body)[0], how)

    # Readers

    def _reader(self, data: st.DataObject) -> Reader:
        return self.readers[data.draw(st.integers(0, len(self.readers) - 1))]

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), steps=st.integers(1, 3))
    def go_on(self, data: st.DataObject, steps: int) -> None:
        """The next steps of a read: its beginning, the provider's answer, its end."""
        reader = self._reader(data)
        for _ in range(steps):
            if reader in self.readers:
                self._step(reader)

    def _step(self, reader: Reader) -> None:
        if reader.generation is None:
            reader.generation = self.cache.begin_reads([self.key.connection], {self.key: self.tags})[
                self.key.connection
            ]
            self.single_flight.renew([ReadLock(self.read, reader.client.name)])
            reader.read_at = self.now()
        elif reader.picture is None:
            reader.picture = self.truth
        else:
            self._finish(reader, struct.pack("<q", reader.picture), failed=False)

    def _finish(self, reader: Reader, body: bytes, *, failed: bool) -> None:
        self.readers.remove(reader)
        with self.redis.pipeline(transaction=False) as pipe:
            if not failed:
                busy = Intervals.of([(reader.picture, reader.picture + 1)])
                read = BusyRead(self.key, busy, 0, BUCKET, reader.read_at, reader.generation)
                self.cache.store(pipe, [read])
            name, lifetime = reader.client.name, 5_000 if failed else 60_000
            lock = ReadLock(self.read, name)
            ended = Ended(lock, reader.locked, reader.sent, body, failure_counts=failed, lifetime=lifetime)
            self.single_flight.end(pipe, [ended])
            pipe.execute()
        self._reply(reader.client, body, "read")

    @rule(data=st.data(), what=st.sampled_from(MISFORTUNES))
    def misfortune(self, data: st.DataObject, what: str) -> None:
        """A failure, or an expiry."""
        if what == "refusal" and self.readers:
            self._finish(self._reader(data), FAILED, failed=True)
        elif what == "death" and self.readers:
            self.readers.remove(self._reader(data))
        elif what == "locks":
            # Of dead readers, and of readers that were only paused for too long.
            self.redis.delete(lock_key(self.read))
        elif what == "results":
            self.redis.delete(result_key(self.read))
        elif what == "buckets":
            self.redis.delete(f"busy:{self.key.connection}:primary:0")
        elif what == "restart" and data.draw(st.booleans()):
            # Redis comes back without what it had.
            self.teardown()

    # Changes

    @rule(elsewhere=st.booleans(), lost=st.booleans())
    def change(self, elsewhere: bool, lost: bool) -> None:
        """Our write reaches the provider, or another client's write, of which we are notified or not."""
        mark = "" if elsewhere else self.cache.begin_write(self.tags, self.key.connection, WRITE_SECONDS)
        self.truth += 1
        if not elsewhere:
            self.writes.append((self.truth, mark))
        elif not lost:
            self.notices.append(self.truth)

    @precondition(lambda self: self.writes)
    @rule(data=st.data())
    def answer_the_write(self, data: st.DataObject) -> None:
        """The cache is invalidated, then the write is answered."""
        written, mark = self.writes.pop(data.draw(st.integers(0, len(self.writes) - 1)))
        self.cache.invalidate_tags(self.tags, [self.key.connection])
        self.cache.end_write(self.tags, mark)
        self.answered = max(self.answered, written)

    @rule(data=st.data())
    def write_and_die(self, data: st.DataObject) -> None:
        """The provider has our write, and nothing invalidates the cache."""
        mark = self.cache.begin_write(self.tags, self.key.connection, WRITE_SECONDS)
        self.truth += 1
        self.dead_writes.append((self.truth, mark))
        if data.draw(st.booleans()):
            self.outlive_the_mark()

    @precondition(lambda self: self.dead_writes)
    @rule()
    def outlive_the_mark(self) -> None:
        """The mark of a killed writer expires, and what is cached no longer than that."""
        bucket = f"busy:{self.key.connection}:primary:0"
        lifetime = (WRITE_SECONDS + MARK_MARGIN_SECONDS) * 1000
        cached = self.redis.pttl(bucket)
        if 0 < cached <= lifetime:
            self.redis.delete(bucket)
        written, mark = self.dead_writes.pop(0)
        self.cache.end_write(self.tags, mark)
        self.answered = max(self.answered, written)
        seen["outlived"] += cached > 0

    @rule(begins=st.booleans())
    def watch(self, begins: bool) -> None:
        """The provider begins to tell us of changes, or is found to have stopped."""
        if begins:
            self.cache.watch(self.key, "channel", 3600)
        else:
            self.cache.invalidate_calendar(self.key, unwatch="channel")

    @precondition(lambda self: self.notices)
    @rule(data=st.data(), again=st.booleans())
    def be_notified(self, data: st.DataObject, again: bool) -> None:
        """A notification arrives, perhaps not for the last time."""
        place = data.draw(st.integers(0, len(self.notices) - 1))
        changed = self.notices[place] if again else self.notices.pop(place)
        self.cache.invalidate_calendar(self.key)
        self.answered = max(self.answered, changed)


@pytest.mark.parametrize(
    "histories", [100, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(3000)])]
)
def test_no_read_returns_data_older_than_an_answered_write(stores, histories, monkeypatch):
    # The time that a history takes must not decide what happens in it.
    monkeypatch.setattr(single_flight, "LEASE", 60_000)
    seen.clear()
    run_state_machine_as_test(
        lambda: History(stores.redis),
        settings=settings(
            max_examples=histories,
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    # The histories went everywhere, few of them not to every corner.
    ways = {"read", "Locked", "Waiting"}
    corners = {"from the cache", "outlived", "recorded", "Recorded"} if histories > 1_000 else set()
    assert ways | corners <= set(seen), seen
