"""``python -m app.server.web``: granian with Almanac's limits and log."""

from __future__ import annotations

import logging
from importlib import import_module

import click
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels

from app.server.ports import reserve
from store.config.garbage_collection import OF_ANSWERS, collect_seldom, without_collections
from store.config.settings import read_log_settings
from workers.telemetry import logs

# Of one process. Further ones wait in the kernel's queue, which holds ``BACKLOG`` for each process.
CONNECTIONS = 1024
BACKLOG = 2048

# In seconds: for the head of a request to arrive, which is also how long an idle connection stays open.
HEAD_SECONDS = 15

# In bytes: a path with two identifiers of 2 048 characters, twelve bytes for each when escaped, a long query,
# and the headers.
MAX_HEAD = 128 * 1024

# In seconds: how long requests may take after SIGTERM.
GRACE = 15

# In seconds: how long an old process serves beside its successor, on SIGHUP. granian does not wait
# until the successor is ready.
OVERLAP = 10

# granian's records go to the handlers of the root logger.
LOGGING = {"handlers": {}, "loggers": {"_granian": {"propagate": True}}}


@click.command()
@click.option("--host", required=True)
@click.option("--port", type=int, required=True)
@click.option("--processes", type=int, required=True)
@click.argument("target", default="app.asgi:app")
def main(host: str, port: int, processes: int, target: str) -> None:
    """Serve the ASGI application ``target``."""
    # Kept until the end. granian listens after the imports, and would share the port with another server.
    if (reserved := reserve(host, port)) is None:
        raise click.ClickException(f"Port {port} is in use; choose another with --port")
    settings = read_log_settings()
    logs.configure("web", settings)
    # Before the fork: the processes share its memory, and an invalid setting ends the start.
    with without_collections():
        import_module(target.partition(":")[0])
    # In the parent: a collection in each process would write to every shared page, and copy it.
    collect_seldom(OF_ANSWERS)
    Granian(
        target,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        workers=processes,
        http=HTTPModes.http1,
        websockets=False,
        backlog=BACKLOG,
        backpressure=CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=HEAD_SECONDS * 1000, max_buffer_size=MAX_HEAD),
        log_level=LogLevels(logging.getLevelName(settings.log_level).lower()),
        log_dictconfig=LOGGING,
        respawn_failed_workers=True,
        respawn_interval=OVERLAP,
        workers_kill_timeout=GRACE,
    ).serve()
    reserved.close()


if __name__ == "__main__":
    main()
