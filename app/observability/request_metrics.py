"""Counts requests below ``/v1`` and their durations, by the metric group of the blueprint and by status."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flask import Flask

from app.services import EXTENSION
from store.metrics.counters import STATUSES, Group
from store.stores import Stores

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/v1/"

CLASSES = {status[0]: status for status in STATUSES}


def install(app: Flask) -> None:
    """Install as the outermost middleware. The duration ends when the response starts."""
    app.wsgi_app = _counting(app)  # type: ignore[assignment, method-assign]


def _counting(app: Flask) -> WSGIApplication:
    answer = app.wsgi_app
    stores: Stores = app.extensions[EXTENSION].stores

    def counted(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not environ["PATH_INFO"].startswith(PREFIX):
            return answer(environ, start_response)
        began = perf_counter()

        def start(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
            request = environ.get("werkzeug.request")
            group = _group(app, None if request is None else request.endpoint)
            stores.counters.request(group, CLASSES[status[0]], perf_counter() - began)
            return start_response(status, headers, error)

        return answer(environ, start)

    return counted


def _group(app: Flask, endpoint: str | None) -> Group:
    """The metric group that the blueprint of a route declares; without one, or without a route, ``other``."""
    blueprint = app.blueprints.get((endpoint or "").partition(".")[0])
    return getattr(blueprint, "metric_group", "other")
