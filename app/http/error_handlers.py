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

from app.http.errors import ApiError, Invalid, ServiceUnavailable, overloaded
from app.http.requests import request_id, route
from app.schemas.error_codes import Code
from app.schemas.errors import STATUS_DESCRIPTIONS
from providers.errors import Reason
from workers.fanout.admission import Overloaded

log = logging.getLogger(__name__)

# The path of the documentation, to which error responses link.
DOCS = "/docs"

READABLE_STATUS = {
    404: "There is no such path",
    405: "This path does not take this method",
    413: "The request body is larger than 1 MiB",
    415: "The request body must be application/json",
    500: "Something went wrong on our side; the X-Request-Id of this answer finds it in our log",
}

# The codes of errors that Flask, werkzeug or webargs raised; 400 is raised for bodies only.
CODES = {
    400: Code.MALFORMED_BODY,
    404: Code.PATH_NOT_FOUND,
    405: Code.METHOD_NOT_ALLOWED,
    408: Code.REQUEST_TIMEOUT,
    413: Code.BODY_TOO_LARGE,
    415: Code.UNSUPPORTED_MEDIA_TYPE,
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
    data = getattr(error, "data", None) or {}
    if "messages" in data:
        return _answer(validation_error(data["messages"]))
    status = error.code or 500
    sentence = READABLE_STATUS.get(status) or error.description or error.name
    headers = dict(data.get("headers") or {})
    if status == 405 and getattr(error, "valid_methods", None):
        headers["Allow"] = ", ".join(sorted(error.valid_methods))  # type: ignore[attr-defined]
    code = CODES.get(status, Code.INTERNAL_ERROR)
    return _answer(ApiError(sentence, code, status=status, headers=headers))


def _answer(error: ApiError) -> tuple[dict[str, Any], int, dict[str, str]]:
    # RFC 8288.
    link = f'<{request.script_root}{DOCS}/reference/errors/#{_section(error)}>; rel="help"'
    return error.body(), error.status, {**error.headers, "Link": link}


def _section(error: ApiError) -> str:
    """The anchor on the documentation page of errors: that of the provider's reason, else of the status."""
    if error.code.name in Reason.__members__:
        return error.code.lower()
    return str(error.status) if error.status in EXPLAINED else "by-status"


def _busy(error: Overloaded) -> tuple[dict[str, Any], int, dict[str, str]]:
    line = "request refused, workers overloaded: %s %s, request %s: %s"
    log.warning(line, request.method, route(), request_id(), error)
    return _answer(overloaded(error))


def _out_of_service(error: Exception) -> tuple[dict[str, Any], int, dict[str, str]]:
    name = type(error).__name__
    line = "request failed, out of service: %s %s, request %s: %s"
    log.error(line, request.method, route(), request_id(), name)
    return _answer(ServiceUnavailable())


# The names and indexes that lead to a field.
Path = tuple[str | int, ...]


def validation_error(messages: Any) -> ApiError:
    """The first error of marshmallow's messages; its sentence and its ``param`` name the field."""
    for location in messages.values() if isinstance(messages, dict) else [messages]:
        for path, message in field_errors(location):
            if path:
                return Invalid(f"{_spelled(path)} {message}", param=".".join(map(str, path)))
            return ApiError(_of_whole_body(message), Code.MALFORMED_BODY)
    return ApiError("The request cannot be understood", Code.MALFORMED_BODY)


def _of_whole_body(message: str) -> str:
    if message == "must be an object":
        return "The request body must be an object"
    if message.startswith("Invalid JSON"):
        return "The request body is not valid JSON"
    return message


def field_errors(node: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Each of marshmallow's messages, with the path of its field."""
    if isinstance(node, dict):
        for key, child in node.items():
            yield from field_errors(child, path if key == "_schema" else (*path, key))
    elif isinstance(node, list):
        for child in node:
            yield from field_errors(child, path)
    else:
        yield path, str(node)


def _spelled(path: Path) -> str:
    """A path for people: ``schedules[0].start``."""
    first, *rest = path
    return f"{first}{''.join(f'[{each}]' if isinstance(each, int) else f'.{each}' for each in rest)}"
