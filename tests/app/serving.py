"""A real web server, as in production, for tests that need a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from app.server import commands
from tests.conftest import START_SECONDS, STOP_SECONDS


@contextmanager
def web_server(environment: Mapping[str, str], *, count: int, target: str = "app.asgi:app") -> Iterator[int]:
    """Start a server with ``count`` processes; yields its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = commands.web("127.0.0.1", port, count, target)
    with subprocess.Popen(command, env={**environment, "PATH": os.environ["PATH"]}) as server:
        give_up = time.monotonic() + START_SECONDS
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None
            assert time.monotonic() < give_up, "the server does not listen"
            time.sleep(0.05)
        try:
            yield port
        finally:
            server.terminate()
            server.wait(timeout=STOP_SECONDS)
