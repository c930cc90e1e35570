"""The socket of a client, who is waited for only so long: gunicorn waits for ever, with a thread for each."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from gunicorn import util

# For how long a client is waited for in all, in seconds, until its request is there.
PATIENCE = 15.0

# Many clients send a refused body to its end before they read the answer. In bytes; a longer rest resets
# the connection.
LARGEST_DISCARDED = 16 * 1024 * 1024

# Who takes so many bytes of the answer is waited for a second longer; never longer than PATIENCE at once.
BYTES_A_SECOND = 4096

Moved = TypeVar("Moved")


class Hurried(socket.socket):
    """A client's connection with so many seconds left; one that has used them up counts as gone."""

    left = PATIENCE

    def begin(self) -> None:
        """Wait anew: a request is about to come."""
        self.left = PATIENCE

    def recv(self, *args: Any) -> bytes:
        """What has come."""
        return self._hurry(super().recv, *args)

    def send(self, data: Any, *args: Any) -> int:
        """How much of ``data`` is on its way."""
        sent = self._hurry(super().send, data, *args)
        self.left = min(PATIENCE, self.left + sent / BYTES_A_SECOND)
        return sent

    def sendall(self, data: Any, *args: Any) -> None:
        """Send ``data`` as fast as it is taken."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.send(rest, *args) :]

    def part(self) -> None:
        """Say goodbye, and wait a moment for the client's; whoever closes it need not wait again."""
        if self.fileno() >= 0:
            twin = self.dup()
            twin.left = self.left
            util.close_graceful(twin, max_drain=LARGEST_DISCARDED)
        self.left = 0.0

    def _hurry(self, move: Callable[..., Moved], *args: Any) -> Moved:
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
