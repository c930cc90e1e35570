"""The app that ``celery -A workers.main`` finds: made from the environment, in worker, beat and Flower."""

from __future__ import annotations

import sys
from typing import Any

from celery.signals import celeryd_init, setup_logging

from store.log_settings import read_log_settings
from store.settings import read_settings
from workers import logs
from workers.celery_app import create_celery

# Celery's commands by which a process is known; a worker has a name of its own.
_COMMANDS = ("worker", "beat", "flower")
_name = next((word for word in sys.argv[1:] if word in _COMMANDS), "celery")


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _called(sender: str, **_: Any) -> None:
    """A worker's name is the part of its host name that tells it apart."""
    global _name
    _name = sender.partition("@")[0]


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log(**_: Any) -> None:
    """In place of Celery's own set-up: its lines go the way of all others."""
    logs.configure(_name, read_log_settings())


celery = create_celery(read_settings())
