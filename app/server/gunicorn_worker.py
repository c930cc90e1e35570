"""gunicorn's worker class, with error answers in the API's JSON format.

These are errors that gunicorn reports before the application sees the request.
"""

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
from app.server.client_socket import ClientSocket
from app.server.commands import LONGEST_HEADER, LONGEST_REQUEST_LINE, MOST_HEADERS
from app.services import EXTENSION
from store.config.garbage_collection import OF_ANSWERS, collect_seldom
from store.config.log_settings import read_log_settings
from workers.telemetry import logs, tracing

# gunicorn caps its setting at this constant, or has no limit at all.
message.MAX_REQUEST_LINE = LONGEST_REQUEST_LINE

# With EPOLLEXCLUSIVE, Linux wakes one process for a new connection, instead of all.
_EXCLUSIVE = hasattr(select, "EPOLLEXCLUSIVE")

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
    """gunicorn's thread worker, with timed client sockets and JSON errors."""

    def run(self) -> None:
        """Open connections, then serve requests. Called after the fork, with the application loaded."""
        tracing.start("web")
        self.wsgi.extensions[EXTENSION].prepare()
        collect_seldom(OF_ANSWERS)
        # The epoll object of gunicorn's poller, by a duplicate file descriptor.
        self._epoll = select.epoll.fromfd(os.dup(self.poller.fileno())) if _EXCLUSIVE else None
        super().run()

    def enqueue_req(self, conn: Any) -> None:
        """Have a thread read and answer a request."""
        if not isinstance(conn.sock, ClientSocket):
            timeout = conn.sock.gettimeout()
            conn.sock = ClientSocket(fileno=conn.sock.detach())
            conn.sock.settimeout(timeout)
        conn.sock.restart_timer()
        super().enqueue_req(conn)

    def handle(self, conn: Any) -> Any:
        """Read and answer a request, and close the connection if it was the last one.

        gunicorn would wait on the main thread for the client to close, and accept no connections meanwhile.
        """
        keep_alive = super().handle(conn)
        if not keep_alive:
            conn.sock.close_gracefully()
        return keep_alive

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting connections. At shutdown, accept the ones that wait and close the listener.

        gunicorn would keep the listener open until all requests are answered, and then drop the
        connections that wait there.
        """
        super().set_accept_enabled(enabled)
        if enabled:
            for listener in self.sockets:
                self._register_last(listener)
        if enabled or self.alive:
            return
        for listener in self.sockets:
            while _has_waiting(listener):
                self.accept(listener)
            listener.close()

    def accept(self, listener: Any) -> None:
        """Accept a connection; the next one goes to another process."""
        super().accept(listener)
        if self._accepting:
            self._register_last(listener)

    def _register_last(self, listener: Any) -> None:
        """Make this process the last one that the kernel wakes for the next connection.

        gunicorn wakes all processes at once. On a quiet machine the same process is always the fastest, and
        would get all keep-alive connections, while the others are idle.
        """
        if self._epoll is not None:
            self._epoll.unregister(listener)
            self._epoll.register(listener, select.EPOLLIN | select.EPOLLEXCLUSIVE)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: Any) -> None:
        """Log and answer an error outside the application, in reading a request or sending its answer."""
        # Without the request: gunicorn would log its path, and some paths hold a secret.
        super().handle_error(None, _JsonErrorSocket(client), addr, exc)


def _has_waiting(listener: Any) -> bool:
    waiting = select.poll()
    waiting.register(listener.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


class Log(glogging.Logger):
    """Sends gunicorn's lines to the application's log, without the parts that quote a request.

    The request line and headers may hold e-mail addresses and secrets.
    """

    def setup(self, cfg: Any) -> None:
        """Configure logging as in every other process; gunicorn calls this first."""
        super().setup(cfg)
        logs.configure("web", read_log_settings())
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True
        self.error_log.setLevel(logging.NOTSET)

    def warning(self, msg: str, *args: Any, **more: Any) -> None:
        """Log a warning; of an invalid request, only where it came from."""
        refused = msg.startswith("Invalid request from ")
        self.error_log.warning(msg.partition(": ")[0] if refused else msg, *args, **more)

    def exception(self, msg: str, *args: Any, **more: Any) -> None:
        """Log an exception; of a failed request, not its line."""
        failed = msg.startswith("Error handling request %s")
        self.error_log.exception(*((msg.partition(" %s")[0],) if failed else (msg, *args)), **more)


class _JsonErrorSocket:
    """Replaces the client's socket while gunicorn writes its error page, to send JSON instead."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def sendall(self, page: bytes) -> None:
        """Send the status of ``page`` with a JSON body."""
        status_line = page.partition(b"\r\n")[0]
        self._client.sendall(json_error(status_line))


def json_error(status_line: bytes) -> bytes:
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
