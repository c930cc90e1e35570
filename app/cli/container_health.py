"""Health checks for containers: whether one part of an installation is alive on this host."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from app.server import local_http
from store.coordination.heartbeats import BEAT_SECONDS
from store.stores import Stores
from workers.settings import read_settings

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
    fault = local_http.fault(f"http://127.0.0.1:{port}{path}", seconds=SECONDS)
    if fault is not None:
        raise NotAlive(f"port {port} does not answer {path} as it should ({fault})")


def _worker(data: Path | None) -> None:
    # Imported here: the other checks run often and need no Celery.
    from workers import broker
    from workers.celery_app import create_celery

    settings = read_settings(data)
    with create_celery(settings) as celery:
        try:
            answers = broker.any_worker(celery, settings, seconds=SECONDS, host=socket.gethostname())
        except (BrokerError, OSError) as error:
            raise NotAlive(f"the broker does not answer ({type(error).__name__})") from error
    if not answers:
        raise NotAlive(f"no worker of this host answers within {SECONDS:.0f} seconds")


def cut_off(data: Path | None) -> list[str]:
    """A sentence for each worker of this host that cannot reach a provider while another worker can.

    Such a worker is alive: it takes no reads and writes until it reaches the provider again.
    """
    with Stores(read_settings(data)) as stores:
        try:
            isolated = stores.heartbeats.live_processes().isolated()
        except RedisError as error:
            return [f"Redis does not answer ({type(error).__name__}): isolation from providers is not known"]
    host = f"@{socket.gethostname()}"
    return [
        f"{worker} cannot reach {' and '.join(providers)}, and takes no reads and writes until it can"
        for worker, providers in isolated.items()
        if worker.endswith(host)
    ]


def _beat(data: Path | None) -> None:
    with Stores(read_settings(data)) as stores:
        try:
            ticks = stores.heartbeats.live_processes().beat_is_alive
        except RedisError as error:
            raise NotAlive(f"Redis does not answer ({type(error).__name__})") from error
    if not ticks:
        raise NotAlive(f"beat has not ticked for {BEAT_SECONDS:.0f} seconds")
