"""Parsing of queries, headers and bodies.

marshmallow parses them by schemas. For the warm path, ``read`` parses a query or headers by a flat schema
without it: it returns values for valid requests only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import orjson
from flask import Flask, request
from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing
from webargs.flaskparser import FlaskParser
from webargs.multidictproxy import MultiDictProxy
from werkzeug.datastructures import Headers, ImmutableMultiDict, MultiDict
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.availability.parameters import Freshness, required_freshness
from app.http.errors import ApiError, Invalid
from app.schemas.error_codes import Code
from app.schemas.fields import Parsed, QuerySchema


class _Step(NamedTuple):
    """How to parse one field: its key in the result, its name in the request, and the parser ``value_of``."""

    result_key: str
    request_name: str
    value_of: Callable[[Any], Any]
    several: bool
    required: bool
    default: Any


@cache
def _plan(schema: QuerySchema) -> list[_Step]:
    return [
        _Step(
            name,
            field.data_key or name,
            _reader(field),
            isinstance(field, fields.List),
            field.required,
            field.load_default,
        )
        for name, field in schema.fields.items()
    ]


def _reader(field: fields.Field[Any]) -> Callable[[Any], Any]:
    """Only ``parse`` if the field has no validators or hooks, otherwise marshmallow's ``deserialize``."""
    if isinstance(field, Parsed) and not (field.validators or field.pre_load or field.post_load):
        return field.parse
    return field.deserialize


def read(schema: QuerySchema, source: MultiDict[str, str] | Headers) -> dict[str, Any] | None:
    """The values of a query or of headers by ``schema``; None on any error, for marshmallow to report."""
    if schema.refused and not schema.refused.keys().isdisjoint(source.keys()):
        return None
    found: dict[str, Any] = {}
    try:
        for key, name, value_of, several, required, default in _plan(schema):
            if name in source:
                found[key] = value_of(source.getlist(name) if several else source[name])
            elif required:
                return None
            elif default is not missing:
                found[key] = default() if callable(default) else default
        schema.check(found)
    except ValidationError:
        return None
    return found


def parse(query: bytes) -> ImmutableMultiDict[str, str]:
    """The parameters of a query string, as werkzeug parses it, in a third of the time."""
    found: dict[str, list[str]] = {}
    for parameter in query.decode(errors="replace").split("&"):
        if parameter:
            name, _, value = parameter.partition("=")
            found.setdefault(_text(name), []).append(_text(value))
    return ImmutableMultiDict(found)


def refuse(name: str, where: str, neutral: str = "false") -> None:
    """Refuse a parameter of other routes that would change what this one does.

    :raise Invalid: when the query of the request has it, and not as ``neutral``
    """
    if request.args.get(name, neutral) != neutral:
        raise Invalid(f"{name} must not be given for {where}", param=name)


def _text(encoded: str) -> str:
    """A percent-decoded name or value; bytes that are not UTF-8 stay encoded."""
    spaced = encoded.replace("+", " ")
    if "%" not in spaced:
        return spaced
    return unquote_to_bytes(spaced).decode(errors="werkzeug.url_quote")


def freshness() -> Freshness:
    """The freshness that this request requires by the header ``Cache-Control``."""
    return required_freshness(request.headers.get("Cache-Control"))


LOCATIONS = ("query", "json", "headers", "form", "querystring", "json_or_form", "cookies", "files", "path")

# The blueprints whose bodies are forms.
PAGES = frozenset({"dashboard", "invitation"})


class Parser(FlaskParser):
    """Answers 400 to validation errors, and takes query arrays in any spelling.

    Unknown parameters are ignored; the schema of a body decides about unknown fields.
    """

    DEFAULT_VALIDATION_STATUS = 400
    DEFAULT_UNKNOWN_BY_LOCATION = dict.fromkeys(LOCATIONS, EXCLUDE) | {"json": None}

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
                sentence = "The request body is nested too deeply: 1024 levels at most"
                raise ApiError(sentence, Code.MALFORMED_BODY) from error
            return self._handle_invalid_json_error(error, req)


def _query() -> MultiDict[str, str]:
    """The query of this request, with ``name[]`` renamed to ``name``."""
    if b"[" not in request.query_string and b"%5" not in request.query_string:
        return request.args
    return MultiDict([(name.removesuffix("[]"), value) for name, value in request.args.items(multi=True)])


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
            "The request body must not be compressed",
            Code.BODY_COMPRESSED,
            headers={"Accept-Encoding": "identity"},
        )
    has_body = bool(request.content_length) or "chunked" in request.headers.get("Transfer-Encoding", "")
    if has_body and request.endpoint is not None and not request.is_json and request.blueprint not in PAGES:
        raise UnsupportedMediaType


def _is_uncompressed() -> bool:
    return request.headers.get("Content-Encoding", "identity").strip().lower() in ("", "identity")
