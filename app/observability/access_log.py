"""Logs every answered request at level ``info``."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flask import Flask, has_request_context

from app.http import authentication
from app.http.request_ids import route

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

log = logging.getLogger(__name__)


def install(app: Flask) -> None:
    """Wrap the WSGI application; the logged time ends when the answer starts."""
    app.wsgi_app = _logging(app.wsgi_app)  # type: ignore[assignment, method-assign]


def _logging(answer: WSGIApplication) -> WSGIApplication:
    def logged(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not log.isEnabledFor(logging.INFO):
            return answer(environ, start_response)
        began = perf_counter()

        def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
            _log(environ["REQUEST_METHOD"], int(status[:3]), perf_counter() - began)
            return start_response(status, headers, error)

        return answer(environ, start)

    return logged


def _log(method: str, status: int, seconds: float) -> None:
    record(method, route() if has_request_context() else "(no route)", status, seconds, _key())


def record(method: str, at: str, status: int, seconds: float, key: str | None) -> None:
    """Log an answered request; ``at`` is its route, ``key`` the visible part of the caller's API key."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {"method": method, "route": at, "status": status, "ms": round(seconds * 1000, 1)}
    if key is not None:
        fields["key"] = key
    log.info("request answered: %s %s %d", method, at, status, extra=fields)


def _key() -> str | None:
    """The visible part of the caller's API key; None for requests without a key."""
    caller = authentication.known_caller() if has_request_context() else None
    return None if caller is None else caller.visible
