"""The envelope, the parser and the error bodies: once, for every route."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from itertools import chain
from typing import Any

import flask_smorest
import orjson
from flask import Flask, Response, g, request
from flask.json.provider import JSONProvider
from gunicorn.http.errors import NoMoreData, ParseException
from kombu.exceptions import OperationalError as BrokerError
from marshmallow import EXCLUDE, Schema, fields
from redis.exceptions import RedisError
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from webargs.flaskparser import FlaskParser
from webargs.multidictproxy import MultiDictProxy
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge, UnsupportedMediaType

from app import docs_site
from app.http import fast_args
from app.http.errors import ApiError, Busy, Invalid, OutOfService
from app.http.request_ids import request_id, route
from app.openapi import document
from app.schemas.errors import ErrorSchema
from workers.fanout.admission import Overloaded

log = logging.getLogger(__name__)

LOCATIONS = ("query", "json", "headers", "form", "querystring", "json_or_form", "cookies", "files", "path")

# Longer responses, in bytes, are streamed.
STREAMED_FROM = 262_144

# The blueprint whose bodies are forms.
PAGES = "dashboard"

READABLE_STATUS = {
    404: "There is no such path",
    405: "This path does not take this method",
    413: "The request body is larger than 1 MiB",
    415: "The request body must be application/json",
    500: "Something went wrong on our side; the X-Request-Id of this answer finds it in our log",
}
# Statuses that have a section on the documentation page of errors.
EXPLAINED = frozenset((*READABLE_STATUS, *document.ERRORS))


class Json(JSONProvider):
    """JSON by orjson: fast, strict, and without Python's recursion limit."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:
        """Serialize a value."""
        return orjson.dumps(obj).decode()

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        """Parse a text."""
        return orjson.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        """A response with one value as its body."""
        return Response(orjson.dumps(self._prepare_response_obj(args, kwargs)), mimetype="application/json")


class Parser(FlaskParser):
    """Answers 400 to validation errors, ignores unknown fields, and takes query arrays in any spelling."""

    DEFAULT_VALIDATION_STATUS = 400
    DEFAULT_UNKNOWN_BY_LOCATION = dict.fromkeys(LOCATIONS, EXCLUDE)

    def use_args(self, argmap: Any, *positional: Any, **options: Any) -> Callable[..., Any]:
        """Parse arguments by ``argmap``; flat schemas take the fast path while the request is valid."""
        decorate = super().use_args(argmap, *positional, **options)
        if not isinstance(argmap, fast_args.QuerySchema):
            return decorate
        headers = options.get("location") == "headers"

        def with_fast_path(view: Callable[..., Any]) -> Callable[..., Any]:
            by_marshmallow = decorate(view)

            @wraps(view)
            def read(*args: Any, **kwargs: Any) -> Any:
                found = fast_args.read(argmap, request.headers if headers else _query())
                if found is None:
                    return by_marshmallow(*args, **kwargs)
                return view(*args, found, **kwargs)

            return read

        return with_fast_path

    def load_querystring(self, req: Any, schema: Schema) -> MultiDictProxy:
        """The parameters of the query."""
        return MultiDictProxy(_query(), schema)

    def _raw_load_json(self, req: Any) -> Any:
        body = req.get_data()
        # werkzeug silently truncates a body without Content-Length at the limit.
        if req.content_length is None and len(body) >= (req.max_content_length or 0):
            raise RequestEntityTooLarge
        if not body:
            # An absent body is an object without fields: the error names the first required one.
            return {}
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            if error.msg.startswith("depth limit"):
                raise Invalid("The request body is nested too deeply: 1024 levels at most") from error
            return self._handle_invalid_json_error(error, req)


def _query() -> MultiDict[str, str]:
    """The query of this request, with ``name[]`` renamed to ``name``."""
    if b"[" not in request.query_string and b"%5" not in request.query_string:
        return request.args
    return MultiDict([(name.removesuffix("[]"), value) for name, value in request.args.items(multi=True)])


class Blueprint(flask_smorest.Blueprint):
    """Wraps results as ``{data: ...}``, in responses and in the OpenAPI document."""

    ARGUMENTS_PARSER = Parser()

    def arguments(self, schema: type[Schema], **options: Any) -> Any:
        """As in flask-smorest, but with one schema instance for all requests, as creating one is slow."""
        decorate = super().arguments(schema(), **options)
        in_query: type[Schema] | None = getattr(schema, "in_query", None)
        if in_query is None:
            return decorate
        query = super().arguments(in_query(), location="query")
        return lambda view: query(decorate(_with_zone_of_query(view)))

    @staticmethod
    def _prepare_response_content(data: Any) -> dict[str, Any]:
        return {"data": data, **g.pop("beside", {})}

    @staticmethod
    def _make_doc_response_schema(schema: Schema | None) -> Schema | None:
        if schema is None or isinstance(schema, WholeBody | ErrorSchema):
            return schema
        return _enveloped(type(schema), schema.many)()


def _with_zone_of_query(view: Callable[..., Any]) -> Callable[..., Any]:
    """The view, called with the zone of the query, or without one there with that of the header."""

    @wraps(view)
    def choose(*args: Any, **kwargs: Any) -> Any:
        *others, query, header = args
        zone = query.get("timeZone")
        return view(*others, header if zone is None else {**header, "zone": zone}, **kwargs)

    return choose


class WholeBody(Schema):
    """A schema that includes the envelope; its view responds with ``json_response``."""


def json_response(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with this body, without an envelope; bytes are JSON already.

    An iterator of pieces is streamed if it is long.
    """
    if isinstance(body, Iterator):
        data: bytes | Iterator[bytes] = _joined_or_streamed(body)
    else:
        data = body if isinstance(body, bytes) else orjson.dumps(body)
    return Response(data, status, headers, mimetype="application/json")


def json_object(members: Mapping[str, Any]) -> Iterator[bytes]:
    """A JSON object in pieces. Bytes and iterators are JSON already; names must need no escaping."""
    between = b"{"
    for name, value in members.items():
        yield b'%s"%s":' % (between, name.encode())
        if isinstance(value, Iterator):
            yield from value
        else:
            yield value if isinstance(value, bytes) else orjson.dumps(value)
        between = b","
    yield b"}"


def json_array(items: Iterable[Iterable[bytes]]) -> Iterator[bytes]:
    """A JSON array in pieces, from items in pieces."""
    between = b"["
    for item in items:
        yield between
        yield from item
        between = b","
    yield b"[]" if between == b"[" else b"]"


def _joined_or_streamed(pieces: Iterator[bytes]) -> bytes | Iterator[bytes]:
    blocks = _blocks(pieces)
    first = next(blocks, b"")
    second = next(blocks, None)
    return first if second is None else chain((first, second), blocks)


def _blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of at least ``STREAMED_FROM`` bytes; the last may be shorter."""
    block: list[bytes] = []
    size = 0
    for piece in pieces:
        block.append(piece)
        size += len(piece)
        if size >= STREAMED_FROM:
            yield b"".join(block)
            block, size = [], 0
    if block:
        yield b"".join(block)


def extra_fields(**siblings: object) -> None:
    """Add fields beside ``data`` to the response of this request."""
    g.beside = siblings


@cache
def _enveloped(schema: type[Schema], many: bool) -> type[Schema]:
    name = schema.__name__.removesuffix("Schema")
    members: dict[str, Any] = {"data": fields.Nested(schema(many=many), required=True)}
    if many:
        name += "List"
        members["nextCursor"] = fields.String(
            allow_none=True, metadata={"description": "Only with `limit`; null at the end."}
        )
    return WholeBody.from_dict(members, name=f"{name}Answer")


class Api(document.Api):
    """Wraps every error in the envelope."""

    def handle_http_exception(self, error: HTTPException) -> tuple[Any, int, Mapping[str, str]]:
        """An error that Flask, werkzeug or webargs raised."""
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


def refuse_unreadable_bodies(app: Flask) -> None:
    """Reject bodies that are too large, compressed or not JSON, before any view runs."""
    app.before_request(_check_body)


def _check_body() -> None:
    if not request.environ.get("CONTENT_LENGTH") and "HTTP_TRANSFER_ENCODING" not in request.environ:
        return
    if request.content_length is not None and request.content_length > (request.max_content_length or 0):
        raise RequestEntityTooLarge
    if request.headers.get("Transfer-Encoding", "chunked").lower() != "chunked" or not _is_uncompressed():
        raise ApiError(
            "The request body must not be compressed", status=415, headers={"Accept-Encoding": "identity"}
        )
    has_body = bool(request.content_length) or "chunked" in request.headers.get("Transfer-Encoding", "")
    if has_body and request.endpoint is not None and not request.is_json and request.blueprint != PAGES:
        raise UnsupportedMediaType


def _is_uncompressed() -> bool:
    return request.headers.get("Content-Encoding", "identity").strip().lower() in ("", "identity")


def install(app: Flask) -> None:
    """Register JSON and the error handlers for the whole app."""
    app.json = Json(app)
    app.register_error_handler(ApiError, _answer)
    app.register_error_handler(Overloaded, _busy)
    for malformed in (ParseException, NoMoreData):
        app.register_error_handler(malformed, _malformed_body)
    for down in (RedisError, BrokerError, OperationalError, InterfaceError, PoolTimeout):
        app.register_error_handler(down, _out_of_service)


def _answer(error: ApiError) -> tuple[dict[str, Any], int, dict[str, str]]:
    return error.body(), error.status, {**error.headers, **docs_site.help_link(error.section)}


def _malformed_body(_error: Exception) -> tuple[dict[str, Any], int, dict[str, str]]:
    """For a malformed chunked body: the server parses it while the view reads it."""
    return _answer(Invalid("The request body is not valid HTTP"))


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
