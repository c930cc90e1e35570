"""Plain HTTP for the benchmarks, by the standard library: it reads 40 MB without chopping them up."""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson

HOST = "127.0.0.1"
FRESH = {"Cache-Control": "no-cache"}


class Answer(NamedTuple):
    """The answer, and the seconds from connecting to the last byte."""

    status: int
    body: bytes
    seconds: float

    def json(self) -> Any:
        """The body read."""
        return orjson.loads(self.body)


class Client:
    """A connection for each request: nothing to keep, any number of threads."""

    def __init__(self, port: int, headers: Mapping[str, str] | None = None) -> None:
        self.port = port
        self._headers = dict(headers or {})

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, fresh: bool = False) -> Answer:
        """``fresh`` bypasses the cache."""
        return self._send("GET", f"{path}?{urlencode(query)}" if query else path, FRESH if fresh else {})

    def post(self, path: str, document: object) -> Answer:
        """Send JSON."""
        return self._send("POST", path, {"Content-Type": "application/json"}, orjson.dumps(document))

    def put(self, path: str, document: object) -> Answer:
        """Replace by JSON."""
        return self._send("PUT", path, {"Content-Type": "application/json"}, orjson.dumps(document))

    def delete(self, path: str) -> Answer:
        """Delete."""
        return self._send("DELETE", path, {})

    def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Answer:
        start = time.perf_counter()
        connection = http.client.HTTPConnection(HOST, self.port, timeout=150)
        try:
            connection.request(method, target, body, {**self._headers, **headers})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        return Answer(answer.status, content, time.perf_counter() - start)
