"""The app for ``celery -A workers.main``, created from the environment, for workers and beat."""

from __future__ import annotations

import sys
from typing import Any

from store.config.garbage_collection import without_collections

with without_collections():
    from celery.signals import celeryd_init, setup_logging

    from store.config.settings import SettingsError, read_log_settings
    from workers import broker
    from workers.process import Worker, create_worker
    from workers.settings import read_settings
    from workers.telemetry import logs

# Celery's commands, which name the process in its log lines; a worker has a name of its own.
_COMMANDS = ("worker", "beat")
_name = next((word for word in sys.argv[1:] if word in _COMMANDS), "celery")

# Seconds that a worker waits for a broker that starts at the same time. After that the worker exits, and its
# supervisor can restart it.
BROKER_SECONDS = 10.0


@celeryd_init.connect  # type: ignore[untyped-decorator]
def _start(sender: str, **_: Any) -> None:
    """Name the worker by the first part of its host name; exit if the broker cannot be reached."""
    global _name
    _name = sender.partition("@")[0]
    try:
        broker.wait_for(celery.runtime.settings, BROKER_SECONDS)
    except broker.Unreachable as error:
        sys.exit(f"Error: {error}")


@setup_logging.connect  # type: ignore[untyped-decorator]
def _log(**_: Any) -> None:
    """Replace Celery's logging set-up with the one that all processes use."""
    logs.configure(_name, read_log_settings())


def _create() -> Worker:
    try:
        return create_worker(read_settings())
    except SettingsError as error:
        # One line instead of Celery's traceback.
        sys.exit(f"Error: {error}")


celery = _create()
