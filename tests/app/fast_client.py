"""A client of the fast path for slots, without a server."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode

import pytest
from flask import Flask
from werkzeug.datastructures import Headers

from app.api import fast_slots
from app.api.fast_slots import FastSlots


@dataclass
class FastAnswer:
    """An answer of the fast path."""

    status_code: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        encoded = self.headers.get("Content-Encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if encoded else self.body)


class FastClient:
    """A context. ``get`` returns None when the request was passed to the plain path."""

    def __init__(self, app: Flask, key: str) -> None:
        self._key = key
        with pytest.MonkeyPatch.context() as patch:
            # On a busy machine Redis may take longer than the fast path usually waits.
            patch.setattr(fast_slots, "REDIS_SECONDS", 30)
            self.fast = FastSlots(self._plain, app)
        self._loop = asyncio.Runner()
        self._passed = 0
        self._sent: list[Any] = []
        # Of the last request.
        self.scope: Mapping[str, Any] = {}

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        # The end of the process, when the application closes its connections.
        self._loop.run(self.fast({"type": "lifespan"}, self._receive, self._send))
        self._loop.__exit__(*error)

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, method: str = "GET", **query: Any
    ) -> FastAnswer | None:
        """Send a request for a path below ``/v1``."""
        sent = {"Authorization": f"Bearer {self._key}", **(headers or {})}
        scope = {
            "type": "http",
            "method": method,
            "raw_path": f"/v1{path}".encode(),
            "query_string": urlencode(query).encode(),
            "headers": [(name.lower().encode(), value.encode("latin1")) for name, value in sent.items()],
        }
        self._sent, before, self.scope = [], self._passed, scope
        self._loop.run(self.fast(scope, self._receive, self._send))
        if self._passed > before:
            assert not self._sent
            return None
        start, *pieces = self._sent
        assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]
        found = Headers([(name.decode(), value.decode("latin1")) for name, value in start["headers"]])
        return FastAnswer(start["status"], found, b"".join(piece["body"] for piece in pieces))

    async def _plain(self, *_: Any) -> None:
        self._passed += 1

    async def _send(self, message: Any) -> None:
        self._sent.append(message)

    async def _receive(self) -> Any:
        raise AssertionError("the fast path reads no body")
