"""The OpenAPI document: its texts, its parts, and the route that serves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

import flask_smorest
from flask import Blueprint, Flask, Response, make_response, render_template, request
from werkzeug.exceptions import HTTPException

from app.http import browser_headers, error_handlers
from app.http.error_handlers import DOCS
from app.http.hosts import base_url
from app.http.paths import SHAPES
from app.http.responses import json_response
from app.http.routes import route_facts
from app.openapi import examples, operations, schemas
from app.openapi.operations import Operations
from app.openapi.schemas import OBJECTS, SchemaPlugin
from app.openapi.webhooks import webhooks
from app.schemas.errors import ErrorSchema
from app.schemas.fields import Parsed

VERSION = version("almanac")
SUMMARY = "Calendar availability and events over Google, Microsoft 365, CalDAV and feeds, self-hosted."
DESCRIPTION = """\
Calendar availability and events over Google, Microsoft 365, CalDAV and calendar feeds.

- **Keys.** Every request carries `Authorization: Bearer <API_KEY>`.
- **Responses.** Success is `{"data": ...}`, an error `{"data": null, "error": "<one sentence>"}`. Calendars
  and users that could not be read are listed beside `data`, in `failedCalendars` or `failedUsers`; they never
  appear as free. An error from a provider has a `reason`, and `failedCalendars` if calendars were read.
- **Time.** Responses have timestamps in UTC: `2026-11-20T09:00:00.000Z`. Requests may use any ISO 8601 form;
  a timestamp without an offset is local time in the zone of the header `X-Timezone` (default `UTC`).
- **Arrays in a query** may be written `provider=google&provider=microsoft`,
  `provider[]=google&provider[]=microsoft` or `provider=google,microsoft`.
- **Unknown** parameters and fields of requests are ignored. Answers may gain fields, and clients ignore those
  that they do not know.
- **Retries.** With the header `Idempotency-Key`, a repeated request to create something returns the first
  response for 24 hours, and nothing is created twice.
- **Rate limits.** If the key or the installation has one, every response has the headers `RateLimit-Limit`,
  `RateLimit-Remaining` and `RateLimit-Reset`, and 429 has `Retry-After`.
- **Headers.** Every response has `X-Request-Id`, yours if you sent one. Busy and scheduling responses have
  their age in `Age`; `Cache-Control: no-cache` requests fresh data.
"""

OPTIONS: dict[str, Any] = {
    "info": {
        "summary": SUMMARY,
        "description": DESCRIPTION,
        "license": {"name": "MIT", "identifier": "MIT"},
    },
    "components": {
        "securitySchemes": {
            "apiKey": {
                "type": "http",
                "scheme": "bearer",
                "description": "Made in the dashboard, or by `almanac keys create`.",
            }
        }
    },
    "security": [{"apiKey": []}],
}


# Names of tags for people, where the tag itself is not such a name.
TAG_TITLES = {"oauth": "Connections", "authorization": "Consent", "unified": "Unified events"}


class Api(flask_smorest.Api):
    """A flask-smorest API with our errors, in responses and in its document, and without its pagination."""

    # Every operation lists its errors itself.
    DEFAULT_ERROR_RESPONSE_NAME = None

    def __init__(self, app: Flask) -> None:
        self._operations = Operations(app)
        self._descriptions: list[Callable[[], None]] = []
        self._made: dict[str, Any] | None = None
        self._making = Lock()
        plugins = {"marshmallow_plugin": SchemaPlugin(), "extra_plugins": [self._operations]}
        super().__init__(app, spec_kwargs=plugins)
        self.register_field(Parsed, "string", None)
        self.spec.components.schema("Error", schema=ErrorSchema)
        for name, schema in OBJECTS.items():
            self.spec.components.schema(name, schema)
        for name, header in operations.COMPONENTS.items():
            self.spec.components.header(name, header)
        for converter, shape in SHAPES.items():
            self.register_converter(converter, lambda _converter, shape=shape: shape)

    def describe_later(self, describe: Callable[[], None]) -> None:
        """Call this function, which adds operations to the document, when the document is requested."""
        self._descriptions.append(describe)

    def _register_responses(self) -> None:
        """Every operation has responses of its own."""

    def _register_pagination_header(self) -> None:
        """Our lists have a cursor in the body instead."""

    def _register_etag_headers(self) -> None:
        """Our responses have none."""

    def handle_http_exception(self, error: HTTPException) -> tuple[Any, int, Mapping[str, str]]:
        """The response to an error that Flask, werkzeug or webargs raised."""
        return error_handlers.http_exception(error)

    @route_facts(needs_key=False)
    def _openapi_json(self) -> Response:
        return json_response(_at(base_url() or request.script_root, self._document()))

    def _document(self) -> dict[str, Any]:
        """The document, without the addresses of this installation; made for the first request."""
        with self._making:
            if self._made is None:
                self._made = self._make()
            return self._made

    def _make(self) -> dict[str, Any]:
        while self._descriptions:
            self._descriptions.pop(0)()
        document = schemas.named({**self.spec.to_dict(), "webhooks": webhooks()})
        operations.narrow(document, self._operations.codes)
        examples.add(document)
        return document


def _at(base: str, document: dict[str, Any]) -> dict[str, Any]:
    """The document of the installation at this address."""
    return {
        "openapi": document["openapi"],
        "info": document["info"],
        "servers": [{"url": base or "/", "description": "This installation."}],
        "externalDocs": {"url": f"{base}{DOCS}", "description": "The documentation of this version."},
        **document,
        "tags": [
            {
                **tag,
                "x-displayName": TAG_TITLES.get(tag["name"], tag["name"].capitalize()),
                "externalDocs": {"url": f"{base}{DOCS}/api#{tag['name']}", "description": "The guide."},
            }
            for tag in document["tags"]
        ],
    }


blp = Blueprint("reference", __name__, template_folder="templates")

SWAGGER_UI_VERSION = "5.35.0"
# A quarter of its size. Every browser accepts gzip.
_RENDERER = Path(__file__).parents[1] / f"static/reference/swagger-ui-{SWAGGER_UI_VERSION}.js.gz"


@blp.get("/docs")
@route_facts(needs_key=False)
def page() -> Response:
    """The page. It needs no API key; administrators enter theirs to try operations."""
    return browser_headers.own_scripts_only(
        make_response(render_template("reference/page.html", version=SWAGGER_UI_VERSION))
    )


@blp.get("/docs/swagger-ui.js")
@route_facts(needs_key=False)
def renderer() -> Response:
    """The script of Swagger UI. The address of a new version differs, so browsers may cache it for a year."""
    headers = {"Content-Encoding": "gzip", "Cache-Control": "max-age=31536000"}
    return Response(_RENDERER.read_bytes(), headers=headers, mimetype="text/javascript")
