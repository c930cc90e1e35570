"""A line for every request once it is answered, at the level ``info``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flask import Flask, g, has_request_context

from app.http.request_ids import route

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)


def install(app: Flask) -> None:
    """Around what is there already; a request is timed until its answer begins."""
    app.wsgi_app = _telling(app.wsgi_app)  # type: ignore[assignment, method-assign]


def _telling(answer: WSGIApplication) -> WSGIApplication:
    def told(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not log.isEnabledFor(logging.INFO):
            return answer(environ, start_response)
        began = perf_counter()

        def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
            _tell(environ["REQUEST_METHOD"], int(status[:3]), perf_counter() - began)
            return start_response(status, headers, error)

        return answer(environ, start)

    return told


def _tell(method: str, status: int, seconds: float) -> None:
    at = route() if has_request_context() else "(no route)"
    told = {"method": method, "route": at, "status": status, "ms": round(seconds * 1000, 1)}
    if (key := _key()) is not None:
        told["key"] = key
    log.info("%s %s answered %d", method, at, status, extra=told)


def _key() -> str | None:
    """The part of the caller's key by which people tell theirs apart."""
    admission = g.get("admission") if has_request_context() else None
    return None if admission is None else str(admission.caller.visible)
