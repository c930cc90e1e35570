"""Health checks of the broker."""

from __future__ import annotations

import secrets
import socket
import time
from dataclasses import replace

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from tests import services
from workers import broker
from workers.queues import Queue


@pytest.fixture(params=["embedded Redis", "RabbitMQ"])
def brokered(request, runtime):
    """Settings of either broker."""
    if request.param == "RabbitMQ":
        services.rabbitmq().require()
        yield replace(runtime.settings, broker_url=services.RABBITMQ)
    else:
        yield runtime.settings


def test_a_task_that_no_worker_has_taken_waits_in_its_queue(brokered, monkeypatch):
    # Other programs of this machine may use the same RabbitMQ.
    names = [f"{queue}-{secrets.token_hex(6)}" for queue in Queue]
    monkeypatch.setattr(broker, "Queue", names)
    with Connection(brokered.broker_url) as connection:
        full, empty = (connection.SimpleQueue(name) for name in names[:2])
        for _ in range(3):
            full.put({})
        give_up = time.monotonic() + 10
        while broker.lengths(brokered)[names[0]] < 3:
            assert time.monotonic() < give_up
            time.sleep(0.05)

        assert broker.lengths(brokered) == {names[0]: 3} | dict.fromkeys(names[1:], 0)
        for each in (full, empty):
            each.queue.delete()
            each.close()


def test_without_a_worker_no_ping_is_answered(celery, runtime):
    began = time.monotonic()

    assert not broker.any_worker(celery, runtime.settings, seconds=0.2)
    assert time.monotonic() - began < 5


@pytest.mark.slow
@pytest.mark.parametrize("url", ["redis://127.0.0.1:{}/0", "amqp://guest:guest@127.0.0.1:{}//"])
def test_a_broker_that_hangs_is_given_up(runtime, url):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = replace(runtime.settings, broker_url=url.format(silent.getsockname()[1]))
        began = time.monotonic()
        with pytest.raises((OperationalError, OSError)):
            broker.lengths(settings)
        assert time.monotonic() - began < 10
