"""A fake provider, controlled by the test."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Provider:
    """Answers every read with nothing busy after a while, unless ``refusal`` says otherwise."""

    url: str = ""
    seconds: float = 0.0
    refusal: Callable[[], tuple[int, dict[str, str], Any] | None] = lambda: None
    running: int = 0
    most: int = 0
    asked: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: Any) -> tuple[int, dict[str, str], Any]:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.asked.append(time.monotonic())
            refused = self.refusal()
        time.sleep(self.seconds)
        with self.lock:
            self.running -= 1
        if refused is not None:
            return refused
        if path.endswith("/freeBusy"):
            return 200, {}, {"calendars": {each["id"]: {"busy": []} for each in body["items"]}}
        parts = [{"id": part["id"], "status": 200, "body": {"value": []}} for part in body["requests"]]
        return 200, {}, {"responses": parts}


@contextmanager
def providing() -> Iterator[Provider]:
    """Serve both providers at once."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, answer = provider.answer(self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            # The client may have timed out.
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    yield provider
    server.shutdown()
    server.server_close()
