"""HTTP servers of tests: each has a handler of its own, and runs in a thread of the test's process."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *_: object) -> None:
        pass

    def read_body(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Send an answer with its length."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class KeepAliveHandler(Handler):
    """Keeps connections open between requests, as servers of providers do."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True


class Server(ThreadingHTTPServer):
    """Does not wait for the threads of open connections when it is closed."""

    daemon_threads = True


def start(handler: type[BaseHTTPRequestHandler], port: int = 0, tls: ssl.SSLContext | None = None) -> Server:
    """Serve on a port, by default on a free one, until ``stop``."""
    server = Server(("127.0.0.1", port), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def stop(server: Server) -> None:
    """Close the port: connections are refused."""
    server.shutdown()
    server.server_close()


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The URL of a server on a free port."""
    server = start(handler, tls=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        stop(server)
