"""Completes the operations of the OpenAPI document from the facts of their routes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from apispec import BasePlugin
from flask import Flask
from marshmallow import Schema
from werkzeug.routing import Rule

from app.http import authentication, requests
from app.http.idempotency import HEADER, REPLAYED
from app.http.paths import providers_of
from app.http.routes import Blueprint, RouteFacts, declared_facts
from app.schemas.error_codes import Code
from app.schemas.errors import STATUS_DESCRIPTIONS
from providers import registry
from providers.errors import Reason

_ERROR = {"$ref": "#/components/schemas/Error"}
_EVENTS = {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}

# Parameters in the path: the meaning and an example of each.
PATH_PARAMETERS = {
    "userId": ("The id of the user, chosen by you.", "ada"),
    "orgSlug": ("The slug of the organization.", "acme"),
    "provider": ("The provider of the account.", registry.names()[0]),
    "connectionId": ("The id of the connection.", "5f0c3e9a7b1d4e2f8a6c9d0b1e3f5a7c"),
    "calendarId": ("The id of the calendar at the provider, or `primary` for the main one.", "primary"),
    "eventId": ("The id of the event at the provider.", "5k0q7ja3hrfgt8e1u6p2m9c4db"),
    "metaId": ("The id that ties the copies of the unified event together.", "review-2026-12"),
    "webhookId": ("The id of the webhook endpoint.", "wh_1f0c7e5d9a3b4c2e8d6f7a90"),
    "holdId": ("The id of the hold.", "hold_5d9a3b4c2e8d6f7a901f0c7e"),
    "keyId": ("The id of the API key.", "key_12"),
    "deliveryId": ("The id of the delivery, from the log.", "msg_019a5e0b7c3d1f0c7e5d9a3b4c2e8d6f"),
}


class Operations(BasePlugin):
    """Sets the ids, headers and errors of operations, and describes the parameters of paths.

    ``codes`` are the error codes of each operation, by its id.
    """

    def __init__(self, app: Flask) -> None:
        super().__init__()
        self._app = app
        self.codes: dict[str, set[Code]] = {}

    def path_helper(self, parameters: list[dict[str, Any]] | None = None, **_: Any) -> None:
        """Describe the parameters of one path."""
        for parameter in parameters or ():
            description, example = PATH_PARAMETERS[parameter["name"]]
            parameter |= {"description": description, "example": example}

    def operation_helper(
        self, operations: dict[str, Any] | None = None, *, rule: Rule | None = None, **_: Any
    ) -> None:
        """Complete the operations of one path."""
        assert rule is not None, "paths come from routes"
        blueprint = self._app.blueprints[rule.endpoint.partition(".")[0]]
        assert isinstance(blueprint, Blueprint), f"{rule.endpoint} has no blueprint of ours"
        for method, operation in (operations or {}).items():
            facts = declared_facts(self._app, rule.endpoint, method)
            assert facts is not None, f"{method} {rule.endpoint} declares no facts"
            operation["operationId"] = facts.operation_id
            has_parameters = bool(operation.get("parameters")) or "provider" in rule.arguments
            if narrower := _narrower_provider(rule):
                operation.setdefault("parameters", []).extend(narrower)
            if parameters := of_request(facts):
                operation.setdefault("parameters", []).extend(parameters)
            codes = codes_of(
                facts,
                method.upper(),
                [*rule.arguments, *_of_query(operation)],
                has_body="requestBody" in operation,
                has_parameters=has_parameters,
            )
            self.codes[operation["operationId"]] = codes
            declared = {str(status): answer for status, answer in operation["responses"].items()}
            successes = {status: answer for status, answer in declared.items() if status.startswith("2")}
            if facts.bare_list:
                successes = {status: _or_bare(answer, _EVENTS) for status, answer in successes.items()}
            answers = successes | {status: _error(status, facts) for status in _statuses(codes)}
            for status, answer in answers.items():
                answer["headers"] = of_response(facts, status, no_store=blueprint.no_store)
            operation["responses"] = dict(sorted(answers.items()))


def _narrower_provider(rule: Rule) -> list[dict[str, Any]]:
    """The parameter of an operation that knows fewer providers than others of its path may."""
    known = providers_of(rule)
    if "provider" not in rule.arguments or known == registry.names():
        return []
    description, example = PATH_PARAMETERS["provider"]
    shape = {"type": "string", "enum": list(known)}
    named = {"in": "path", "name": "provider", "required": True, "schema": shape}
    return [{**named, "description": description, "example": example}]


def _statuses(codes: Collection[Code]) -> list[str]:
    """The statuses of the errors of an operation, in the order of ``STATUS_DESCRIPTIONS``."""
    statuses: set[int | str] = {code.status for code in codes} | {"default"}
    return [str(status) for status in STATUS_DESCRIPTIONS if status in statuses]


def _error(status: str, facts: RouteFacts) -> dict[str, Any]:
    described = STATUS_DESCRIPTIONS[int(status) if status.isdecimal() else status]
    answer = {"description": described, "content": {"application/json": {"schema": _ERROR}}}
    return _or_bare(answer, {"type": "string"}) if facts.bare_list else answer


def _or_bare(answer: dict[str, Any], bare: dict[str, Any]) -> dict[str, Any]:
    """A response of the event list, which has two forms."""
    schema = answer["content"]["application/json"]["schema"]
    return {**answer, "content": {"application/json": {"schema": {"anyOf": [schema, bare]}}}}


# By name. A header that is required is on every response for which ``of_response`` returns it.
COMPONENTS: dict[str, dict[str, Any]] = {
    requests.HEADER: {
        "description": "The id of the request: yours if you sent one.",
        "required": True,
        "schema": {"type": "string", "examples": ["7f3c1c9e52d04b6a8e1d4f20"]},
    },
    authentication.LIMIT: {
        "description": "Requests a minute of this API key. Only if it or the installation has a limit.",
        "schema": {"type": "integer", "examples": [600]},
    },
    authentication.REMAINING: {
        "description": "How many requests are left. Only if there is a limit.",
        "schema": {"type": "integer", "examples": [599]},
    },
    authentication.RESET: {
        "description": "Seconds until more requests are available. Only if there is a limit.",
        "schema": {"type": "integer", "examples": [1]},
    },
    "Age": {
        "description": "The age in seconds of the oldest provider read in the answer.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0, "examples": [12]},
    },
    "Cache-Control": {
        "description": "No cache may store the answer: some answers of this kind contain secrets.",
        "required": True,
        "schema": {"const": "no-store"},
    },
    REPLAYED: {
        "description": "Only on a replayed response to a repeated request.",
        "schema": {"const": "true"},
    },
    "WWW-Authenticate": {
        "description": "`Bearer`, if the API key was rejected.",
        "schema": {"type": "string", "examples": ["Bearer"]},
    },
    "Retry-After": {
        "description": "Seconds to wait before the next attempt, if they are known.",
        "schema": {"type": "integer", "examples": [60]},
    },
    "Link": {
        "description": 'The section of the documents that explains the error (`rel="help"`).',
        "schema": {"type": "string", "examples": ['</docs/reference/errors/#404>; rel="help"']},
    },
    "Allow": {
        "description": "The methods of the path, if the status is 405.",
        "schema": {"type": "string", "examples": ["GET, HEAD, OPTIONS, POST"]},
    },
    "X-Failed-Calendars": {
        "description": "A JSON array of the calendars that could not be read, as many as fit into 3 500 "
        "characters. Only with `minDate`.",
        "schema": {"type": "string"},
    },
    "X-Failed-Calendars-Count": {
        "description": "The number of all calendars that could not be read, including those that do not fit "
        "into `X-Failed-Calendars`. Only with `minDate`.",
        "schema": {"type": "integer", "examples": [1]},
    },
}

IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "description": "Chosen by you, unique for each request. A request that is repeated within 24 hours gets "
    "the first response, and nothing is created twice. Errors are not stored: the request runs again.",
    # Without an example: the page would send it again and again, and get the first response each time.
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}
FRESHNESS = {
    "name": "Cache-Control",
    "in": "header",
    "description": "`no-cache` requires a fresh read, `max-age=10` one that is at most ten seconds old.",
    "schema": {"type": "string"},
}

_QUOTA = (authentication.LIMIT, authentication.REMAINING, authentication.RESET)
_WITH_RETRY_AFTER = frozenset({"429", "502", "503"})


def of_request(facts: RouteFacts) -> list[dict[str, Any]]:
    """The header parameters that follow from the facts of a route."""
    return [
        *([IDEMPOTENCY_KEY] if facts.idempotent else []),
        *([FRESHNESS] if facts.accepts_cache_control or facts.sends_age else []),
    ]


def of_response(facts: RouteFacts, status: str, *, no_store: bool) -> dict[str, Any]:
    """References to the headers of a response; ``no_store`` is that of the route's blueprint."""
    success = status.startswith("2")
    sent = {
        requests.HEADER: True,
        **dict.fromkeys(_QUOTA, facts.needs_key),
        "Age": success and facts.sends_age,
        "Cache-Control": no_store,
        REPLAYED: success and facts.idempotent,
        "WWW-Authenticate": status == "401",
        "Retry-After": status in _WITH_RETRY_AFTER or (status == "409" and facts.idempotent),
        "Link": not success,
        "Allow": status == "default",
        "X-Failed-Calendars": success and facts.bare_list,
        "X-Failed-Calendars-Count": success and facts.bare_list,
    }
    return {name: {"$ref": f"#/components/headers/{name}"} for name, is_sent in sent.items() if is_sent}


OF_PROVIDER = tuple(Code[reason.name] for reason in Reason)
OF_BODY = (
    Code.MALFORMED_BODY,
    Code.REQUEST_TIMEOUT,
    Code.BODY_TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.BODY_COMPRESSED,
    Code.QUOTA_EXCEEDED,
    Code.OVERLOADED,
)
# The codes of the resources that a path or a query names.
OF_PARAMETERS = {
    "userId": (Code.USER_NOT_FOUND,),
    "orgSlug": (Code.ORGANIZATION_NOT_FOUND,),
    "webhookId": (Code.WEBHOOK_NOT_FOUND,),
    "holdId": (Code.HOLD_NOT_FOUND,),
    "keyId": (Code.KEY_NOT_FOUND,),
    "deliveryId": (Code.DELIVERY_NOT_FOUND,),
    "calendarId": (Code.CONNECTION_NOT_FOUND, Code.CALENDAR_NOT_FOUND),
    "connection": (Code.CONNECTION_NOT_FOUND,),
    "eventId": (Code.EVENT_NOT_FOUND,),
    "metaId": (Code.EVENT_NOT_FOUND,),
}


def _of_query(operation: Mapping[str, Any]) -> Iterator[str]:
    """The names of the parameters in the query, which marshmallow's schemas have."""
    for each in operation.get("parameters", ()):
        if isinstance(each, Mapping) and each.get("in") == "query":
            schema = each.get("schema")
            yield from schema.fields if isinstance(schema, Schema) else (each.get("name", ""),)


def codes_of(
    facts: RouteFacts, method: str, parameters: Collection[str], *, has_body: bool, has_parameters: bool
) -> set[Code]:
    """The codes that an operation may answer with; ``parameters`` are the names in its path and query.

    ``has_parameters``: some parameters are validated, which identifiers in the path are not.
    """
    of_user = "userId" in parameters
    fails, writes, creates = facts.fails_with_provider, facts.writes_by(method), facts.idempotent
    looks_up = facts.sends_age
    rules: dict[tuple[Code, ...], bool] = {
        (Code.INTERNAL_ERROR, Code.SERVICE_UNAVAILABLE): True,
        (Code.VALIDATION_FAILED,): has_body or has_parameters,
        (Code.API_KEY_MISSING, Code.API_KEY_INVALID, Code.KEY_RATE_LIMITED): facts.needs_key,
        (Code.KEY_READ_ONLY,): facts.needs_key and writes,
        (Code.KEY_MAY_NOT_MANAGE_KEYS,): facts.manages_keys,
        OF_BODY: has_body,
        (Code.IDEMPOTENCY_KEY_IN_USE, Code.IDEMPOTENCY_KEY_REUSED): creates,
        OF_PROVIDER: fails,
        (Code.OVERLOADED, Code.NO_WORKER, Code.QUOTA_EXCEEDED): fails or looks_up,
        (Code.RANGE_TOO_LARGE,): looks_up,
        (Code.NO_CONNECTED_CALENDARS,): looks_up and of_user,
        # Changes of a user or of a connection.
        (Code.USER_IN_OTHER_ORGANIZATIONS,): of_user and writes and not fails,
        # Writes of events.
        (Code.EVENT_REFUSED, Code.OUTCOME_UNKNOWN): of_user and writes and fails,
        (Code.EVENT_UNREADABLE,): of_user and writes and fails and has_body,
        (Code.EVENT_EXISTS,): creates and fails and of_user,
    }
    found = {code for codes, applies in rules.items() if applies for code in codes}
    of_path = {code for name in parameters for code in OF_PARAMETERS.get(name, ())}
    return found | of_path | set(facts.codes)


def narrow(document: dict[str, Any], codes: Mapping[str, Collection[Code]]) -> None:
    """Give each operation of the document a schema of errors, whose ``code`` is one of the operation's.

    ``codes`` are those of each operation, by its id.
    """
    for operation in every_operation(document):
        own = [code for code in Code if code in codes[operation["operationId"]]]
        name = _error_name(operation["operationId"])
        document["components"]["schemas"] |= _schemas(name, operation["summary"], own)
        for status, response in operation["responses"].items():
            if status == "default" or status >= "400":
                operation["responses"][status] = _narrowed(response, name, status, own)


def every_operation(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The operations of a document."""
    for item in document["paths"].values():
        yield from (each for key, each in item.items() if key != "parameters")


def _error_name(operation_id: str) -> str:
    return f"{operation_id[0].upper()}{operation_id[1:]}Error"


def _schemas(name: str, summary: str, codes: Iterable[Code]) -> dict[str, Any]:
    own_code = {"code": {"$ref": f"#/components/schemas/{name}Code"}}
    return {
        name: {
            "type": "object",
            "description": f"The body of error responses to: {summary}.",
            "allOf": [_ERROR, {"type": "object", "properties": own_code}],
        },
        f"{name}Code": {
            "type": "string",
            "description": f"The codes of errors of: {summary}.",
            "enum": [str(code) for code in codes],
        },
    }


def _narrowed(response: dict[str, Any], name: str, status: str, codes: Iterable[Code]) -> dict[str, Any]:
    """A response with the operation's schema of errors, and the codes of this status in its description."""
    own = [f"`{code}`" for code in codes if str(code.status) == status]
    if own:
        response["description"] += f" `code` is {' or '.join(own)}."
    narrowed_response: dict[str, Any] = _with_schema(response, name)
    return narrowed_response


def _with_schema(node: Any, name: str) -> Any:
    if node == _ERROR:
        return {"$ref": f"#/components/schemas/{name}"}
    if isinstance(node, dict):
        return {key: _with_schema(child, name) for key, child in node.items()}
    return [_with_schema(child, name) for child in node] if isinstance(node, list) else node
