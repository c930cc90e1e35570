"""The Celery app of Flower: it knows the broker and the queues, and runs no task.

Worker and beat use ``workers.main``, which needs the database and the secrets of the installation.
"""

from __future__ import annotations

from typing import Any

from celery import Celery
from celery.signals import setup_logging
from kombu import Queue as KombuQueue

from store.config.settings import read_flower_settings, read_log_settings
from workers.celery_app import tls_options, transport_options
from workers.queues import Queue
from workers.telemetry import logs


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log(**_: Any) -> None:
    """Log in the same format as the other processes."""
    logs.configure("flower", read_log_settings())


def _create(broker_url: str) -> Celery:
    app = Celery("almanac", broker=broker_url)
    app.conf.update(
        accept_content=["json"],
        task_queues=[KombuQueue(queue) for queue in Queue],
        broker_connection_retry_on_startup=True,
        broker_transport_options=transport_options(broker_url),
        broker_use_ssl=tls_options(broker_url),
        timezone="UTC",
    )
    return app


celery = _create(read_flower_settings().broker_url)
