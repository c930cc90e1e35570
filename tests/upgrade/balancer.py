"""A load balancer of TCP connections with health checks, as operators put one in front of web processes."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterable
from contextlib import closing, suppress
from typing import Self

import requests

from tests.installation import processes

# Seconds between two checks of a server.
CHECKS = 0.25


class Balancer:
    """Listens at ``port`` and carries each connection to one of the ``servers`` that are alive.

    ``servers`` are ports of this machine. If one refuses a connection, the next one gets it: no byte of the
    request has been sent then.
    """

    def __init__(self, servers: Iterable[int]) -> None:
        self.servers = list(servers)
        self.port = processes.free_port()
        self._checked: set[int] = set()
        self._turns = itertools.count()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=128)
        for work in (self._check, self._accept):
            thread = threading.Thread(target=work)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join()

    def remove(self, server: int) -> None:
        """Send no more connections to a server; its open connections stay."""
        self.servers.remove(server)
        self._checked.discard(server)

    def _check(self) -> None:
        while not self._stopped.wait(CHECKS):
            for server in list(self.servers):
                if _alive(server):
                    self._checked.add(server)
                else:
                    self._checked.discard(server)
            self._checked.intersection_update(self.servers)

    def _accept(self) -> None:
        # It ends when the socket is closed.
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with closing(client):
            server = self._connect()
            if server is None:
                return
            with closing(server):
                sending = threading.Thread(target=_pump, args=(client, server), daemon=True)
                sending.start()
                _pump(server, client)
                sending.join(timeout=60)

    def _connect(self) -> socket.socket | None:
        # A check may fail on a busy machine; then all servers are tried.
        servers = sorted(self._checked) or list(self.servers)
        first = next(self._turns)
        for n in range(len(servers)):
            with suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", servers[(first + n) % len(servers)]))
        return None


def _alive(server: int) -> bool:
    """Whether a server answers for itself, as the chart's probes ask.

    Releases before 1.0 answer 503 to ``/readyz`` as soon as a later one has migrated the database.
    """
    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.get(f"http://127.0.0.1:{server}/healthz", timeout=10).ok
        except requests.RequestException:
            return False


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Forward what one end sends, and its end."""
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
