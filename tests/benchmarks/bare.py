"""The baseline of warm answers: routes that do next to nothing, on the server of ``almanac serve``.

``ALMANAC_REDIS_URL`` says where Redis is; ``BENCH_KEYS`` and ``BENCH_BODY`` name the files that hold the
keys to read, one in each line, and the answer to send.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from flask import Flask, Response
from redis import Redis

from app.server.commands import WEB_THREADS
from app.server.wsgi_adapter import WsgiAdapter
from app.web import MAX_BODY

app = Flask(__name__)
asgi = WsgiAdapter(lambda: app, lambda: None, threads=WEB_THREADS, largest_body=MAX_BODY)


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
