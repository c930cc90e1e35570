"""A network between two programs of this machine that takes its time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def slow(port: int, beyond: int, seconds: float) -> Iterator[None]:
    """Whoever connects to ``port`` speaks to ``beyond``; everything takes so long on its way, each way."""
    with socket.create_server(("127.0.0.1", port), backlog=512) as listening:
        ends: list[socket.socket] = []

        def accept() -> None:
            # The end of the listening socket is the end of the loop.
            with suppress(OSError):
                while True:
                    here, _ = listening.accept()
                    there = socket.create_connection(("127.0.0.1", beyond))
                    ends.extend((here, there))
                    for way in ((here, there), (there, here)):
                        threading.Thread(target=carry, args=(*way, seconds), daemon=True).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for end in ends:
                end.close()


def carry(source: socket.socket, target: socket.socket, seconds: float) -> None:
    """Until either end is closed."""
    with suppress(OSError):
        while data := source.recv(65_536):
            time.sleep(seconds)
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
