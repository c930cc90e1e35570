"""Every request has an id, the client's own if it sent one, and every answer tells it."""

from __future__ import annotations

import re
import secrets

from flask import Flask, Response, g, request

HEADER = "X-Request-Id"
SHAPE = re.compile(r"[A-Za-z0-9._-]{1,128}", re.ASCII)


def install(app: Flask) -> None:
    """Before everything else, so that refusals carry it too."""
    app.before_request(_begin)
    app.after_request(_tell)


def _begin() -> None:
    sent = request.headers.get(HEADER, "")
    g.request_id = sent if SHAPE.fullmatch(sent) else secrets.token_hex(12)


def _tell(response: Response) -> Response:
    # An error in the framework itself can come before the request began.
    response.headers[HEADER] = g.get("request_id") or secrets.token_hex(12)
    return response
