"""A receiver of webhooks and of providers' notifications over a real socket, which a test can stop."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
from requests.structures import CaseInsensitiveDict
from standardwebhooks import Webhook

from tests import http_server
from tests.http_server import Handler

PATIENCE = 20.0


@dataclass(frozen=True)
class Received:
    """One received request."""

    path: str
    headers: CaseInsensitiveDict[str]
    body: bytes

    @property
    def id(self) -> str:
        """The id of a webhook."""
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    def verified(self, secret: str) -> Any:
        """The event; raises when the signature is not that of the secret."""
        return Webhook(secret).verify(self.body, dict(self.headers.lower_items()))


class Receiver:
    """Answers 204 unless ``statuses`` holds the next answers. It has a port also while it is down.

    Microsoft's handshakes are answered too; they are in ``handshakes`` and not in ``received``.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.received: list[Received] = []
        self.handshakes: list[str] = []
        self.statuses: list[int] = []
        self.headers: dict[str, str] = {}
        # Called before each answer.
        self.meanwhile: Callable[[Received], object] = lambda _received: None
        # The answer to a handshake, made from its token.
        self.echo: Callable[[str], str] = lambda token: token
        self._tls = tls
        self._server: http_server.Server | None = None
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]

    @property
    def origin(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/hook?from=almanac"

    def wait(self, count: int) -> list[Received]:
        """The received requests once there are ``count``; fails when it takes too long."""
        give_up = time.monotonic() + PATIENCE
        while len(self.received) < count:
            assert time.monotonic() < give_up, f"received {len(self.received)} of {count}"
            time.sleep(0.01)
        return self.received

    def up(self) -> None:
        """Listen."""
        receiver = self

        class ReceiverHandler(Handler):
            def do_POST(self) -> None:
                received = Received(self.path, CaseInsensitiveDict(self.headers.items()), self.read_body())
                handshake = parse_qs(urlsplit(self.path).query).get("validationToken")
                if handshake:
                    (token,) = handshake
                    receiver.handshakes.append(token)
                    content_type = {"Content-Type": "text/plain; charset=utf-8"}
                    self.reply(200, receiver.echo(token).encode(), content_type)
                    return
                receiver.received.append(received)
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                receiver.meanwhile(received)
                self.reply(status, headers=receiver.headers)

        self._server = http_server.start(ReceiverHandler, self.port, self._tls)

    def down(self) -> None:
        """Stop listening: connections are refused."""
        if self._server is not None:
            http_server.stop(self._server)
            self._server = None


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver(tls)
    receiver.up()
    try:
        yield receiver
    finally:
        receiver.down()
