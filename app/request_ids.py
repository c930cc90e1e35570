"""Every request has an id, the client's own if it sent one; every answer tells it, and so does our log."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any

import flask
from flask import Response, g, request

HEADER = "X-Request-Id"
SHAPE = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


class Flask(flask.Flask):
    """Logs what went wrong under the id of the request. None of its views is a coroutine."""

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function itself: to look what it is takes longer than many a view, and is done five times."""
        return func

    def log_exception(self, exc_info: Any) -> None:
        """One record with the traceback; without the query, which names people's calendars."""
        self.logger.error(
            "%s %s failed, request %s", request.method, request.path, request_id(), exc_info=exc_info
        )


def install(app: flask.Flask) -> None:
    """Before everything else, so that refusals carry it too."""
    app.before_request(_begin)
    app.after_request(_tell)


def request_id() -> str:
    """The id of this request."""
    # An error in the framework itself can come before the request began.
    if "request_id" not in g:
        _begin()
    return str(g.request_id)


def _begin() -> None:
    sent = request.headers.get(HEADER, "")
    g.request_id = sent if SHAPE.fullmatch(sent) else secrets.token_hex(12)


def _tell(response: Response) -> Response:
    response.headers[HEADER] = request_id()
    return response
