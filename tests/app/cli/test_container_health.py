"""The health check of a worker names the providers that a worker of this host cannot reach."""

from __future__ import annotations

import socket

import pytest

from app.cli import container_health
from store.coordination.heartbeats import UNREACHABLE, WORKERS

HOST = socket.gethostname()


@pytest.fixture
def heartbeats(stores, settings, monkeypatch):
    monkeypatch.setattr(container_health, "read_settings", lambda data: settings)
    names = [f"cut-off@{HOST}", f"well@{HOST}", "cut-off@another"]
    yield lambda name, *unreachable: stores.heartbeats.record_worker(
        name, used=0, places=64, unreachable=unreachable
    )
    for key in (WORKERS, UNREACHABLE):
        stores.redis.hdel(key, *names)


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
