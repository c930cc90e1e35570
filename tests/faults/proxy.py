"""A network between two programs of this machine, which a test slows down, cuts or makes lose packets."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Network:
    """Carries each connection to ``port`` on to the port ``beyond``.

    Each chunk takes ``seconds``, each way. A share of the chunks, ``loss``, takes ``RETRANSMISSION`` longer:
    TCP sends a lost packet again, so that both ends see a pause.
    """

    # The shortest time after which Linux sends a packet again.
    RETRANSMISSION = 0.2

    def __init__(self, port: int, beyond: int, seconds: float) -> None:
        self.port = port
        self.seconds = seconds
        self.loss = 0.0
        # Chunks, either way, that were delayed; that were dropped; and that were sent again.
        self.delayed = self.dropped = self.repeated = 0
        # Chunks that were carried.
        self.carried = 0
        self._beyond = beyond
        self._random = random.Random(port)
        self._hanging = False
        self._ends: list[socket.socket] = []
        self._lost: set[socket.socket] = set()
        self._carrying: list[threading.Thread] = []
        self._listen()

    def forget(self) -> None:
        """Drop every connection silently: both ends keep it open, and no data arrives."""
        self._lost.update(self._ends)

    def hang(self) -> None:
        """Accept connections from now on, and never answer; the open connections hang too."""
        self._hanging = True
        self.forget()

    def refuse(self) -> None:
        """Refuse connections from now on, and close the open ones."""
        self._stop_listening()
        self._hanging = False
        self._end_all()

    def forward(self) -> None:
        """Forward again, and close hanging connections."""
        self._hanging = False
        self._end_all()
        if self._listening.fileno() < 0:
            self._listen()

    def close(self) -> None:
        """Close every connection, and stop listening."""
        if self._listening.fileno() >= 0:
            self._stop_listening()
        self._end_all()

    def _listen(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=512)
        self._accepting = threading.Thread(target=self._accept, args=(self._listening,), daemon=True)
        self._accepting.start()

    def _stop_listening(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()

    def _end_all(self) -> None:
        ends, self._ends = self._ends, []
        carrying, self._carrying = self._carrying, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in carrying:
            thread.join()
        for end in ends:
            end.close()
        self._lost.difference_update(ends)

    def _accept(self, listening: socket.socket) -> None:
        # The end of the listening socket is the end of the loop.
        with suppress(OSError):
            while True:
                here, _ = listening.accept()
                there = socket.create_connection(("127.0.0.1", self._beyond))
                if self._hanging:
                    self._lost.update((here, there))
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
                if self._random.random() < self.loss:
                    self.repeated += 1
                    time.sleep(self.RETRANSMISSION)
                if source in self._lost:
                    self.dropped += 1
                else:
                    self.carried += 1
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
