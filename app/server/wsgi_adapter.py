"""Serves a WSGI application by ASGI, so that slow clients hold no thread.

The body of a request is received before a thread begins the request, as far as ``app.server.body_budget``
allows. A long answer is sent in pieces, and a thread makes the next piece after the client has received the
previous one.
"""

from __future__ import annotations

import asyncio
import io
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from werkzeug.exceptions import BadRequest, HTTPException, RequestTimeout

from app.http.authentication import COUNTED
from app.http.errors import ApiError
from app.server.body_budget import BodyBudget

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# Calls a function on a thread.
Run = Callable[..., Awaitable[Any]]

# Seconds that a client has to send a body.
BODY_SECONDS = 15.0

# Bytes of an answer that are sent at once, at most. A piece as the application made it is not copied.
PIECE = 1024 * 1024
# Seconds that a client has to receive each ``TIMED`` bytes of a piece, and any shorter piece: about 4 KiB a
# second.
PIECE_SECONDS = 60.0
TIMED = 256 * 1024

# Many clients send all of a body before they read the answer. Of one that is too large, at most this many
# bytes are received and discarded.
MAX_DISCARDED = 16 * 1024 * 1024
# A client that sends nothing for this number of seconds waits for the answer.
PAUSE = 0.5

# Seconds that a stop waits for requests whose connections have ended: the client has gone, or it has the
# answer, which is not closed yet. The server itself waits for all other requests.
STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


class SlowClient(Exception):
    """A client did not receive its answer in time. The server then ends the connection."""


class WsgiAdapter:
    """An ASGI application that runs a WSGI application on a pool of threads.

    ``load`` returns the WSGI application. It is called once in each process, before the first request.
    ``close`` is called after the last one.
    """

    def __init__(
        self,
        load: Callable[[], WSGIApplication],
        close: Callable[[], None],
        *,
        threads: int,
        largest_body: int,
        budget: BodyBudget | None = None,
    ) -> None:
        self._load = load
        self._close = close
        self._threads = threads
        self._largest_body = largest_body
        self._budget = budget
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or handle the start and the end of the process."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        self._in_progress += 1
        try:
            await self._answer(scope, receive, send)
        except SlowClient as error:
            log.info("%s", error)
        finally:
            self._in_progress -= 1

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self._application = self._load()
        except Exception:
            # The server would log less, and answer all requests with 500.
            log.exception("the web process cannot start")
            await send({"type": "lifespan.startup.failed"})
            return
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="web")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._finish_requests()
        # The end of the process waits for threads that still work.
        self._close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _finish_requests(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                while self._in_progress:
                    await asyncio.sleep(0.01)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        environ = _environ(scope)
        # All steps of a request run in one context, as on one thread.
        run: Run = partial(asyncio.get_running_loop().run_in_executor, self._pool, copy_context().run)  # type: ignore[arg-type]
        with ExitStack() as held:
            environ["wsgi.input"], keep_alive = await self._body(environ, receive, run, held)
            await self._respond(environ, keep_alive, run, receive, send)

    async def _respond(
        self, environ: WSGIEnvironment, keep_alive: bool, run: Run, receive: Receive, send: Send
    ) -> None:
        answer, piece, ended = await run(_begin, self._application, environ)
        if not keep_alive:
            answer.headers.append((b"connection", b"close"))
        try:
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
            if ended:
                await send_body(send, piece)
            else:
                await _send_pieces(answer, piece, run, receive, send)
                await send(_body_message(b""))
        finally:
            if not ended:
                await run(answer.close)

    async def _body(
        self, environ: WSGIEnvironment, receive: Receive, run: Run, held: ExitStack
    ) -> tuple[io.IOBase, bool]:
        """The body of a request, and whether the connection can take another request after it.

        ``held`` is closed when the body is no longer needed.
        """
        body = io.BytesIO()
        encoding = environ.get("HTTP_TRANSFER_ENCODING", "").lower()
        if not encoding and "CONTENT_LENGTH" not in environ:
            return body, True
        # With two codings, a proxy in front may see another end of the body.
        if encoding not in ("", "chunked"):
            return body, False
        too_large = int(environ.get("CONTENT_LENGTH", 0)) > self._largest_body
        try:
            charge = None
            if self._budget is not None:
                charge = self._budget.charge(await self._budget.sender(environ, run))
                held.callback(charge.release)
            async with asyncio.timeout(BODY_SECONDS):
                while not too_large:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return _Unreadable(BadRequest("The request body is not valid HTTP")), False
                    piece = message.get("body", b"")
                    if charge is not None:
                        charge.add(len(piece))
                    body.write(piece)
                    too_large = body.tell() > self._largest_body
                    if not message.get("more_body"):
                        break
        except TimeoutError:
            return _Unreadable(RequestTimeout("The request body did not arrive in time")), False
        except ApiError as error:
            # The application refuses the request too, or when it reads the body.
            log.info("request body not received: %s", error.code)
            held.close()
            body.close()
            return _Unreadable(error), await _discard(receive)
        if too_large:
            await _discard(receive)
        body.seek(0)
        return body, not too_large


@dataclass
class _Answer:
    """The answer of the WSGI application."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    pieces: Iterator[bytes] = field(default_factory=lambda: iter(()))
    close: Callable[[], None] = lambda: None

    def start(
        self, status: str, headers: list[tuple[str, str]], _error: Any = None, /
    ) -> Callable[[bytes], object]:
        """WSGI's ``start_response``."""
        self.status = int(status[:3])
        self.headers = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in headers]
        return _write

    def is_complete(self, piece: bytes) -> bool:
        """Whether ``piece`` is the whole body."""
        return (b"content-length", str(len(piece)).encode()) in self.headers


class _Unreadable(io.RawIOBase):
    """The body of a request that cannot be read; the application answers with ``error``."""

    def __init__(self, error: HTTPException | ApiError) -> None:
        self._error = error

    def read(self, size: int = -1) -> bytes:
        """Raise the error."""
        raise self._error

    def readinto(self, buffer: Any) -> int:
        """Raise the error."""
        raise self._error


def _write(_data: bytes) -> object:
    # PEP 3333 keeps write() for frameworks that print; Flask and its middleware return iterables.
    raise RuntimeError("write() of WSGI is not supported: return an iterable")


def _begin(application: WSGIApplication, environ: WSGIEnvironment) -> tuple[_Answer, bytes, bool]:
    """Start a request; returns its answer, the first piece, and whether that ended it.

    An answer in one piece is closed here: to go to a thread once more would cost more than closing it.
    """
    answer = _Answer()
    pieces = application(environ, answer.start)
    answer.pieces, answer.close = iter(pieces), getattr(pieces, "close", answer.close)
    try:
        piece = next(answer.pieces, b"")
    except BaseException:
        answer.close()
        raise
    ended = answer.is_complete(piece)
    if ended:
        answer.close()
    return answer, piece, ended


async def _send_pieces(answer: _Answer, piece: bytes | None, run: Run, receive: Receive, send: Send) -> None:
    gone = asyncio.ensure_future(_disconnected(receive))
    try:
        while piece is not None and not gone.done():
            await send_body(send, piece, more=True)
            piece = await run(next, answer.pieces, None)
    finally:
        gone.cancel()


async def send_body(send: Send, body: bytes, *, more: bool = False) -> None:
    """Send a body, or with ``more`` a part of it, in pieces that the client has to receive in time.

    :raise SlowClient: if it does not
    """
    # An empty body is a message too.
    for at in range(0, max(1, len(body)), PIECE):
        piece = body[at : at + PIECE]
        seconds = PIECE_SECONDS * max(1, len(piece) / TIMED)
        try:
            async with asyncio.timeout(seconds):
                await send(_body_message(piece, more=more or at + PIECE < len(body)))
        except TimeoutError as error:
            raise SlowClient(f"connection ended: its client took more than {seconds:.0f} seconds") from error


async def _disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _discard(receive: Receive) -> bool:
    """Receive the rest of a body, until the client pauses; returns whether the body has ended."""
    left = MAX_DISCARDED
    with suppress(TimeoutError):
        async with asyncio.timeout(BODY_SECONDS):
            while left > 0:
                message = await asyncio.wait_for(receive(), PAUSE)
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return bool(message["type"] == "http.request")
    return False


def _body_message(body: bytes, *, more: bool = False) -> MutableMapping[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


def _environ(scope: Scope) -> WSGIEnvironment:
    host, port = scope["server"]
    raw = scope["raw_path"].decode("latin1")
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(raw).decode("latin1"),
        "QUERY_STRING": scope["query_string"].decode("latin1"),
        # The path as the client has sent it, see ``app.http.paths``.
        "REQUEST_URI": raw,
        "SERVER_NAME": host,
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": scope["client"][0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": io.BytesIO(),
        # werkzeug then reads a body without Content-Length to its end.
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        COUNTED: scope.get(COUNTED),
    }
    for name, value in scope["headers"]:
        # An underscore would stand for a hyphen, and a client could send a header that a proxy removes.
        if b"_" in name:
            continue
        key = name.decode("latin1").upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        text = value.decode("latin1")
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    return environ
