"""Optional services besides the embedded default: used where present, required in CI."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psycopg
import pytest
import redis
from kombu import Connection
from kombu.exceptions import OperationalError

POSTGRESQL = os.environ.get("ALMANAC_TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/test")
REDIS = os.environ.get("ALMANAC_TEST_REDIS_URL", "redis://127.0.0.1:6379/9")
RABBITMQ = os.environ.get("ALMANAC_TEST_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672//")

AXE = Path(__file__).parent / "browser/node_modules/axe-core/axe.min.js"

# Seconds; a missing service refuses at once. The result holds for all tests of a process.
PATIENCE = 10

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")


@dataclass(frozen=True)
class Service:
    """Whether a service is available, and its name and version."""

    name: str
    version: str | None

    @property
    def present(self) -> bool:
        return self.version is not None

    def require(self) -> None:
        """Skip the test on a machine that lacks the service; in CI that is a failure."""
        if self.present:
            return
        if IN_CI:
            pytest.fail(f"{self.name} is missing, and CI needs it")
        pytest.skip(f"{self.name} is not on this machine")


@cache
def postgresql() -> Service:
    try:
        with psycopg.connect(POSTGRESQL, connect_timeout=PATIENCE) as connection:
            return Service("PostgreSQL", str(connection.info.server_version // 10_000))
    except psycopg.Error:
        return Service("PostgreSQL", None)


@cache
def redis_server() -> Service:
    client = redis.Redis.from_url(REDIS, socket_connect_timeout=PATIENCE)
    try:
        return Service("Redis", client.info("server")["redis_version"])
    except redis.RedisError:
        return Service("Redis", None)
    finally:
        client.close()


@cache
def rabbitmq() -> Service:
    try:
        with Connection(RABBITMQ, connect_timeout=PATIENCE) as connection:
            connection.ensure_connection(max_retries=1, timeout=PATIENCE)
            properties = connection.transport.driver_version()
            return Service("RabbitMQ", f"amqp {properties}")
    except (OperationalError, OSError):
        return Service("RabbitMQ", None)


def chromium() -> Service:
    """The browser with its driver, by its path."""
    driver = shutil.which("chromedriver")
    return Service("Chromium", shutil.which("chromium") if driver else None)


def axe() -> Service:
    """The rules of accessibility, by the path of their script; `make test-browser` fetches them."""
    return Service("axe-core", str(AXE) if AXE.exists() else None)
