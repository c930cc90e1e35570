"""Error handlers: every error becomes a response in the envelope."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from flask import Flask, request
from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException

from app import docs_site
from app.http.errors import ApiError, Busy, OutOfService
from app.http.request_ids import request_id, route
from app.schemas.errors import STATUS_DESCRIPTIONS
from workers.fanout.admission import Overloaded

log = logging.getLogger(__name__)

READABLE_STATUS = {
    404: "There is no such path",
    405: "This path does not take this method",
    413: "The request body is larger than 1 MiB",
    415: "The request body must be application/json",
    500: "Something went wrong on our side; the X-Request-Id of this answer finds it in our log",
}

# Statuses that have a section on the documentation page of errors.
EXPLAINED = frozenset((*READABLE_STATUS, *STATUS_DESCRIPTIONS))


def install(app: Flask) -> None:
    """Register the error handlers, except for ``HTTPException``, which ``app.openapi`` handles."""
    app.register_error_handler(ApiError, _answer)
    app.register_error_handler(Overloaded, _busy)
    for down in (RedisError, BrokerError, OperationalError, InterfaceError, PoolTimeout):
        app.register_error_handler(down, _out_of_service)


def http_exception(error: HTTPException) -> tuple[Any, int, Mapping[str, str]]:
    """The response to an error that Flask, werkzeug or webargs raised."""
    code = error.code or 500
    data = getattr(error, "data", None) or {}
    sentence = READABLE_STATUS.get(code) or error.description or error.name
    if "messages" in data:
        sentence = readable(data["messages"])
    headers = dict(data.get("headers") or {})
    if code == 405 and getattr(error, "valid_methods", None):
        headers["Allow"] = ", ".join(sorted(error.valid_methods))  # type: ignore[attr-defined]
    headers |= docs_site.help_link(str(code) if code in EXPLAINED else "by-status")
    return {"data": None, "error": sentence}, code, headers


def _answer(error: ApiError) -> tuple[dict[str, Any], int, dict[str, str]]:
    return error.body(), error.status, {**error.headers, **docs_site.help_link(error.section)}


def _busy(error: Overloaded) -> tuple[dict[str, Any], int, dict[str, str]]:
    log.warning(
        "%s %s refused, workers are overloaded, request %s: %s", request.method, route(), request_id(), error
    )
    return _answer(Busy(error))


def _out_of_service(error: Exception) -> tuple[dict[str, Any], int, dict[str, str]]:
    name = type(error).__name__
    log.error("%s %s out of service, request %s: %s", request.method, route(), request_id(), name)
    return _answer(OutOfService())


def readable(messages: Any) -> str:
    """One sentence from marshmallow's tree of messages: the first error, with the path of its field."""
    for location in messages.values() if isinstance(messages, dict) else [messages]:
        for path, message in _errors(location, ""):
            return f"{path} {message}".strip() if path else _of_whole_body(message)
    return "The request cannot be understood"


def _of_whole_body(message: str) -> str:
    if message == "must be an object":
        return "The request body must be an object"
    if message.startswith("Invalid JSON"):
        return "The request body is not valid JSON"
    return message


def _errors(node: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, child in node.items():
            if key == "_schema":
                inner = path
            elif isinstance(key, int):
                inner = f"{path}[{key}]"
            else:
                inner = f"{path}.{key}" if path else str(key)
            yield from _errors(child, inner)
    elif isinstance(node, list):
        for child in node:
            yield from _errors(child, path)
    else:
        yield path, str(node)
