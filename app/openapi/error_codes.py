"""The error codes of each operation, from the facts of its route, and their place in the document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from app.http.error_codes import Code
from app.http.route_facts import RouteFacts
from providers.errors import Reason

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
# The codes of the resources that a path names.
OF_PARAMETERS = {
    "userId": (Code.USER_NOT_FOUND,),
    "orgSlug": (Code.ORGANIZATION_NOT_FOUND,),
    "webhookId": (Code.WEBHOOK_NOT_FOUND,),
    "holdId": (Code.HOLD_NOT_FOUND,),
    "deliveryId": (Code.DELIVERY_NOT_FOUND,),
    "calendarId": (Code.CONNECTION_NOT_FOUND, Code.CALENDAR_NOT_FOUND),
    "eventId": (Code.EVENT_NOT_FOUND,),
    "metaId": (Code.EVENT_NOT_FOUND,),
}

_ERROR = {"$ref": "#/components/schemas/Error"}


def codes_of(
    facts: RouteFacts, method: str, parameters: Collection[str], *, has_body: bool, has_parameters: bool
) -> set[Code]:
    """The codes that an operation may answer with; ``parameters`` are the names in its path.

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
    for operation in _operations(document):
        own = [code for code in Code if code in codes[operation["operationId"]]]
        name = _error_name(operation["operationId"])
        document["components"]["schemas"] |= _schemas(name, operation["summary"], own)
        for status, response in operation["responses"].items():
            if status == "default" or status >= "400":
                operation["responses"][status] = _narrowed(response, name, status, own)


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
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
