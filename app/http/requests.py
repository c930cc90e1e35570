"""Every request: its id, its log line, its count (below ``/v1``) and its trace.

The id is the client's own if it sent one. Every response and every log line of the request has it. Duration
and span end when the answer starts.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import flask
from flask import Response, g, has_request_context, request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface

from app.http import authentication
from app.services import EXTENSION
from store.metrics.counters import STATUSES, Group
from store.stores import Stores
from workers.telemetry import tracing
from workers.telemetry.request_ids import current

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

HEADER = "X-Request-Id"
PARAMETER = re.compile(r"<(?:[^<>]*:)?([^<>:]+)>")
SHAPE = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)

CLASSES = {status[0]: status for status in STATUSES}

# Not traced: monitoring requests these all the time.
UNTRACED = frozenset({"/healthz", "/readyz", "/metrics"})

TRACE_HEADERS = {"HTTP_TRACEPARENT": "traceparent", "HTTP_TRACESTATE": "tracestate"}

log = logging.getLogger(__name__)


# The path of the dashboard's pages.
DASHBOARD = "/dashboard"


class Request(flask.Request):
    """Assigns requests for unknown paths and methods to the dashboard's blueprint.

    Outside of the dashboard only those of browsers: programs get an error in the envelope of the API.
    """

    @property
    def blueprint(self) -> str | None:
        """The blueprint whose hooks and error handlers apply."""
        found = super().blueprint
        unknown = found is None and self.endpoint is None and (self._below(DASHBOARD) or self._wants_page())
        return "dashboard" if unknown else found

    def _below(self, path: str) -> bool:
        return f"{self.path}/".startswith(f"{path}/")

    def _wants_page(self) -> bool:
        return not self._below("/v1") and "text/html" in self.headers.get("Accept", "")


class SessionCookies(SecureCookieSessionInterface):
    """Signed cookies for the dashboard's pages. API requests have no session."""

    def open_session(self, app: flask.Flask, request: flask.Request) -> SecureCookieSession | None:
        """The session of a dashboard request; None elsewhere, which Flask replaces by a null session."""
        return super().open_session(app, request) if request.path.startswith(DASHBOARD) else None

    def make_null_session(self, app: flask.Flask) -> Any:
        """The null session, shared by all requests."""
        return _NULL_SESSION


_NULL_SESSION = SecureCookieSessionInterface.null_session_class()


class Flask(flask.Flask):
    """Logs exceptions with the id of the request."""

    request_class = Request
    session_interface = SessionCookies()

    def log_exception(self, exc_info: Any) -> None:
        """Log one record with the traceback, without path and query, which contain personal data."""
        self.logger.error(
            "request failed: %s %s, request %s",
            request.method,
            route(),
            request_id(),
            exc_info=exc_info,
        )


def install(app: flask.Flask) -> None:
    """Install before anything that can reject a request, so that rejections have the header too."""
    app.before_request(_begin_request)
    app.after_request(_set_header)
    app.teardown_request(_end)


def observe(app: flask.Flask) -> None:
    """Count, log and trace requests. A span is named by the route, and continues the client's trace."""
    app.wsgi_app = _observed(app)  # type: ignore[assignment, method-assign]


def request_id() -> str:
    """The id of this request."""
    # An error in the framework can occur before `_begin` has run.
    found: str | None = g.get("request_id")
    return _begin() if found is None else found


def choose(requested_id: str) -> str:
    """The id of a request whose client sent this header; the log lines of the request get it too."""
    chosen = requested_id if SHAPE.fullmatch(requested_id) else secrets.token_hex(12)
    current.set(chosen)
    return chosen


def route() -> str:
    """The URL rule that this request matches, without the values of its parameters."""
    rule = request.url_rule
    return "(no route)" if rule is None else _as_documented(rule.rule)


@cache
def _as_documented(rule: str) -> str:
    """A rule as the OpenAPI document writes it."""
    return PARAMETER.sub(r"{\1}", rule)


def _begin() -> str:
    chosen = choose(request.headers.get(HEADER, ""))
    g.request_id = chosen
    return chosen


def _begin_request() -> None:
    _begin()


def _end(_: BaseException | None) -> None:
    # The thread will handle other requests.
    current.set(None)


def _set_header(response: Response) -> Response:
    response.headers[HEADER] = request_id()
    return response


def _observed(app: flask.Flask) -> WSGIApplication:
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


def _group(app: flask.Flask, endpoint: str | None) -> Group:
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
