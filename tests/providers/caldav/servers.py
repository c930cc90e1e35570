"""Real CalDAV servers as processes of the tests, on ports of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import caldav
import requests

from tests.waiting import until

USER, PASSWORD = "ada", "correct horse:battery"


@dataclass(frozen=True, slots=True)
class CalDavServer:
    """A running server with an account. ``checks_passwords``: it refuses a wrong one."""

    name: str
    url: str
    checks_passwords: bool

    def client(self) -> caldav.DAVClient:
        """A client that is not ours."""
        return caldav.DAVClient(url=self.url, username=USER, password=PASSWORD)

    def new_calendar(self, name: str) -> caldav.Calendar:
        """A calendar with one name, made by that client."""
        return self.client().principal().make_calendar(name=name)


def free_port() -> int:
    """A port on which no process listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(command: list[str], url: str, folder: Path) -> Iterator[None]:
    """A server process, once it answers."""
    log = (folder / "log").open("wb")
    environment = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        until(lambda: process.poll() is not None or _answers(url))
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.terminate()
        process.wait()
        log.close()


def _answers(url: str) -> bool:
    try:
        return requests.options(url, timeout=5).status_code < 500
    except requests.ConnectionError:
        return False


@contextmanager
def radicale(folder: Path) -> Iterator[CalDavServer]:
    """https://radicale.org"""
    port = free_port()
    (folder / "users").write_text(f"{USER}:{PASSWORD}\n")
    options = {
        "server-hosts": f"127.0.0.1:{port}",
        "auth-type": "htpasswd",
        "auth-htpasswd-filename": str(folder / "users"),
        "auth-htpasswd-encryption": "plain",
        "auth-delay": "0",
        "storage-filesystem-folder": str(folder / "collections"),
    }
    command = [sys.executable, "-m", "radicale", "--config", ""]
    command += [f"--{name}={value}" for name, value in options.items()]
    url = f"http://127.0.0.1:{port}/"
    with running(command, url, folder):
        server = CalDavServer("radicale", url, checks_passwords=True)
        server.new_calendar("Work")
        yield server


@contextmanager
def xandikos(folder: Path) -> Iterator[CalDavServer]:
    """https://www.xandikos.org"""
    port = free_port()
    script = str(Path(sys.executable).parent / "xandikos")
    command = [script, "serve", "-d", str(folder / "collections"), "--defaults", "-l", "127.0.0.1"]
    command += ["-p", str(port), "--current-user-principal", f"/{USER}/", "--state-dir", str(folder)]
    url = f"http://127.0.0.1:{port}/"
    with running(command, url, folder):
        yield CalDavServer("xandikos", url, checks_passwords=False)


SERVERS = {"radicale": radicale, "xandikos": xandikos}
