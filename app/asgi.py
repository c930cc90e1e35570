"""The ASGI application of ``almanac serve``: the fast path for slots, and ``app.wsgi`` on threads."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from app.api.fast_slots import FastSlots
from app.server.body_budget import BodyBudget
from app.server.commands import WEB_THREADS
from app.server.wsgi_adapter import WsgiAdapter
from app.services import EXTENSION, Services
from app.web import MAX_BODY
from app.wsgi import app as flask_app
from store.coordination import shares
from workers.telemetry import tracing

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


# Seconds that the event loop, which answers cached slots, waits for the interpreter lock while a thread
# computes. With the default of 5 ms, a burst of slow reads that end together delays it by several of these.
SWITCH_SECONDS = 0.0005

_budget = BodyBudget(flask_app)


def _load() -> WSGIApplication:
    """Open connections and start threads: in each process, after the fork."""
    sys.setswitchinterval(SWITCH_SECONDS)
    tracing.start("web")
    services: Services = flask_app.extensions[EXTENSION]
    services.prepare()
    process = f"web:{socket.gethostname()}:{os.getpid()}"
    services.stores.flusher.add(lambda: shares.report(services.stores.redis, process, _budget.places))
    heartbeat = services.stores.web_heartbeat
    heartbeat.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        # The server then accepts no more connections. The event loop still calls its own handler: a file
        # descriptor wakes it.
        signal.signal(number, lambda *_: heartbeat.stop())
        # As the event loop has it.
        signal.siginterrupt(number, False)
    return flask_app


def _close() -> None:
    """Send what this process still has to count and to trace."""
    flask_app.extensions[EXTENSION].stores.flusher.close()
    tracing.flush()


app = FastSlots(
    WsgiAdapter(
        _load,
        _close,
        threads=WEB_THREADS,
        largest_body=MAX_BODY,
        budget=_budget,
    ),
    flask_app,
)
