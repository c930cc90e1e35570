"""The flights of reads as Redis keeps them (``flight_claim.lua``)."""

from __future__ import annotations

import msgspec
from redis import Redis

from store.coordination.single_flight import flight_key

# The length of the header of a text of MessagePack by its first byte; that of a short one is 1.
_HEADERS = {0xD9: 2, 0xDA: 3, 0xDB: 5}


class Flight(msgspec.Struct):
    """A flight; ``completed`` is the time of its completion."""

    id: str
    at: float
    completed: float | None = None
    failed: bool = False
    raw_body: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="body")

    @property
    def body(self) -> bytes:
        """The result. Redis packs it as text, although it need not be valid."""
        packed = bytes(self.raw_body)
        return packed[_HEADERS.get(packed[0], 1) :]


def flight(redis: Redis, name: str) -> Flight | None:
    """A flight; None if it has expired."""
    value = redis.get(flight_key(name))
    return None if value is None else msgspec.msgpack.decode(value, type=Flight)


def flights(redis: Redis) -> list[Flight]:
    """All flights, in progress and completed."""
    values = [redis.get(key) for key in redis.keys("flight:*")]
    return [msgspec.msgpack.decode(value, type=Flight) for value in values if value is not None]


def followers(redis: Redis) -> list[int]:
    """The number of requests that follow each flight in progress, without its leader."""
    under_way = [each.id for each in flights(redis) if each.completed is None]
    return [redis.scard(f"flight-followers:{each}") for each in under_way]


def place(redis: Redis, name: str) -> None:
    """Store a flight in progress."""
    redis.set(flight_key(name), msgspec.msgpack.encode({"id": name, "at": 1, "keep": 60_000}), ex=60)
