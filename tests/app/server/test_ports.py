"""Ports that commands refuse to share, name and suggest; and the level at which a start is logged."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from app.server import commands
from tests.installation.processes import free_port, listens, running, stop, wait_until

pytestmark = pytest.mark.slow

ALMANAC = Path(sys.executable).parent / "almanac"
# It answers without a database, and is imported quickly.
TARGET = "tests.benchmarks.bare:asgi"


@pytest.fixture
def taken() -> Iterator[tuple[int, int]]:
    """Two ports of a server that would share them, as the web server of another installation does."""
    with ExitStack() as stack:
        ports = []
        for _ in range(2):
            listener = stack.enter_context(socket.socket())
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            ports.append(listener.getsockname()[1])
        yield ports[0], ports[1]


def run(*words: str, data: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    return subprocess.run(
        [ALMANAC, *words],
        env=environment | {"ALMANAC_DATA_DIR": str(data)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("command", ["serve", "sandbox", "flower", "up"])
def test_a_command_refuses_a_port_that_is_in_use(command: str, taken, tmp_path: Path):
    refused = run(command, "--port", str(taken[0]), data=tmp_path)

    assert refused.returncode == 1
    assert refused.stdout == ""
    assert re.fullmatch(
        rf"Error: Port {taken[0]} is in use\. With free ports: \S*almanac {command} --port \d+\n",
        refused.stderr,
    )


def test_all_ports_in_use_are_named_at_once_with_a_command_that_has_free_ones(taken, tmp_path: Path):
    own = free_port()

    ports = (f"--port={taken[0]}", "--sandbox-port", str(own), "--booking-port", str(taken[1]))
    refused = run("--verbose", "demo", *ports, data=tmp_path)

    assert refused.returncode == 1
    assert f"Ports {taken[0]} and {taken[1]} are in use" in refused.stderr
    words = shlex.split(refused.stderr.partition("With free ports: ")[2])
    assert words[:5] == [str(ALMANAC), "--verbose", "demo", "--sandbox-port", str(own)]
    offered = dict(zip(words[5::2], words[6::2], strict=True))
    assert offered.keys() == {"--port", "--booking-port"}
    assert len({*offered.values(), str(own)}) == 3
    assert not any(listens(int(port)) for port in offered.values())


def test_two_parts_cannot_have_the_same_port(tmp_path: Path):
    port = free_port()

    refused = run("demo", "--port", str(port), "--sandbox-port", str(port), data=tmp_path)

    assert f"Port {port} is in use" in refused.stderr
    assert re.search(r"demo --port \d+ .*--sandbox-port \d+$", refused.stderr)


def test_an_address_of_another_machine_is_named(tmp_path: Path):
    refused = run("serve", "--host", "192.0.2.1", data=tmp_path)

    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: Almanac cannot listen on 192.0.2.1, port 8080: ")


def test_of_two_servers_that_start_at_the_same_moment_one_listens(tmp_path: Path):
    port = free_port()
    command = commands.web("127.0.0.1", port, 2, TARGET)
    with (tmp_path / "log").open("wb") as log:
        servers = [subprocess.Popen(command, stderr=log) for _ in range(2)]
        try:
            wait_until(lambda: any(each.poll() is not None for each in servers), [])
            (serving,) = (each for each in servers if each.poll() is None)
            wait_until(lambda: listens(port), [serving])
        finally:
            stop(servers)
    assert sorted(each.returncode for each in servers) == [0, 1]
    refusal = f"Error: Port {port} is in use; choose another with --port\n"
    assert (tmp_path / "log").read_text().count(refusal) == 1


def test_a_server_starts_on_the_port_of_one_that_has_just_ended():
    """Connections of the earlier server may still be about to end."""
    port = free_port()
    command = commands.web("127.0.0.1", port, 2, TARGET)
    for _ in range(2):
        with subprocess.Popen(command) as server, requests.Session() as session:
            try:
                wait_until(lambda: listens(port), [server])
                session.get(f"http://127.0.0.1:{port}/hello", timeout=10)
            finally:
                stop([server])


@pytest.mark.parametrize(("level", "logged"), [("warning", False), ("info", True)])
def test_a_start_is_logged_at_the_level_info(level: str, logged: bool, tmp_path: Path):
    port = free_port()
    command = commands.web("127.0.0.1", port, 1, "tests.benchmarks.bare:asgi")
    log = tmp_path / "log"
    with log.open("wb") as output, running(command, os.environ | {"ALMANAC_LOG_LEVEL": level}, output) as web:
        wait_until(lambda: listens(port), [web])

    assert (" INFO _granian: " in log.read_text()) == logged
