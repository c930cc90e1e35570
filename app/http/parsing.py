"""Parsing of queries and bodies, and rejection of bodies that cannot be parsed."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Flask, request
from marshmallow import EXCLUDE, Schema
from webargs.flaskparser import FlaskParser
from webargs.multidictproxy import MultiDictProxy
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.http.error_codes import Code
from app.http.errors import ApiError

LOCATIONS = ("query", "json", "headers", "form", "querystring", "json_or_form", "cookies", "files", "path")

# The blueprint whose bodies are forms.
PAGES = "dashboard"


class Parser(FlaskParser):
    """Answers 400 to validation errors, ignores unknown fields, and takes query arrays in any spelling."""

    DEFAULT_VALIDATION_STATUS = 400
    DEFAULT_UNKNOWN_BY_LOCATION = dict.fromkeys(LOCATIONS, EXCLUDE)

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
    if has_body and request.endpoint is not None and not request.is_json and request.blueprint != PAGES:
        raise UnsupportedMediaType


def _is_uncompressed() -> bool:
    return request.headers.get("Content-Encoding", "identity").strip().lower() in ("", "identity")
