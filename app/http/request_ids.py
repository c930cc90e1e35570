"""Request ids: the client's own if it sent one. Every response and every log line of a request has it."""

from __future__ import annotations

import re
import secrets
from functools import cache
from typing import Any

import flask
from flask import Response, g, request

from workers.telemetry.request_ids import current

HEADER = "X-Request-Id"
PARAMETER = re.compile(r"<(?:[^<>]*:)?([^<>:]+)>")
SHAPE = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


class Flask(flask.Flask):
    """Logs exceptions with the id of the request."""

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
