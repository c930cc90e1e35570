"""A provider that costs next to nothing: both APIs' busy calls, canned, after a delay.

It shares the processors with what is measured, so an answer is worked out once for each pattern of
meetings and question, and a request costs a dictionary look-up and a timer. ``POST /bench`` changes how it
behaves and clears its record, ``GET /bench`` returns the record.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from dataclasses import dataclass, field
from functools import cache, lru_cache
from random import Random
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

from tests.benchmarks import calendars

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
BEARER = re.compile(rb"\r\nauthorization: *bearer person-(\d+)", re.IGNORECASE)
GOOGLE = b"/google/calendar/v3/freeBusy"
MICROSOFT = b"/microsoft/v1.0/$batch"
ERROR, SLOW = "error", "slow"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Seconds from ``least`` to ``most`` for an answer, and the shares of failing and hanging requests.

    The draw is per account and holds for every try.
    """

    least: float = 0.2
    most: float = 0.2
    seed: int = 0
    errors: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 60.0

    def latency(self, person: int) -> float:
        """How long an account's answer takes."""
        if self.least == self.most:
            return self.least
        return _draw(f"latency {self.seed} {person}") * (self.most - self.least) + self.least

    def fault_of(self, person: int) -> str | None:
        """The fault of this account's requests."""
        if not self.errors and not self.slow:
            return None
        drawn = _draw(f"fate {self.seed} {person}")
        if drawn < self.errors:
            return ERROR
        return SLOW if drawn < self.errors + self.slow else None


@dataclass(slots=True)
class Record:
    """The requests and answers since the behaviour was set; times are of the monotonic clock.

    ``tokens`` counts the requests for a token of an organization grant, which ``requests`` leaves out.
    """

    requests: int = 0
    tokens: int = 0
    in_flight: int = 0
    peak: int = 0
    errors: set[int] = field(default_factory=set)
    slow: set[int] = field(default_factory=set)
    answered: dict[int, float] = field(default_factory=dict)


class ServerState:
    """State shared by all connections."""

    def __init__(self) -> None:
        self.behaviour = Behaviour()
        self.record = Record()

    def control(self, method: bytes, body: bytes) -> bytes:
        """Set the behaviour, or return the record."""
        if method == b"POST":
            self.behaviour = Behaviour(**orjson.loads(body))
            in_flight = self.record.in_flight
            self.record = Record(in_flight=in_flight, peak=in_flight)
            return _written(200, {})
        values = {name: getattr(self.record, name) for name in Record.__slots__}
        values |= {"errors": sorted(self.record.errors), "slow": sorted(self.record.slow)}
        values["answered"] = list(self.record.answered.items())
        return _written(200, values | {"cpu": time.process_time()})


class Connection(asyncio.Protocol):
    """One client's connection, kept open; requests come one after the other."""

    def __init__(self, state: ServerState) -> None:
        self._desk = state
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._pending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """A client that timed out no longer waits."""
        if self._pending is not None:
            self._pending.cancel()
            self._desk.record.in_flight -= 1

    def data_received(self, data: bytes) -> None:
        """Answer once a whole request is here."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._buffer[: end + 2]
        length = LENGTH.search(head)
        size = end + 4 + (int(length[1]) if length else 0)
        if len(self._buffer) < size:
            return
        body, self._buffer = self._buffer[end + 4 : size], self._buffer[size:]
        method, target = head.split(b" ", 2)[:2]
        if target == b"/bench":
            self._transport.write(self._desk.control(method, body))
            return
        bearer = BEARER.search(head)
        if bearer is None and method != b"POST":
            # A worker's probe, which a real provider answers at once however long its calendars take.
            self._transport.write(NOT_FOUND)
            return
        self._take(target, int(bearer[1]) if bearer else None, body)

    def _take(self, target: bytes, person: int | None, body: bytes) -> None:
        record, behaviour = self._desk.record, self._desk.behaviour
        if target.endswith(b"/token"):
            record.tokens += 1
            self._transport.write(TOKEN)
            return
        if person is None:
            # The plain call that latency is measured with.
            person, target, body = 0, GOOGLE, QUESTION
        else:
            record.requests += 1
        record.in_flight += 1
        record.peak = max(record.peak, record.in_flight)
        fault = behaviour.fault_of(person)
        delay = behaviour.slow_seconds if fault == SLOW else behaviour.latency(person)
        if fault is not None:
            (record.errors if fault == ERROR else record.slow).add(person)
        answer = FAILURE if fault == ERROR else answer_to(person % calendars.PATTERNS, target, body)
        self._pending = self._loop.call_later(delay, self._answer, answer, person, fault)

    def _answer(self, answer: bytes, person: int, fault: str | None) -> None:
        self._pending = None
        record = self._desk.record
        record.in_flight -= 1
        if fault != ERROR:
            record.answered.setdefault(person, time.monotonic())
        self._transport.write(answer)


@lru_cache(4096)
def answer_to(pattern: int, target: bytes, body: bytes) -> bytes:
    """The whole HTTP answer; worked out once."""
    asked = orjson.loads(body) if body else {}
    if target.partition(b"?")[0] == GOOGLE:
        return _written(200, calendars.google(pattern, asked))
    if target == MICROSOFT:
        return _written(200, {"responses": [_part(pattern, each) for each in asked["requests"]]})
    return _written(404, {"error": {"code": 404, "message": f"not a call the benchmarks know: {target!r}"}})


def _part(pattern: int, asked: dict[str, Any]) -> dict[str, Any]:
    parts = urlsplit(asked["url"])
    found = calendars.microsoft(pattern, parts.path, dict(parse_qsl(parts.query)))
    headers = {"Content-Type": "application/json"}
    return {"id": asked["id"], "status": 200, "headers": headers, "body": found}


@cache
def _draw(seed: str) -> float:
    return Random(seed).random()


def _written(status: int, document: object) -> bytes:
    content = orjson.dumps(document)
    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


TOKEN = _written(200, {"access_token": "person-0", "token_type": "Bearer", "expires_in": 3600})
NOT_FOUND = _written(404, {"error": {"code": 404, "message": "Not Found"}})
FAILURE = _written(500, {"error": {"code": 500, "message": "Backend Error"}})
QUESTION = orjson.dumps(
    {
        "timeMin": calendars.text(calendars.START),
        "timeMax": calendars.text(calendars.START + 7 * calendars.DAY),
        "items": [{"id": "primary"}],
    }
)


async def serve(port: int) -> None:
    """Until the process ends."""
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--port", type=int, required=True)
    asyncio.run(serve(arguments.parse_args().port))
