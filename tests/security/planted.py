"""Planted secrets, and the search of a whole installation for them."""

from __future__ import annotations

import base64
import json
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from redis import Redis


def spellings(secret: str) -> Iterator[bytes]:
    """A secret as it is, in a URL, in JSON, in hexadecimal digits, and inside of any base64."""
    raw = secret.encode()
    yield raw
    yield quote(secret, safe="").encode()
    yield json.dumps(secret)[1:-1].encode()
    yield raw.hex().encode()
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + raw)
        # The edges depend on the neighbouring bytes.
        inner = whole[4 if before else 0 : len(whole) - 4]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))


def found(planted: Mapping[str, str], places: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The secrets found, with their places."""
    return [
        (what, where)
        for what, secret in planted.items()
        for where, content in places.items()
        if any(each in content for each in spellings(secret))
    ]


@contextmanager
def overheard(redis: Redis) -> Iterator[list[bytes]]:
    """Every command that Redis receives meanwhile, those of the broker included."""
    heard: list[bytes] = []
    end = secrets.token_hex(8).encode()
    with redis.monitor() as monitor:

        def listen() -> None:
            while not heard or end not in heard[-1]:
                # As received: bytes that are no text are escaped, the rest is plain.
                heard.append(monitor.connection.read_response(disable_decoding=True))

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        yield heard
        redis.echo(end)
        listener.join(timeout=30)
        assert not listener.is_alive()


def dumped(redis: Redis) -> bytes:
    """The content of Redis."""
    read = {
        b"string": lambda name: redis.get(name),
        b"list": lambda name: redis.lrange(name, 0, -1),
        b"set": lambda name: redis.smembers(name),
        b"zset": lambda name: redis.zrange(name, 0, -1),
        b"hash": lambda name: redis.hgetall(name),
        b"stream": lambda name: redis.xrange(name),
    }
    pieces: list[Any] = []
    for name in redis.scan_iter(count=1000):
        kind = redis.type(name)
        if kind != b"none":
            pieces += [name, *_flat(read[kind](name))]
    return b"\n".join(pieces)


def _flat(value: Any) -> Iterable[bytes]:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, list | set | tuple):
        return (each for inner in value for each in _flat(inner))
    return [value if isinstance(value, bytes) else str(value).encode()]


def kept(folder: Path, *, but: Iterable[str]) -> dict[str, bytes]:
    """Every file of a folder, as it is on the disk."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name not in but
    }


def arguments() -> bytes:
    """The command lines of all processes, which every user of a host sees."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            # It has just ended.
            continue
    return b"\n".join(lines)
