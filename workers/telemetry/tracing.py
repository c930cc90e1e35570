"""OpenTelemetry traces, one for each HTTP request, and the context that tasks get in their headers.

The context is the id of the HTTP request, its tenant and its trace. Every fan-out belongs to one request, so
that the context of a task is that of all its jobs.

Traces are sent if ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set. The spans are those of the request, its fan-out,
the tasks, their jobs, and each call to a provider. They have ids, names and numbers, and no content of users.
Without that setting, OpenTelemetry is not imported.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from celery.signals import before_task_publish, task_postrun, task_prerun

from providers.base import Failed
from providers.http.calls import Call
from store.config.settings import traces
from store.coordination import shares
from store.sql.queries.connection_rows import SealedConnection
from workers.jobs import Job
from workers.telemetry import request_ids

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger(__name__)

REQUEST, TENANT = "almanac_request", "almanac_tenant"

_task_began: ContextVar[float] = ContextVar("began")
_task_span: ContextVar[ExitStack | None] = ContextVar("span", default=None)

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int]
Opened: TypeAlias = "AbstractContextManager[Span | None]"

# Seconds for the last spans to reach the collector.
STOP_SECONDS = 3.0

_tracer: Tracer | None = None
_processor: SpanProcessor | None = None
_OFF: AbstractContextManager[None] = nullcontext()


def start(process: str) -> None:
    """Start tracing if it is set up. Call this in the process that works: threads do not survive a fork."""
    global _tracer, _processor
    if not traces() or _tracer is not None:
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    name = os.environ.get("OTEL_SERVICE_NAME") or process
    ours = {"service.namespace": "almanac", "service.name": name, "service.version": version("almanac")}
    provider = TracerProvider(resource=Resource.create(ours))
    _processor = BatchSpanProcessor(OTLPSpanExporter())
    provider.add_span_processor(_processor)
    _tracer = provider.get_tracer("almanac", version("almanac"))


def flush() -> None:
    """Send the last spans of a process in which exit handlers do not run."""
    if _processor is None:
        return
    # ``force_flush`` has no effective timeout of its own.
    sender = threading.Thread(target=_processor.force_flush, daemon=True)
    sender.start()
    sender.join(STOP_SECONDS)


def on() -> bool:
    """Whether tracing is set up."""
    return _tracer is not None


def span(
    name: str,
    kind: Kind = "internal",
    attributes: Attributes | None = None,
    *,
    carrier: Mapping[str, str] | None = None,
    began: int | None = None,
) -> Opened:
    """A span around a block. Its parent is the one in ``carrier``, if any, else the current one.

    It begins now, or at ``began`` (nanoseconds since 1970).
    An exception marks the span with the name of its class only: its text may contain personal data.
    """
    return _OFF if _tracer is None else _span(_tracer, name, kind, attributes or {}, carrier, began)


def job(job: Job, row: SealedConnection | None) -> Opened:
    """The span of one job of a fan-out."""
    if _tracer is None:
        return _OFF
    attributes = {} if row is None else {"almanac.provider": row.provider, "almanac.connection": row.id}
    return span(type(job).__name__, attributes=attributes)


def bundle(provider: str | None, members: int) -> Opened:
    """The span of a bundle: reads of several members of an organization grant."""
    if _tracer is None:
        return _OFF
    return span("ReadBusy", attributes={"almanac.provider": provider or "", "almanac.members": members})


def failed(span: Span | None, failure: Failed | None) -> None:
    """Mark a span with the reason of an expected failure."""
    if span is not None and failure is not None:
        mark(span, failure.reason.value)


def inject(carrier: MutableMapping[str, str]) -> None:
    """Add the header ``traceparent``, with which the receiver continues the trace."""
    if _tracer is not None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        TraceContextTextMapPropagator().inject(carrier)


@contextmanager
def _span(
    tracer: Tracer,
    name: str,
    kind: Kind,
    attributes: Attributes,
    carrier: Mapping[str, str] | None,
    began: int | None,
) -> Iterator[Span]:
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    parent = TraceContextTextMapPropagator().extract(carrier) if carrier else None
    with tracer.start_as_current_span(
        name,
        parent,
        kind=SpanKind[kind.upper()],
        attributes=attributes,
        start_time=began,
        record_exception=False,
        set_status_on_exception=False,
    ) as opened:
        try:
            yield opened
        except Exception as error:
            mark(opened, type(error).__name__)
            raise


@contextmanager
def provider_call(call: Call) -> Iterator[Callable[[int], None]]:
    """The span of a provider call, named after the operation: paths and bodies contain personal data."""
    attributes = {"almanac.provider": call.provider, "http.request.method": call.method}
    with span(call.operation, "client", attributes) as opened:

        def answered(status: int) -> None:
            if opened is not None:
                opened.set_attribute("http.response.status_code", status)
                if status >= 400:
                    mark(opened, str(status))

        yield answered


def mark(span: Span, error: str) -> None:
    """Mark a span as failed; ``error`` is one of a small set of values."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)


def install_context() -> None:
    """Connect the signal handlers; safe to call twice."""
    before_task_publish.connect(_send_context, weak=False)
    task_prerun.connect(_begin_task, weak=False)
    task_postrun.connect(_end_task, weak=False)


def _send_context(sender: str, headers: dict[str, Any], **_: object) -> None:
    # A delivery task also sends events that other requests have recorded.
    if sender.startswith("webhooks."):
        return
    if (request := request_ids.current.get()) is not None:
        headers[REQUEST] = request
    headers[TENANT] = shares.current.get()
    inject(headers)


def _begin_task(task: Any, **_: object) -> None:
    _task_began.set(time.perf_counter())
    request_ids.current.set(task.request.get(REQUEST))
    shares.set_tenant(task.request.get(TENANT) or shares.UNBOUND)
    if on():
        _task_span.set(_open_task(task))


def _end_task(task: Any, state: str | None = None, **_: object) -> None:
    duration = round((time.perf_counter() - _task_began.get()) * 1000, 1)
    log.info("task %s has finished", task.name, extra={"task": task.name, "state": state, "ms": duration})
    if (opened := _task_span.get()) is not None:
        opened.close()
    # The thread will run other tasks.
    _task_span.set(None)
    request_ids.current.set(None)
    shares.set_tenant(shares.UNBOUND)


def _open_task(task: Any) -> ExitStack:
    """The span of a task. Its parent is the span of the sender; tasks of beat have none."""
    names = ("traceparent", "tracestate")
    carrier = {name: value for name in names if (value := task.request.get(name))}
    opened = ExitStack()
    opened.enter_context(span(task.name, "consumer", {"almanac.task": task.request.id}, carrier=carrier))
    return opened
