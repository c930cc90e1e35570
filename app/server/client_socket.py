"""A client socket with a time budget. gunicorn's own waits for ever, and a waiting client holds a thread."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from gunicorn import util

# The total time to wait for a client until its request has arrived, in seconds.
PATIENCE = 15.0

# Many clients send all of a refused body before they read the answer: at most this many bytes of it are
# discarded. A longer rest resets the connection.
LARGEST_DISCARDED = 16 * 1024 * 1024

# For this many bytes of the answer received, a client gets another second, up to PATIENCE.
BYTES_A_SECOND = 4096

Moved = TypeVar("Moved")


class ClientSocket(socket.socket):
    """A client's connection with ``left`` seconds to wait for it. Without time left, it counts as reset."""

    left = PATIENCE

    def restart_timer(self) -> None:
        """Restore the whole time budget, before a request."""
        self.left = PATIENCE

    def recv(self, *args: Any) -> bytes:
        """Receive data."""
        return self._timed(super().recv, *args)

    def send(self, data: Any, *args: Any) -> int:
        """Send data; returns the number of bytes sent."""
        sent = self._timed(super().send, data, *args)
        self.left = min(PATIENCE, self.left + sent / BYTES_A_SECOND)
        return sent

    def sendall(self, data: Any, *args: Any) -> None:
        """Send all of ``data``."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.send(rest, *args) :]

    def close_gracefully(self) -> None:
        """Shut down, and wait a moment for the client to close; closing then returns at once."""
        if self.fileno() >= 0:
            twin = self.dup()
            twin.left = self.left
            util.close_graceful(twin, max_drain=LARGEST_DISCARDED)
        self.left = 0.0

    def _timed(self, move: Callable[..., Moved], *args: Any) -> Moved:
        before, began = self.gettimeout(), time.monotonic()
        if before == 0.0:
            return move(*args)
        if self.left <= 0:
            raise ConnectionResetError(errno.ECONNRESET, "too slow")
        self.settimeout(self.left if before is None else min(before, self.left))
        try:
            return move(*args)
        except TimeoutError:
            if before is not None:
                raise
            raise ConnectionResetError(errno.ECONNRESET, "too slow") from None
        finally:
            self.left -= time.monotonic() - began
            self.settimeout(before)
