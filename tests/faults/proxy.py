"""A network between two programs of this machine: it takes its time, and may lose its memory."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Network:
    """Whoever connects to ``port`` speaks to ``beyond``; everything takes ``seconds``, each way."""

    def __init__(self, port: int, beyond: int, seconds: float) -> None:
        self.seconds = seconds
        # Pieces of what was said, either way, that took their time; and those that were lost.
        self.delayed = self.dropped = 0
        self._beyond = beyond
        self._ends: list[socket.socket] = []
        self._lost: set[socket.socket] = set()
        self._carrying: list[threading.Thread] = []
        self._listening = socket.create_server(("127.0.0.1", port), backlog=512)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def forget(self) -> None:
        """Lose every connection without a word: both ends think that it is there, and nothing comes."""
        self._lost.update(self._ends)

    def close(self) -> None:
        """End every connection, and listen no more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for carrying in self._carrying:
            carrying.join()
        for end in self._ends:
            end.close()

    def _accept(self) -> None:
        # The end of the listening socket is the end of the loop.
        with suppress(OSError):
            while True:
                here, _ = self._listening.accept()
                there = socket.create_connection(("127.0.0.1", self._beyond))
                self._ends += here, there
                for way in ((here, there), (there, here)):
                    carrying = threading.Thread(target=self._carry, args=way, daemon=True)
                    carrying.start()
                    self._carrying.append(carrying)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        """Until either end is closed."""
        with suppress(OSError):
            while data := source.recv(65_536):
                time.sleep(self.seconds)
                self.delayed += self.seconds > 0
                if source in self._lost:
                    self.dropped += 1
                else:
                    target.sendall(data)
        if source not in self._lost:
            for end in (source, target):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


@contextmanager
def network(port: int, beyond: int, seconds: float = 0.0) -> Iterator[Network]:
    """One for the block."""
    made = Network(port, beyond, seconds)
    try:
        yield made
    finally:
        made.close()
