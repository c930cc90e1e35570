"""gunicorn's worker, with its own refusals in our envelope: those that come before the application."""

from __future__ import annotations

import logging
import os
import secrets
import select
from typing import Any

import orjson
from gunicorn import glogging
from gunicorn.http import message
from gunicorn.http.body import ChunkedReader
from gunicorn.http.parser import RequestParser
from gunicorn.workers.gthread import ThreadWorker

from app.http.request_ids import HEADER
from app.server.client_socket import Hurried
from app.server.commands import LONGEST_HEADER, LONGEST_REQUEST_LINE, MOST_HEADERS
from app.services import EXTENSION
from store.config.garbage_collection import OF_ANSWERS, collect_seldom
from store.config.log_settings import read_log_settings
from workers.telemetry import logs, tracing

# gunicorn cuts its setting down to this, or knows no limit at all.
message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE

# Linux wakes one process of a queue.
_TURNS = hasattr(select, "EPOLLEXCLUSIVE")

SENTENCES = {
    400: "The request is not valid HTTP",
    414: f"The request line is longer than {LONGEST_REQUEST_LINE} bytes",
    431: f"The request has more than {MOST_HEADERS} headers, or one longer than {LONGEST_HEADER} bytes",
    500: "Something went wrong on our side",
}


class Request(message.Request):
    """A request whose connection closes after the answer when the application has not read its whole body.

    gunicorn would announce `keep-alive`, discard up to 64 KiB of the rest and then close the connection if
    there was more. The client's next request on that connection would fail.
    """

    def should_close(self) -> bool:
        """Whether the connection closes after the answer; gunicorn asks when it writes the headers."""
        return bool(super().should_close()) or not self._is_read()

    def _is_read(self) -> bool:
        reader = self.body.reader
        if isinstance(reader, ChunkedReader):
            return reader.parser is None
        return bool(reader.length == 0)


RequestParser.mesg_class = Request


class Worker(ThreadWorker):
    """Threads, as gunicorn's own; it connects before its first request, and refuses in our words."""

    def run(self) -> None:
        """Serve; the application is loaded, the process is its own."""
        tracing.start("web")
        self.wsgi.extensions[EXTENSION].prepare()
        collect_seldom(OF_ANSWERS)
        # The poller's own, by another number.
        self._epoll = select.epoll.fromfd(os.dup(self.poller.fileno())) if _TURNS else None
        super().run()

    def enqueue_req(self, conn: Any) -> None:
        """Have a thread read a request and answer it."""
        if not isinstance(conn.sock, Hurried):
            timeout = conn.sock.gettimeout()
            conn.sock = Hurried(fileno=conn.sock.detach())
            conn.sock.settimeout(timeout)
        conn.sock.begin()
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Read a request and answer it; part here from a client whose last it was.

        gunicorn would wait for its goodbye on the main thread, and let nobody in meanwhile.
        """
        more = super().handle(conn)
        if not more:
            conn.sock.part()
        return more

    def set_accept_enabled(self, enabled: bool) -> None:
        """Take connections or not. Who ends takes the last that wait, and lets nobody else in.

        gunicorn would keep the door open until all others are answered, and then drop who waits there.
        """
        super().set_accept_enabled(enabled)
        if enabled:
            for listener in self.sockets:
                self._queue_up(listener)
        if enabled or self.alive:
            return
        for listener in self.sockets:
            while _somebody_waits(listener):
                self.accept(listener)
            listener.close()

    def accept(self, listener: Any) -> None:
        """Take a connection; the next is for another process."""
        super().accept(listener)
        if self._accepting:
            self._queue_up(listener)

    def _queue_up(self, listener: Any) -> None:
        """Be the last of the processes to be woken for who comes next.

        gunicorn has all of them woken at once. On a quiet machine the same one is always the fastest, and
        connections that are kept would be all with it, while the others have nothing to do.
        """
        if self._epoll is not None:
            self._epoll.unregister(listener)
            self._epoll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Any) -> None:
        """Log and answer a request that never reached the application, or broke on its way out."""
        # Not the request: its address would be logged, and some hold a secret.
        super().handle_error(None, _Enveloping(client), addr, exc)


def _somebody_waits(listener: Any) -> bool:
    waiting = select.poll()
    waiting.register(listener.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class Log(glogging.Logger):
    """gunicorn's own lines, on the way of all others. What quotes a request is cut short.

    Its line and headers hold people's addresses, and secrets.
    """

    def setup(self, cfg: Any) -> None:
        """Log as every process of ours; this is the first that gunicorn does."""
        super().setup(cfg)
        logs.configure("web", read_log_settings())
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True
        self.error_log.setLevel(logging.NOTSET)

    def warning(self, msg: str, *args: Any, **more: Any) -> None:
        """Of a request that is refused, where it came from."""
        refused = msg.startswith("Invalid request from ")
        self.error_log.warning(msg.partition(": ")[0] if refused else msg, *args, **more)

    def exception(self, msg: str, *args: Any, **more: Any) -> None:
        """Of a request that failed, that it did."""
        failed = msg.startswith("Error handling request %s")
        self.error_log.exception(*((msg.partition(" %s")[0],) if failed else (msg, *args)), **more)


class _Enveloping:
    """Stands in for the client's socket while gunicorn writes its error page."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def sendall(self, page: bytes) -> None:
        """Send ``page``'s status with our body."""
        status_line = page.partition(b"\r\n")[0]
        self._client.sendall(enveloped(status_line))


def enveloped(status_line: bytes) -> bytes:
    """A whole HTTP answer for a status line such as ``HTTP/1.1 414 URI Too Long``."""
    _, status, reason = status_line.decode("latin1").split(" ", 2)
    body = orjson.dumps({"data": None, "error": SENTENCES.get(int(status), reason)})
    headers = {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        HEADER: secrets.token_hex(12),
    }
    lines = [status_line.decode("latin1"), *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin1") + body
