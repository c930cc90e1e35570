"""Runs the sandbox: one process, one port, one thread per connection."""

from __future__ import annotations

import gc
import signal
import sys
import traceback
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer

from providers.sandbox import controls
from providers.sandbox.exchange import Answer, Request
from providers.sandbox.google import api as google
from providers.sandbox.microsoft import api as microsoft
from providers.sandbox.wire import Connection
from providers.sandbox.world import World


class Server(ThreadingTCPServer):
    """Calls are handled one at a time; the delays of answers pass beside each other."""

    # Several hundred clients may connect at the same time.
    request_queue_size = 2048
    allow_reuse_address = True
    daemon_threads = True


def respond(world: World, request: Request) -> Answer:
    """Handle a call; an internal error is reported as such, in the answer and on standard error."""
    try:
        with world.lock:
            return dispatch(world, request)
    except Exception:
        traceback.print_exc()
        return controls.problem(500, "Internal error of the sandbox; its standard error has the traceback")


def dispatch(world: World, request: Request) -> Answer:
    """Dispatch a call by the first segment of its path."""
    path = request.path
    match path[0] if path else "":
        case "google":
            return google.respond(world, request)
        case "microsoft":
            return microsoft.respond(world, request)
        case "sandbox":
            return controls.respond(world, request)
    return controls.problem(404, "Paths begin with /google, /microsoft or /sandbox")


def serve(port: int, host: str = "127.0.0.1", ready_file: str | Path | None = None) -> None:
    """Serve until SIGTERM or SIGINT; port 0 takes a free one.

    Once it listens, it writes its URL to ``ready_file`` and prints a line to standard output.
    """
    world = World()
    # The process keeps millions of small objects: collecting garbage often would cost more than answering.
    gc.set_threshold(100_000, 50, 1000)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            Connection(self.request, lambda request: respond(world, request)).run()

    server = Server((host, port), Handler)
    url = f"http://{host}:{server.server_address[1]}"
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    if ready_file is not None:
        Path(ready_file).write_text(url + "\n", encoding="utf-8")
    print(f"Sandbox on {url}", flush=True)  # noqa: T201 - the one line that callers wait for
    server.serve_forever()
