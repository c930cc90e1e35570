"""Load from a process of its own: paced, or as much as some connections take where wrk is missing.

Prints one JSON object: requests, seconds, how many answers were wrong, and for each answer
the seconds since it was due and its status.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

PATIENCE = 60.0


@dataclass
class Load:
    """The requests to send, and the counts of their answers."""

    port: int
    requests: Iterator[bytes]
    expected: bytes
    answers: list[tuple[float, int]] = field(default_factory=list)
    bad: int = 0

    async def ask(self, due: float) -> None:
        """One request, on a connection of its own; status 0 is no answer at all."""
        try:
            status, body = await asyncio.wait_for(self._exchange(), PATIENCE)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            status, body = 0, b""
        self.answers.append((time.perf_counter() - due, status))
        self.bad += status != 200 or self.expected not in body

    async def _exchange(self) -> tuple[int, bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(next(self.requests))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            return int(head.split(b" ", 2)[1]), await reader.readexactly(length)
        finally:
            writer.close()

    async def paced(self, rate: float, seconds: float) -> None:
        """A request is due every ``1 / rate`` seconds, whatever the earlier answers."""
        start = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(round(rate * seconds)):
                due = start + number / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(self.ask(due))

    async def pressed(self, connections: int, seconds: float) -> None:
        """Keeps this number of requests in flight."""
        end = time.perf_counter() + seconds

        async def again() -> None:
            while (now := time.perf_counter()) < end:
                await self.ask(now)

        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(again())


def read(file: Path, key: str, first: int) -> Iterator[bytes]:
    """The requests of a file, over and over, beginning with number ``first``."""
    lines = [line.split("\t") for line in file.read_text().splitlines()]
    prepared = [
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n"
        f"X-Timezone: {zone}\r\n\r\n".encode()
        for path, zone in lines
    ]
    return itertools.islice(itertools.cycle(prepared), first, None)


def main() -> None:
    """From the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--requests", type=Path, required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--expect", default="")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, required=True)
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--rate", type=float)
    how.add_argument("--connections", type=int)
    given = parser.parse_args()
    load = Load(given.port, read(given.requests, given.key, given.first), given.expect.encode())
    start = time.perf_counter()
    if given.rate:
        asyncio.run(load.paced(given.rate, given.seconds))
    else:
        asyncio.run(load.pressed(given.connections, given.seconds))
    took = time.perf_counter() - start
    told = {"requests": len(load.answers), "seconds": took, "bad": load.bad, "answers": load.answers}
    print(orjson.dumps(told).decode())


if __name__ == "__main__":
    main()
