"""The cache under every order of events: nobody who asks after a write was answered sees what was before it.

Clients, readers, writers and providers' notifications take their steps in whatever order Hypothesis finds,
against a real Redis. Readers are slow, fail, die, or are only thought dead; buckets and leases end; Redis is
emptied; notifications come late, twice, out of order, or never.
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
from store.cache.busy_cache import BusyCache, CalendarKey
from store.cache.fast_redis import FastRedis
from store.coordination.single_flight import ClaimState, Completion, ReadKey, SingleFlight

BUCKET = 1_000_000
FAILED = b"failed"
NUMBER = 3

seen: Counter[str] = Counter()


@dataclass(eq=False)
class Client:
    """Who asks at ``began``, and must not be told of a picture before ``floor``."""

    waiter: str
    floor: int
    began: float
    newer_than: int | None


@dataclass(eq=False)
class Reader:
    """A read under way: its flight, if any, and what it knows so far."""

    client: Client
    flight: bytes
    generation: bytes | None = None
    read_at: int = 0
    picture: int | None = None


class History(RuleBasedStateMachine):
    """One calendar. Its picture is a number that every change makes greater by one."""

    def __init__(self, redis: Redis) -> None:
        super().__init__()
        self.redis = redis
        self.cache = BusyCache(redis, FastRedis(redis), ttl_seconds=60, watched_seconds=3600, bucket=BUCKET)
        self.key = CalendarKey(secrets.token_hex(6), "primary")
        self.clock = 1_800_000_000_000
        self.truth = 0
        # What everybody who asks from now on must see.
        self.answered = 0
        self.looked: list[Client] = []
        self.waiting: list[Client] = []
        self.readers: list[Reader] = []
        self.flown: set[bytes] = set()
        self.writes: list[int] = []
        self.notices: list[int] = []

    def teardown(self) -> None:
        self.redis.delete("busy", *self.redis.keys(f"*{self.key.connection}*"), *self.flown)

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def told(self, client: Client, picture: int, how: str) -> None:
        seen[how] += 1
        assert picture >= client.floor, f"{how}: the picture {picture}, although {client.floor} was answered"

    @invariant()
    def whoever_asked_now_would_see_it(self) -> None:
        """What the cache holds at any moment is good enough for somebody who begins then."""
        known = self.cache.load([self.key], 0, BUCKET)
        assert known.missing or int(known.busy.starts[0]) >= self.answered

    @initialize(kept=st.booleans())
    def begin(self, kept: bool) -> None:
        """Failures answer for all of this history, whose moments are too short to end them, or not at all."""
        self.single_flight = SingleFlight(
            self.redis, failure_seconds=60.0 if kept else 0.0, asking_seconds=60.0
        )

    # Requests

    @rule(fresh=st.sampled_from([False, False, False, True]), at_once=st.booleans())
    def ask(self, fresh: bool, at_once: bool) -> None:
        """Look into the cache; what is not there is wanted at once, or some time after."""
        asked, began = self.now(), time.time() * 1000
        waiter = f"replies:{self.key.connection}:{asked}"
        # Who wants it fresh is told of everything that happened before, whoever did it.
        floor = self.truth if fresh else self.answered
        client = Client(waiter, floor, began, asked if fresh else None)
        known = self.cache.load([self.key], 0, BUCKET, newer_than=client.newer_than)
        if not known.missing:
            self.told(client, int(known.busy.starts[0]), "from the cache")
        elif at_once:
            self._claim(client)
        else:
            self.looked.append(client)

    @precondition(lambda self: self.looked)
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """Want it read, after whatever happened since."""
        client = self.looked.pop(data.draw(st.integers(0, len(self.looked) - 1)))
        self._claim(client)

    def _claim(self, client: Client) -> None:
        ((turn, value),) = self.single_flight.claim(
            [ReadKey(self.key.connection, "read", NUMBER)],
            client.waiter,
            now=self.now(),
            began=client.began,
            newer_than=client.newer_than,
            lease=60,
        )
        seen[turn.name] += 1
        if turn is ClaimState.COMPLETED:
            self._reply(client, value, "landed")
            return
        if turn is not ClaimState.FOLLOWER:
            self.readers.append(Reader(client, value))
            self.flown.add(b"flight:" + value)
        if turn is not ClaimState.BYPASS:
            self.waiting.append(client)

    @precondition(lambda self: self.waiting)
    @rule(impatient=st.booleans())
    def receive(self, impatient: bool) -> None:
        """Take the replies that have come; where none has, perhaps the reader is dead."""
        for client in list(self.waiting):
            if reply := self.redis.lpop(client.waiter):
                self.waiting.remove(client)
                assert struct.unpack_from("<I", reply) == (NUMBER,)
                self._reply(client, reply[4:], "waited for")
            elif impatient:
                self.waiting.remove(client)
                self._claim(client)

    def _reply(self, client: Client, body: bytes, how: str) -> None:
        if body != FAILED:
            self.told(client, struct.unpack("<q", body)[0], how)

    # Readers

    def _reader(self, data: st.DataObject) -> Reader:
        return self.readers[data.draw(st.integers(0, len(self.readers) - 1))]

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), steps=st.integers(1, 3))
    def go_on(self, data: st.DataObject, steps: int) -> None:
        """The next steps of a read: its beginning, what the provider says, its end."""
        reader = self._reader(data)
        for _ in range(steps):
            if reader in self.readers:
                self._step(reader)

    def _step(self, reader: Reader) -> None:
        if reader.generation is None:
            reader.generation = self.cache.generations([self.key.connection])[self.key.connection]
            if reader.flight:
                with self.redis.pipeline(transaction=False) as pipe:
                    self.single_flight.hold(pipe, [reader.flight.decode()])
                    pipe.execute()
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
                self.cache.store(
                    pipe, self.key, busy, 0, BUCKET, read_at=reader.read_at, generation=reader.generation
                )
            if reader.flight:
                landing = Completion(reader.flight.decode(), body, failed, not failed)
                self.single_flight.complete(pipe, [landing], told=reader.client.waiter, leftover=60)
            pipe.execute()
        if reader.client in self.waiting:
            self.waiting.remove(reader.client)
            self._reply(reader.client, body, "read")

    @rule(data=st.data(), what=st.sampled_from(["refusal", "death", "leases", "buckets", "restart"]))
    def misfortune(self, data: st.DataObject, what: str) -> None:
        """What goes wrong, and what ends by itself."""
        if what == "refusal" and self.readers:
            self._finish(self._reader(data), FAILED, failed=True)
        elif what == "death" and self.readers:
            self.readers.remove(self._reader(data))
        elif what == "leases" and self.flown:
            # Of the dead, and of those who were only stopped for too long.
            self.redis.delete(*self.flown)
        elif what == "buckets":
            self.redis.delete(f"busy:{self.key.connection}:primary:0")
        elif what == "restart" and data.draw(st.booleans()):
            # Redis comes back without what it had.
            self.teardown()

    # Changes

    @rule(elsewhere=st.booleans(), lost=st.booleans())
    def change(self, elsewhere: bool, lost: bool) -> None:
        """A write of ours reaches the provider, or somebody else's, of which it tells us or does not."""
        self.truth += 1
        if not elsewhere:
            self.writes.append(self.truth)
        elif not lost:
            self.notices.append(self.truth)

    @precondition(lambda self: self.writes)
    @rule(data=st.data())
    def answer_the_write(self, data: st.DataObject) -> None:
        """What is cached is dropped, then the write is answered."""
        written = self.writes.pop(data.draw(st.integers(0, len(self.writes) - 1)))
        self.cache.forget([self.key.connection])
        self.answered = max(self.answered, written)

    @rule(begins=st.booleans())
    def watch(self, begins: bool) -> None:
        """The provider begins to tell us of changes, or is found to have stopped."""
        if begins:
            self.cache.watch(self.key, "channel", 3600)
        else:
            self.cache.empty(self.key, unwatch="channel")

    @precondition(lambda self: self.notices)
    @rule(data=st.data(), again=st.booleans())
    def be_notified(self, data: st.DataObject, again: bool) -> None:
        """A notification arrives, perhaps not for the last time."""
        place = data.draw(st.integers(0, len(self.notices) - 1))
        changed = self.notices[place] if again else self.notices.pop(place)
        self.cache.empty(self.key)
        self.answered = max(self.answered, changed)


@pytest.mark.parametrize(
    "histories", [100, pytest.param(2_000, marks=[pytest.mark.long, pytest.mark.timeout(600)])]
)
def test_nobody_sees_what_was_before_a_write_that_was_answered(stores, histories):
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
    ways = {"from the cache", "waited for", "read", "LEADER", "FOLLOWER"}
    corners = {"landed", "COMPLETED", "BYPASS"} if histories > 1_000 else set()
    assert ways | corners <= set(seen), seen
