"""OpenTelemetry traces, one for each HTTP request, if ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set.

The spans are those of the request, its fan-out, the tasks, their jobs, and each call to a provider. They
have ids, names and numbers, and no content of users. Without that setting, OpenTelemetry is not imported.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, TypeAlias

from providers.base import Failed
from providers.http import send
from store.config.settings import traces
from store.sql.queries.connection_rows import SealedConnection
from workers.jobs import Job

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Span, Tracer

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
    send.observe = _call


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
def _call(call: send.Call) -> Iterator[Callable[[int], None]]:
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
