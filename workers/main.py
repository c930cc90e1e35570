"""The app that ``celery -A workers.main`` finds: made from the environment, in worker and beat."""

from __future__ import annotations

import sys
from typing import Any

from celery.signals import celeryd_init, setup_logging

from store.config.log_settings import read_log_settings
from store.config.settings import SettingsError, read_settings
from workers import broker
from workers.celery_app import Almanac, create_celery
from workers.telemetry import logs

# Celery's commands by which a process is known; a worker has a name of its own.
_COMMANDS = ("worker", "beat")
_name = next((word for word in sys.argv[1:] if word in _COMMANDS), "celery")


# A broker that starts together with the workers may need so long, in seconds. After that the worker ends, and
# whatever runs it sees that and may start it again.
BROKER_SECONDS = 10.0


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _start(sender: str, **_: Any) -> None:
    """Name the worker by the part of its host name that tells it apart; end without a broker."""
    global _name
    _name = sender.partition("@")[0]
    try:
        broker.wait_for(celery.runtime.settings, BROKER_SECONDS)
    except broker.Unreachable as error:
        sys.exit(f"Error: {error}")


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log(**_: Any) -> None:
    """In place of Celery's own set-up: its lines go the way of all others."""
    logs.configure(_name, read_log_settings())


def _create() -> Almanac:
    try:
        return create_celery(read_settings())
    except SettingsError as error:
        # One line instead of Celery's traceback.
        sys.exit(f"Error: {error}")


celery = _create()
