"""Every request has an id, the client's own if it sent one; every answer tells it, and so does our log."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from functools import cache
from typing import Any

import flask
from flask import Response, g, request

from app.http import query_string
from workers.telemetry.request_ids import current

HEADER = "X-Request-Id"
PLACE = re.compile(r"<(?:[^<>]*:)?([^<>:]+)>")
SHAPE = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


class Flask(flask.Flask):
    """Logs what went wrong under the id of the request. None of its views is a coroutine."""

    request_class = query_string.Request

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself: to look what it is takes longer than many a view, and is done five times."""
        return func

    def log_exception(self, exc_info: Any) -> None:
        """One record with the traceback; without path and query, which name people and their calendars."""
        self.logger.error(
            "%s %s failed, request %s", request.method, route(), request_id(), exc_info=exc_info
        )


def install(app: flask.Flask) -> None:
    """Before everything else, so that refusals carry it too."""
    app.before_request(_begin)
    app.after_request(_tell)
    app.teardown_request(_end)


def request_id() -> str:
    """The id of this request."""
    # An error in the framework itself can come before the request began.
    if "request_id" not in g:
        _begin()
    return str(g.request_id)


def route() -> str:
    """The rule that this request's path fits; what it says of people is left out."""
    return "(no route)" if request.url_rule is None else _written(request.url_rule.rule)


@cache
def _written(rule: str) -> str:
    """A rule as the API's description writes it."""
    return PLACE.sub(r"{\1}", rule)


def _begin() -> None:
    sent = request.headers.get(HEADER, "")
    g.request_id = sent if SHAPE.fullmatch(sent) else secrets.token_hex(12)
    current.set(g.request_id)


def _end(_: BaseException | None) -> None:
    # The thread goes on to other requests.
    current.set(None)


def _tell(response: Response) -> Response:
    response.headers[HEADER] = request_id()
    return response
