"""Keep-alive connections are spread over the web processes."""

from __future__ import annotations

import http.client
import os
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.installation.processes import START_SECONDS, web_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into /proc"),
]

PROCESSES = 4
# Of a TCP connection, as Linux writes it.
ESTABLISHED = "01"


def answered(port: int) -> http.client.HTTPConnection:
    """A keep-alive connection that has had an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    return connection


def holders(port: int, connections: Iterable[http.client.HTTPConnection]) -> list[str]:
    """The process at the other end of each connection, in order."""
    inodes = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *_, inode = line.split()[:10]
        if state == ESTABLISHED and int(local.partition(":")[2], 16) == port:
            inodes[int(remote.partition(":")[2], 16)] = f"socket:[{inode}]"
    owners = {}
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            owners[os.readlink(file)] = file.parts[2]
        except OSError:
            # The file was closed, or its process has ended.
            continue
    return [owners[inodes[each.sock.getsockname()[1]]] for each in connections]


def test_all_processes_take_connections(environment, database):
    with web_server(environment, count=PROCESSES) as port, ExitStack() as open_:
        # Only new connections are looked up: on a busy machine, the server may have closed idle ones.
        seen: set[str] = set()
        give_up = time.monotonic() + START_SECONDS
        while len(seen) < PROCESSES:
            assert time.monotonic() < give_up, "a process takes none"
            first = [open_.enter_context(closing(answered(port))) for _ in range(PROCESSES)]
            seen.update(holders(port, first))
        kept = [open_.enter_context(closing(answered(port))) for _ in range(16 * PROCESSES)]
        taken = Counter(holders(port, kept))

    # The kernel spreads them by chance: 16 each on average.
    assert len(taken) == PROCESSES
    assert min(taken.values()) >= 3, taken
