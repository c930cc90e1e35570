"""The OpenAPI document: errors, headers and operation ids, from the facts of the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import flask_smorest
from apispec import BasePlugin
from flask import Flask, Response, make_response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Rule

from app.http import error_handlers, rate_limit, security_headers
from app.http.idempotency import HEADER, REPLAYED
from app.http.path_params import SHAPES
from app.http.responses import json_response
from app.http.route_facts import RouteFacts, declared_facts, route_facts
from app.openapi import enums
from app.schemas.errors import STATUS_DESCRIPTIONS, ErrorSchema
from app.schemas.fields import Parsed

DESCRIPTION = """\
Calendar availability and events over Google Calendar and Microsoft 365.

- **Keys.** Every request carries `Authorization: Bearer <API_KEY>`.
- **Responses.** Success is `{"data": ...}`, an error `{"data": null, "error": "<one sentence>"}`. Calendars
  and users that could not be read are listed beside `data`, in `failedCalendars` or `failedUsers`; they never
  appear as free. An error from a provider has a `reason`, and `failedCalendars` if calendars were read.
- **Time.** Responses have timestamps in UTC: `2026-11-20T09:00:00.000Z`. Requests may use any ISO 8601 form;
  a timestamp without an offset is local time in the zone of the header `X-Timezone` (default `UTC`).
- **Arrays in a query** may be written `provider=google&provider=microsoft`,
  `provider[]=google&provider[]=microsoft` or `provider=google,microsoft`.
- **Unknown** parameters and fields are ignored.
- **Retries.** With the header `Idempotency-Key`, a repeated request to create something returns the first
  response for 24 hours, and nothing is created twice.
- **Rate limits.** If the installation has one, every response to a key has the headers `RateLimit-Limit`,
  `RateLimit-Remaining` and `RateLimit-Reset`, and 429 has `Retry-After`.
- **Headers.** Every response has `X-Request-Id`, yours if you sent one. Busy and scheduling responses have
  their age in `Age`; `Cache-Control: no-cache` requests fresh data.
"""

OPTIONS: dict[str, Any] = {
    "info": {"description": DESCRIPTION, "license": {"name": "MIT", "identifier": "MIT"}},
    "components": {
        "securitySchemes": {
            "apiKey": {"type": "http", "scheme": "bearer", "description": "From `almanac keys create`."}
        }
    },
    "security": [{"apiKey": []}],
}

SWAGGER_UI = {"persistAuthorization": True, "displayRequestDuration": True, "tryItOutEnabled": True}

SECONDS = {"schema": {"type": "integer"}, "description": "Seconds to wait."}
CHALLENGE = {"schema": {"type": "string"}, "description": "`Bearer`, if the API key was rejected."}
# Headers of every response to an API key, if the installation has a rate limit.
QUOTA = {
    rate_limit.LIMIT: {"schema": {"type": "integer"}, "description": "Requests a minute, for each API key."},
    rate_limit.REMAINING: {"schema": {"type": "integer"}, "description": "How many are left."},
    rate_limit.RESET: {"schema": {"type": "integer"}, "description": "Seconds until there are more."},
}
HEADERS: dict[int | str, dict[str, Any]] = {
    401: {"WWW-Authenticate": CHALLENGE},
    409: {"Retry-After": SECONDS},
    429: {"Retry-After": SECONDS, **QUOTA},
    502: {"Retry-After": SECONDS},
    503: {"Retry-After": SECONDS},
}

IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "description": "Chosen by you, unique for each request. A request that is repeated within 24 hours gets "
    "the first response, and nothing is created twice. Errors are not stored: the request runs again.",
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}
WAS_REPLAYED = {
    "schema": {"const": "true"},
    "description": "Only on a replayed response to a repeated request.",
}

# Objects that marshmallow passes through unchanged, by name: client generators make a type of each.
OBJECTS: dict[str, dict[str, Any]] = {
    "MeetingUrl": {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}},
    "Original": {"type": "object", "additionalProperties": True},
}


class Api(flask_smorest.Api):
    """A flask-smorest API with our errors, in responses and in its document, and without its pagination."""

    def __init__(self, app: Any) -> None:
        super().__init__(app, spec_kwargs={"extra_plugins": [Operations(app)]})
        self.register_field(Parsed, "string", None)
        for name, schema in OBJECTS.items():
            self.spec.components.schema(name, schema)
        for converter, shape in SHAPES.items():
            self.register_converter(converter, lambda _converter, shape=shape: shape)

    def _register_responses(self) -> None:
        for name, description in STATUS_DESCRIPTIONS.items():
            response: dict[str, Any] = {
                "description": description,
                "content": {"application/json": {"schema": ErrorSchema}},
                "headers": HEADERS.get(name, {}),
            }
            self.spec.components.response(_response(name), response)

    def _register_pagination_header(self) -> None:
        """Our lists have a cursor in the body instead."""

    def _register_etag_headers(self) -> None:
        """Our responses have none."""

    def handle_http_exception(self, error: HTTPException) -> tuple[Any, int, Mapping[str, str]]:
        """The response to an error that Flask, werkzeug or webargs raised."""
        return error_handlers.http_exception(error)

    @route_facts(needs_key=False)
    def _openapi_json(self) -> Response:
        return json_response(enums.named(self.spec.to_dict()))

    @route_facts(needs_key=False)
    def _openapi_swagger_ui(self) -> Response:
        # Administrators enter their API keys on this page.
        return security_headers.own_scripts_only(make_response(super()._openapi_swagger_ui()))


class Operations(BasePlugin):
    """Sets the id of every operation, and lists its errors."""

    def __init__(self, app: Flask) -> None:
        super().__init__()
        self._app = app

    def operation_helper(
        self,
        path: str | None = None,
        operations: dict[str, Any] | None = None,
        *,
        rule: Rule | None = None,
        **_: Any,
    ) -> None:
        """Complete the operations of one path."""
        assert rule is not None, "paths come from routes"
        for method, operation in (operations or {}).items():
            facts = declared_facts(self._app, rule.endpoint, method)
            assert facts is not None, f"{method} {rule.endpoint} declares no facts"
            operation["operationId"] = facts.operation_id
            if facts.idempotent:
                _describe_idempotency(operation)
            errors = _errors(
                facts,
                method.upper(),
                has_path_params=bool(rule.arguments),
                has_body="requestBody" in operation,
            )
            answers = {str(status): answer for status, answer in operation["responses"].items()}
            # Responses that the operation declares itself take precedence.
            declared = {status: answer for status, answer in answers.items() if isinstance(answer, dict)}
            answers |= {str(status): _response(status) for status in errors} | declared
            if facts.bare_list:
                answers = {name: _or_bare(name, answer) for name, answer in answers.items()}
            operation["responses"] = dict(sorted(answers.items()))


def _errors(facts: RouteFacts, method: str, *, has_path_params: bool, has_body: bool) -> list[int | str]:
    """The errors that the document lists for an operation, in the order of ``STATUS_DESCRIPTIONS``."""
    fails, creates = facts.fails_with_provider, facts.idempotent
    applies: dict[int | str, bool] = {
        401: facts.needs_key,
        403: facts.needs_key and (fails or facts.writes_by(method)),
        404: has_path_params,
        409: creates,
        413: has_body,
        415: has_body,
        422: creates,
        429: facts.needs_key,
        502: fails,
    }
    return [status for status in STATUS_DESCRIPTIONS if applies.get(status, True) or status in facts.errors]


def _describe_idempotency(operation: dict[str, Any]) -> None:
    operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    for status, answer in operation["responses"].items():
        if str(status).startswith("2"):
            answer.setdefault("headers", {})[REPLAYED] = WAS_REPLAYED


def _response(name: int | str) -> str:
    return "OtherError" if name == "default" else f"Error{name}"


def _or_bare(name: str, answer: Any) -> dict[str, Any]:
    """A response of the event list, which has two forms."""
    if name == "200":
        schema = answer["content"]["application/json"]["schema"]
        bare = {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}
        failed = {
            "schema": {"type": "string"},
            "description": "A JSON array of the calendars that could not be read, as many as fit into 3 500 "
            "characters. Only with `minDate`.",
        }
        count = {
            "schema": {"type": "integer"},
            "description": "The number of all calendars that could not be read, including those that do not "
            "fit into `X-Failed-Calendars`.",
        }
        more = {"headers": {"X-Failed-Calendars": failed, "X-Failed-Calendars-Count": count}}
    else:
        status = int(name) if name.isdecimal() else name
        answer = {"description": STATUS_DESCRIPTIONS[status], "headers": HEADERS.get(status, {})}
        schema, bare = {"$ref": "#/components/schemas/Error"}, {"type": "string"}
        more = {}
    return {**answer, **more, "content": {"application/json": {"schema": {"anyOf": [schema, bare]}}}}
