"""An OpenTelemetry collector for tests: receives spans over HTTP."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.http_server import Handler, serving


@dataclass(frozen=True)
class Span:
    """A span; ``service`` is the process that recorded it."""

    service: str
    name: str
    kind: int
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: bool
    events: int


@dataclass
class Collector:
    url: str
    spans: list[Span] = field(default_factory=list)
    raw: bytes = b""

    def of(self, trace: str) -> list[Span]:
        return [span for span in self.spans if span.trace == trace]

    def take(self, body: bytes) -> None:
        self.raw += body
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            service = _plain(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [_span(service, each) for each in scope.spans]


def _span(service: str, each: Any) -> Span:
    return Span(
        service,
        each.name,
        each.kind,
        each.trace_id.hex(),
        each.span_id.hex(),
        each.parent_span_id.hex(),
        _plain(each.attributes),
        each.status.code == 2,
        len(each.events),
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a free port."""

    class CollectorHandler(Handler):
        def do_POST(self) -> None:
            body = self.read_body()
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            made.take(body)
            self.reply(200)

    with serving(CollectorHandler) as url:
        made = Collector(url)
        yield made
