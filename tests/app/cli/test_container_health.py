"""The health check of a worker names the providers that a worker of this host cannot reach."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from app.cli import container_health
from store.coordination.heartbeats import UNREACHABLE, WORKERS, Heartbeats
from store.lua import ScriptRedis

HOST = socket.gethostname()


@pytest.fixture
def heartbeats(settings, monkeypatch):
    """Record heartbeats in a database without those of workers that other tests have started."""
    own = replace(settings, redis_url=f"{settings.redis_url}?db=6")
    monkeypatch.setattr(container_health, "read_settings", lambda data: own)
    with ScriptRedis.from_url(own.redis_url) as redis:
        redis.delete(WORKERS, UNREACHABLE)
        yield lambda name, *unreachable: Heartbeats(redis).record_worker(
            name, used=0, places=64, unreachable=unreachable
        )


def test_a_worker_of_this_host_that_is_isolated_is_named(heartbeats):
    heartbeats(f"cut-off@{HOST}", "google")
    heartbeats("cut-off@another", "google")
    heartbeats(f"well@{HOST}")
    assert container_health.cut_off(None) == [
        f"cut-off@{HOST} cannot reach google, and takes no reads and writes until it can"
    ]


def test_when_no_worker_reaches_a_provider_none_is_named(heartbeats):
    heartbeats(f"cut-off@{HOST}", "google")
    assert container_health.cut_off(None) == []
