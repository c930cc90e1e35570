"""Health checks of the broker."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Queue as Received

import pytest
from kombu import Connection
from kombu.exceptions import OperationalError

from store.config import service_urls
from tests import services
from tests.certificates import issue
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


HOST = "127.0.0.1"


class Listener:
    """A TLS server with a certificate of its own; ``received`` is what each client sent to it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.certificate, self._context = issue(folder, name)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.received: Received[bytes] = Received()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                try:
                    with self._context.wrap_socket(client, server_side=True) as encrypted:
                        self.received.put(encrypted.recv(100))
                except OSError:
                    self.received.put(b"")


@pytest.fixture
def listener(tmp_path, request):
    found = Listener(tmp_path, getattr(request, "param", HOST))
    yield found
    found.socket.close()


@pytest.mark.parametrize("scheme", ["rediss", "amqps"])
def test_a_broker_with_an_unknown_certificate_gets_no_password(runtime, listener, scheme):
    url = service_urls.broker(f"{scheme}://ada:secret@{HOST}:{listener.port}/0")

    with pytest.raises((OperationalError, OSError)):
        broker.transport(replace(runtime.settings, broker_url=url), seconds=1)

    assert listener.received.get(timeout=5) == b""


@pytest.mark.parametrize("scheme", ["rediss", "amqps"])
@pytest.mark.parametrize(
    ("listener", "known"), [(HOST, True), ("other.example", False)], indirect=["listener"]
)
def test_a_broker_is_known_by_a_trusted_certificate_for_its_name(
    runtime, listener, scheme, known, monkeypatch
):
    # OpenSSL reads the variable, and trusts what the file has.
    monkeypatch.setenv("SSL_CERT_FILE", str(listener.certificate))
    url = service_urls.broker(f"{scheme}://ada:secret@{HOST}:{listener.port}/0")

    with pytest.raises((OperationalError, OSError)):
        broker.transport(replace(runtime.settings, broker_url=url), seconds=1)

    assert bool(listener.received.get(timeout=5)) == known
