"""Counts every request below ``/v1`` by its part of the API, its status, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from flask import Flask

from app.services import EXTENSION
from store.metrics.schema import GROUPS, STATUSES, Group
from store.stores import Stores

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PREFIX = "/v1/"

CLASSES = {status[0]: status for status in STATUSES}

# Blueprints whose routes belong to another's part of the API.
_PART_OF: dict[str, Group] = {"authorization": "oauth", "explain": "scheduling", "unified": "events"}


def install(app: Flask) -> None:
    """Around everything else: what is timed ends where the answer begins."""
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
            group = _group(None if request is None else request.endpoint)
            stores.counters.request(group, CLASSES[status[0]], perf_counter() - began)
            return start_response(status, headers, error)

        return answer(environ, start)

    return counted


@cache
def _group(endpoint: str | None) -> Group:
    """The part of the API that a route belongs to; what is no route of ours belongs to none."""
    blueprint = (endpoint or "").partition(".")[0]
    if blueprint in _PART_OF:
        return _PART_OF[blueprint]
    return next((group for group in GROUPS if group == blueprint), "other")
