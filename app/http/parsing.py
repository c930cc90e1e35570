"""Parsing of queries and bodies, and rejection of bodies that cannot be parsed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import orjson
from flask import Flask
from marshmallow import EXCLUDE, Schema
from webargs.flaskparser import FlaskParser
from webargs.multidictproxy import MultiDictProxy
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from app.http import fast_args
from app.http.error_codes import Code
from app.http.errors import ApiError
from app.http.fast_context import current_request

LOCATIONS = ("query", "json", "headers", "form", "querystring", "json_or_form", "cookies", "files", "path")

# The blueprint whose bodies are forms.
PAGES = "dashboard"


class Parser(FlaskParser):
    """Answers 400 to validation errors, ignores unknown fields, and takes query arrays in any spelling."""

    DEFAULT_VALIDATION_STATUS = 400
    DEFAULT_UNKNOWN_BY_LOCATION = dict.fromkeys(LOCATIONS, EXCLUDE)

    def use_args(self, argmap: Any, *positional: Any, **options: Any) -> Callable[..., Any]:
        """Parse arguments by ``argmap``; flat schemas are parsed directly if the request is valid."""
        decorate = super().use_args(argmap, *positional, **options)
        if not isinstance(argmap, fast_args.QuerySchema):
            return decorate
        headers = options.get("location") == "headers"

        def with_direct_parsing(view: Callable[..., Any]) -> Callable[..., Any]:
            by_marshmallow = decorate(view)
            # flask-smorest's wrapper only calls ``ensure_sync``, which does nothing in this app.
            parsed_view = getattr(view, "__wrapped__", view)

            @wraps(view)
            def read(*args: Any, **kwargs: Any) -> Any:
                found = fast_args.read(argmap, current_request().headers if headers else _query())
                if found is None:
                    return by_marshmallow(*args, **kwargs)
                return parsed_view(*args, found, **kwargs)

            return read

        return with_direct_parsing

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
    request = current_request()
    if b"[" not in request.query_string and b"%5" not in request.query_string:
        return request.args
    return MultiDict([(name.removesuffix("[]"), value) for name, value in request.args.items(multi=True)])


def refuse_unreadable_bodies(app: Flask) -> None:
    """Reject bodies that are too large, compressed or not JSON, before any view runs."""
    app.before_request(_check_body)


def _check_body() -> None:
    request = current_request()
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
    return current_request().headers.get("Content-Encoding", "identity").strip().lower() in ("", "identity")
