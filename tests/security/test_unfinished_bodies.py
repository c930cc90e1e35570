"""Bodies that never end hold little memory, and those of one tenant leave room for the bodies of others."""

from __future__ import annotations

import json
import os
import re
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.server import commands
from tests.installation.processes import family, free_port, listens, running, wait_until
from tests.waiting import until

pytestmark = [pytest.mark.security, pytest.mark.timeout(300)]

MIB = 1024 * 1024
CLIENTS = 240
SENT = 1_000_000
FORM = ("/dashboard/sign-in", "application/x-www-form-urlencoded")
# Threads, buffers of sockets, and what Python has not given back yet.
MARGIN = 96 * MIB


@dataclass
class Web:
    """A web server of one process."""

    port: int
    pid: int

    @property
    def memory(self) -> int:
        """Bytes that all its processes hold."""
        pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in family(self.pid)]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE")

    def begin(
        self, key: str | None, path: str = "/v1/users", kind: str = "application/json"
    ) -> socket.socket:
        """Send the head of a request and all of its body but the end."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        head = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Type: {kind}"]
        head += [f"Content-Length: {SENT + 1}"] + ([f"Authorization: Bearer {key}"] if key else [])
        connection.sendall("\r\n".join([*head, "", ""]).encode())
        # The server may have refused it.
        with suppress(OSError):
            connection.sendall(b"x" * SENT)
        return connection


@pytest.fixture(scope="module")
def web(environment: dict[str, str], database: object) -> Iterator[Web]:
    port = free_port()
    command = commands.web("127.0.0.1", port, 1)
    with running(command, {**environment, "PATH": os.environ["PATH"]}) as process:
        wait_until(lambda: listens(port), [process])
        web = Web(port, process.pid)
        # The modules that the first requests load are not measured.
        with ExitStack() as clients:
            for connection in [clients.enter_context(web.begin(None)) for _ in range(40)]:
                answer(connection)
            form = clients.enter_context(web.begin(None, *FORM))
            form.sendall(b"x")
            status_of(form)
        yield web


def answered(connections: list[socket.socket]) -> list[socket.socket]:
    """Those of the connections that have an answer."""
    return select.select(connections, (), (), 0)[0]


def answer(connection: socket.socket) -> tuple[int, dict]:
    """The status and the JSON body of an answer."""
    head, _, body = whole(connection).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def status_of(connection: socket.socket) -> int:
    return int(whole(connection).split()[1])


def whole(connection: socket.socket) -> bytes:
    """An answer, which may leave the connection open."""
    received = b""
    connection.settimeout(30)
    with suppress(ConnectionResetError):
        while not is_whole(received) and (piece := connection.recv(65_536)):
            received += piece
    return received


def is_whole(received: bytes) -> bool:
    head, end, body = received.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return bool(end and length) and len(body) >= int(length[1])


def largest(web: Web, seconds: float = 3.0) -> int:
    """The most memory that is held within this time."""
    ends, most = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        most = max(most, web.memory)
        time.sleep(0.05)
    return most


@pytest.mark.parametrize("key", [None, "alm_", "alm_" + "x" * 32])
def test_bodies_without_a_valid_key_are_not_kept(web, key):
    before = web.memory
    with ExitStack() as clients:
        sent = [clients.enter_context(web.begin(key)) for _ in range(CLIENTS)]
        held = largest(web) - before

        assert held < MARGIN
        status, body = answer(sent[0])
    assert (status, body["code"]) == (401, "apiKeyInvalid" if key else "apiKeyMissing")


def test_bodies_of_one_tenant_use_its_share_and_leave_room_for_others(
    web, api, new_api, new_organization, unique
):
    hostile = new_api(new_organization())
    before = web.memory
    with ExitStack() as clients:
        sent = [clients.enter_context(web.begin(hostile.key)) for _ in range(CLIENTS)]
        held = largest(web) - before

        assert held < 32 * MIB + MARGIN
        # Another tenant sends a body of the same size meanwhile, and it arrives.
        other = clients.enter_context(web.begin(api.key))
        time.sleep(1)
        other.sendall(b"x")
        assert answer(other)[1]["code"] == "malformedBody"
        # Most of the hostile ones were refused at once.
        until(lambda: len(answered(sent)) > CLIENTS / 2)
        answers = [answer(each) for each in answered(sent)]
        refused = [body for status, body in answers if status == 429]
        assert {(each["code"], each["quota"], each["retryAfter"]) for each in refused} == {
            ("quotaExceeded", "bodyBytes", 1)
        }
    # All of it is given back.
    until(lambda: web_takes(web, hostile.key))


def web_takes(web: Web, key: str) -> bool:
    with web.begin(key) as connection:
        connection.sendall(b"x")
        return answer(connection)[1]["code"] == "malformedBody"


def test_bodies_that_need_no_key_share_one_share(web, api):
    before = web.memory
    with ExitStack() as clients:
        sent = [clients.enter_context(web.begin(None, *FORM)) for _ in range(CLIENTS)]
        held = largest(web) - before

        assert held < 32 * MIB + MARGIN
        # Beside three other processes of tests on two cores, 50 s were not always enough.
        until(lambda: len(answered(sent)) > CLIENTS / 2, 150)
        # The first ones were kept, and may have timed out on a busy machine.
        assert 503 in {status_of(each) for each in answered(sent)} <= {503, 408}
        assert web_takes(web, api.key)
