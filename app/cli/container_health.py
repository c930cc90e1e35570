"""Health checks for containers: whether one part of an installation is alive on this host."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from store.config.settings import read_settings
from store.coordination.heartbeats import BEAT_SECONDS
from store.stores import Stores

SECONDS = 5.0


class NotAlive(Exception):
    """The part does not answer; the message has the details."""


def check(part: str, port: int | None, prefix: str = "", data: Path | None = None) -> None:
    """Check one part of this host; ``port`` and ``prefix`` are those on which web or Flower listens.

    :raise NotAlive: when the part does not answer correctly
    """
    checks: dict[str, Callable[[], None]] = {
        "web": lambda: _http(port or 8080, "/healthz"),
        "worker": lambda: _worker(data),
        "beat": lambda: _beat(data),
        "flower": lambda: _http(port or 5555, f"{prefix}/healthcheck"),
    }
    checks[part]()


def _http(port: int, path: str) -> None:
    # Ignore the environment's proxies: the request stays on this host.
    opener = build_opener(ProxyHandler({}))
    try:
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=SECONDS):
            return
    except (URLError, OSError) as error:
        raise NotAlive(f"port {port} does not answer {path} as it should ({error})") from error


def _worker(data: Path | None) -> None:
    # Imported here: the other checks run often and need no Celery.
    from workers.celery_app import create_celery

    pattern = f"*@{socket.gethostname()}"
    with create_celery(read_settings(data)) as celery:
        try:
            replies = celery.control.ping(timeout=SECONDS, limit=1, pattern=pattern, matcher="glob")
        except (BrokerError, OSError) as error:
            raise NotAlive(f"the broker does not answer ({type(error).__name__})") from error
    if not replies:
        raise NotAlive(f"no worker of this host answers within {SECONDS:.0f} seconds")


def _beat(data: Path | None) -> None:
    with Stores(read_settings(data)) as stores:
        try:
            ticks = stores.heartbeats.present().beats
        except RedisError as error:
            raise NotAlive(f"Redis does not answer ({type(error).__name__})") from error
    if not ticks:
        raise NotAlive(f"beat has not ticked for {BEAT_SECONDS:.0f} seconds")
