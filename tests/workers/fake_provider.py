"""A fake provider, controlled by the test."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.http_server import KeepAliveHandler, serving


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

    class ProviderHandler(KeepAliveHandler):
        def do_POST(self) -> None:
            status, headers, answer = provider.answer(self.path, json.loads(self.read_body()))
            # The client may have timed out.
            with suppress(ConnectionError):
                self.reply(status, json.dumps(answer).encode(), headers)

    with serving(ProviderHandler) as provider.url:
        yield provider
