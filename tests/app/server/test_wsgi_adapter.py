"""The adapter between the server and the application, with clients that are slow or leave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, Response, request

from app.server import wsgi_adapter
from app.server.wsgi_adapter import WsgiAdapter

PIECES = 1_000


class Client:
    """The messages between the server and the application, in both directions."""

    def __init__(self, *messages: dict[str, Any], takes: int = 10**6) -> None:
        self.sent: list[Any] = []
        self._messages = list(messages)
        self._takes = takes

    async def receive(self) -> dict[str, Any]:
        if self._messages:
            return self._messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: Any) -> None:
        if len(self.sent) >= self._takes:
            await asyncio.Event().wait()
        self.sent.append(message)


@pytest.fixture
def made() -> list[int]:
    """The pieces that the application has made; -1 when its answer is closed."""
    return []


@pytest.fixture
def adapter(monkeypatch, made) -> WsgiAdapter:
    monkeypatch.setattr(wsgi_adapter, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(wsgi_adapter, "PIECE_SECONDS", 0.2)
    app = Flask(__name__)

    @app.post("/length")
    def length() -> str:
        return str(len(request.get_data()))

    @app.get("/short")
    def short() -> Response:
        response = Response(iter([b"x"]))
        response.call_on_close(lambda: made.append(-1))
        return response

    @app.get("/long")
    def long() -> Response:
        def pieces() -> Iterator[bytes]:
            try:
                for number in range(PIECES):
                    made.append(number)
                    yield b"x" * 1_000
            finally:
                made.append(-1)

        return Response(pieces())

    return WsgiAdapter(lambda: app, lambda: None, threads=2, largest_body=1_000)


def http_scope(method: str, path: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {
        "type": "http",
        "method": method,
        "raw_path": path.encode(),
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"x"), *headers],
    }


def answer(
    adapter: WsgiAdapter, client: Client, method: str, path: str, *headers: tuple[bytes, bytes]
) -> None:
    async def serve() -> None:
        life = asyncio.create_task(adapter({"type": "lifespan"}, Client({}).receive, Client().send))
        await asyncio.sleep(0.05)
        await adapter(http_scope(method, path, *headers), client.receive, client.send)
        life.cancel()

    asyncio.run(serve())


def body(text: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": text, "more_body": more}


def test_a_body_in_several_messages_is_one_body(adapter):
    client = Client(body(b"ab", more=True), body(b"c"))
    answer(adapter, client, "POST", "/length", (b"content-length", b"3"))
    assert [client.sent[0]["status"], client.sent[1]["body"]] == [200, b"3"]


@pytest.mark.parametrize(
    ("messages", "status"),
    [([body(b"a", more=True)], 408), ([body(b"a", more=True), {"type": "http.disconnect"}], 400)],
)
def test_a_body_that_stops_is_an_error_and_ends_the_connection(adapter, messages, status):
    client = Client(*messages)
    answer(adapter, client, "POST", "/length", (b"content-length", b"3"))
    assert client.sent[0]["status"] == status
    assert (b"connection", b"close") in client.sent[0]["headers"]


def test_a_long_answer_arrives_whole(adapter, made):
    client = Client(body(b""))
    answer(adapter, client, "GET", "/long")
    assert b"".join(each["body"] for each in client.sent[1:]) == b"x" * 1_000 * PIECES
    assert made == [*range(PIECES), -1]


def test_a_client_that_does_not_receive_ends_its_answer(adapter, made, caplog):
    caplog.set_level("INFO")
    answer(adapter, client := Client(body(b""), takes=10), "GET", "/long")
    # Without a last piece, so that the client can tell.
    assert all(each["more_body"] for each in client.sent[1:])
    assert len(made) < 15
    assert made[-1] == -1
    assert "connection ended: its client took more than 0 seconds" in caplog.text


def test_a_client_that_leaves_ends_its_answer(adapter, made):
    answer(adapter, Client(body(b""), {"type": "http.disconnect"}), "GET", "/long")
    assert len(made) < 15
    assert made[-1] == -1


def test_an_answer_is_closed_before_the_process_ends(adapter, made):
    """The server stops when a client has its answer; the application closes the answer after that."""

    async def serve() -> None:
        messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        messages.put_nowait({"type": "lifespan.startup"})
        life = asyncio.create_task(adapter({"type": "lifespan"}, messages.get, Client().send))
        await asyncio.sleep(0.05)

        async def send(message: dict[str, Any]) -> None:
            if message.get("more_body") is False:
                messages.put_nowait({"type": "lifespan.shutdown"})
                await asyncio.sleep(0.05)

        await adapter(http_scope("GET", "/short"), Client(body(b"")).receive, send)
        await life

    asyncio.run(serve())

    assert made == [-1]


def test_a_process_whose_application_cannot_be_loaded_does_not_start(caplog):
    def load() -> Flask:
        raise ValueError("planted")

    client = Client({"type": "lifespan.startup"})
    adapter = WsgiAdapter(load, lambda: None, threads=2, largest_body=1_000)

    asyncio.run(adapter({"type": "lifespan"}, client.receive, client.send))

    assert client.sent == [{"type": "lifespan.startup.failed"}]
    assert "the web process cannot start" in caplog.text
    assert "planted" in caplog.text


def test_header_with_underscore_does_not_match_one_with_hyphen():
    scope = {
        "method": "GET",
        "raw_path": b"/a%2Fb",
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
    }
    scope |= {
        "server": ("h", 1),
        "client": ("c", 2),
        "headers": [(b"x_forwarded_for", b"evil"), (b"x-a", b"b")],
    }
    environ = wsgi_adapter._environ(scope)
    assert "HTTP_X_FORWARDED_FOR" not in environ
    assert (environ["HTTP_X_A"], environ["PATH_INFO"], environ["REQUEST_URI"]) == ("b", "/a/b", "/a%2Fb")
