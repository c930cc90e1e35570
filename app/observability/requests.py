"""Every answered request: counted (below ``/v1``), logged at level ``info``, and traced.

Its duration and its span end when the answer starts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flask import Flask, has_request_context

from app.http import authentication
from app.http.request_ids import request_id, route
from app.services import EXTENSION
from store.metrics.counters import STATUSES, Group
from store.stores import Stores
from workers.telemetry import tracing

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

CLASSES = {status[0]: status for status in STATUSES}

# Not traced: monitoring requests these all the time.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})

TRACE_HEADERS = {"HTTP_TRACEPARENT": "traceparent", "HTTP_TRACESTATE": "tracestate"}

log = logging.getLogger(__name__)


def install(app: Flask) -> None:
    """Wrap the WSGI application. The span is named by the route, and continues the client's trace."""
    app.wsgi_app = _observed(app)  # type: ignore[assignment, method-assign]


def _observed(app: Flask) -> WSGIApplication:
    answer = app.wsgi_app
    stores: Stores = app.extensions[EXTENSION].stores

    def observed(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        began = perf_counter()
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        carrier = {name: environ[key] for key, name in TRACE_HEADERS.items() if key in environ}
        traced = tracing.span(method, "server", {"http.request.method": method}, carrier=carrier)
        with nullcontext() if path in UNTRACED else traced as span:

            def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
                seconds = perf_counter() - began
                if path.startswith(authentication.PREFIX):
                    request = environ.get("werkzeug.request")
                    group = _group(app, None if request is None else request.endpoint)
                    stores.counters.request(group, CLASSES[status[0]], seconds)
                log_answer(
                    method,
                    route() if has_request_context() else "(no route)",
                    int(status[:3]),
                    seconds,
                    _key() if has_request_context() else None,
                )
                if span is not None:
                    _describe(span, method, int(status[:3]))
                return start_response(status, headers, error)

            return answer(environ, start)

    return observed


def log_answer(method: str, at: str, status: int, seconds: float, key: str | None) -> None:
    """Log an answered request; ``at`` is its route, ``key`` the visible part of the caller's API key."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {"method": method, "route": at, "status": status, "ms": round(seconds * 1000, 1)}
    if key is not None:
        fields["key"] = key
    log.info("request answered: %s %s %d", method, at, status, extra=fields)


def _key() -> str | None:
    """The visible part of the caller's API key; None for requests without a key."""
    caller = authentication.known_caller()
    return None if caller is None else caller.visible


def _group(app: Flask, endpoint: str | None) -> Group:
    """The metric group that the blueprint of a route declares; without one, or without a route, ``other``."""
    blueprint = app.blueprints.get((endpoint or "").partition(".")[0])
    return getattr(blueprint, "metric_group", "other")


def _describe(span: Any, method: str, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        tracing.mark(span, str(status))
    if has_request_context():
        span.update_name(f"{method} {route()}")
        span.set_attributes({"http.route": route(), "almanac.request": request_id()})
