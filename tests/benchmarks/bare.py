"""The baseline of warm answers: WSGI applications that do next to nothing, on the same server.

``ALMANAC_REDIS_URL`` says where Redis is; ``BENCH_KEYS`` and ``BENCH_BODY`` name the files that hold the
keys to read, one in each line, and the answer to send.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from flask import Flask, Response
from redis import Redis

app = Flask(__name__)


@app.get("/hello")
def hello() -> str:
    """Flask, and nothing else."""
    return "hello"


@app.get("/redis")
def redis() -> str:
    """Flask and one round trip to Redis."""
    return "hello" if _redis().get("no such key") is None else "something"


@app.get("/static")
def static_body() -> Response:
    """The keys read in one call, and a prepared answer."""
    values = _redis().mget(_keys())
    assert all(isinstance(value, bytes) for value in values)
    return Response(_body(), mimetype="application/json")


@cache
def _redis() -> Redis:
    return Redis.from_url(os.environ["ALMANAC_REDIS_URL"])


@cache
def _keys() -> list[bytes]:
    return Path(os.environ["BENCH_KEYS"]).read_bytes().splitlines()


@cache
def _body() -> bytes:
    return Path(os.environ["BENCH_BODY"]).read_bytes()
