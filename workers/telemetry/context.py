"""Passes the id of the HTTP request, its tenant and its trace to tasks in their headers.

Every fan-out belongs to one request, so that the context of a task is that of all its jobs.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any

from celery.signals import before_task_publish, task_postrun, task_prerun

from store.coordination import shares
from workers.telemetry import request_ids, tracing

log = logging.getLogger(__name__)

REQUEST, TENANT = "almanac_request", "almanac_tenant"

_began: ContextVar[float] = ContextVar("began")
_span: ContextVar[ExitStack | None] = ContextVar("span", default=None)


def install() -> None:
    """Connect the signal handlers; safe to call twice."""
    before_task_publish.connect(_send, weak=False)
    task_prerun.connect(_begin, weak=False)
    task_postrun.connect(_end, weak=False)


def _send(sender: str, headers: dict[str, Any], **_: object) -> None:
    # A delivery task also sends events that other requests have recorded.
    if sender.startswith("webhooks."):
        return
    if (request := request_ids.current.get()) is not None:
        headers[REQUEST] = request
    headers[TENANT] = shares.current.get()
    tracing.inject(headers)


def _begin(task: Any, **_: object) -> None:
    _began.set(time.perf_counter())
    request_ids.current.set(task.request.get(REQUEST))
    shares.current.set(task.request.get(TENANT) or shares.UNBOUND)
    if tracing.on():
        _span.set(_open(task))


def _end(task: Any, state: str | None = None, **_: object) -> None:
    duration = round((time.perf_counter() - _began.get()) * 1000, 1)
    log.info("task %s has finished", task.name, extra={"task": task.name, "state": state, "ms": duration})
    if (opened := _span.get()) is not None:
        opened.close()
    # The thread will run other tasks.
    _span.set(None)
    request_ids.current.set(None)
    shares.current.set(shares.UNBOUND)


def _open(task: Any) -> ExitStack:
    """The span of a task. Its parent is the span of the sender; tasks of beat have none."""
    names = ("traceparent", "tracestate")
    carrier = {name: value for name in names if (value := task.request.get(name))}
    opened = ExitStack()
    opened.enter_context(
        tracing.span(task.name, "consumer", {"almanac.task": task.request.id}, carrier=carrier)
    )
    return opened
