"""A receiver of HTTP requests, for the notifications that the sandbox sends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

PATIENCE = 20.0


@dataclass
class Posted:
    """One request."""

    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Receiver:
    """The received requests except handshakes; ``answers`` are the next statuses, then 204."""

    url: str
    posted: list[Posted] = field(default_factory=list)
    handshakes: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    # The answer to a handshake, made from its token.
    echo: Callable[[str], str] = field(default=lambda token: token)

    def wait(self, count: int) -> list[Posted]:
        """The received requests once there are ``count``; fails when it takes too long."""
        give_up = time.monotonic() + PATIENCE
        while len(self.posted) < count:
            assert time.monotonic() < give_up, f"{len(self.posted)} of {count} came"
            time.sleep(0.01)
        return self.posted


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = parse_qs(urlsplit(self.path).query)
            if "validationToken" in query:
                (token,) = query["validationToken"]
                receiver.handshakes.append(token)
                self._answer(200, receiver.echo(token).encode())
                return
            status = receiver.answers.pop(0) if receiver.answers else 204
            receiver.posted.append(Posted(self.headers, body))
            self._answer(status)

        def _answer(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver = Receiver(f"http://127.0.0.1:{server.server_port}/push")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield receiver
        server.shutdown()
        thread.join(timeout=5)
