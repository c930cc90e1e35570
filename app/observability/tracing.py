"""The span of an HTTP request, named by its route; it continues the client's trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flask import Flask, has_request_context

from app.http.request_ids import request_id, route
from workers.telemetry import tracing

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

# Not traced: monitoring requests these all the time.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})

TRACE_HEADERS = {"HTTP_TRACEPARENT": "traceparent", "HTTP_TRACESTATE": "tracestate"}


def install(app: Flask) -> None:
    """Wrap the WSGI application; the span ends when the answer starts."""
    app.wsgi_app = _traced(app.wsgi_app)  # type: ignore[assignment, method-assign]


def _traced(answer: WSGIApplication) -> WSGIApplication:
    def traced(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not tracing.on() or environ["PATH_INFO"] in UNTRACED:
            return answer(environ, start_response)
        carrier = {name: environ[key] for key, name in TRACE_HEADERS.items() if key in environ}
        method = environ["REQUEST_METHOD"]
        with tracing.span(method, "server", {"http.request.method": method}, carrier=carrier) as span:

            def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
                _describe(span, method, int(status[:3]))
                return start_response(status, headers, error)

            return answer(environ, start)

    return traced


def _describe(span: Any, method: str, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        tracing.mark(span, str(status))
    if has_request_context():
        span.update_name(f"{method} {route()}")
        span.set_attributes({"http.route": route(), "almanac.request": request_id()})
