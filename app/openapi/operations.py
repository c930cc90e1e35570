"""Completes the operations of the OpenAPI document from the facts of their routes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apispec import BasePlugin
from flask import Flask
from werkzeug.routing import Rule

from app.http.blueprint import Blueprint
from app.http.error_codes import Code
from app.http.route_facts import RouteFacts, declared_facts
from app.openapi import error_codes, headers
from app.schemas.errors import STATUS_DESCRIPTIONS

_ERROR = {"$ref": "#/components/schemas/Error"}
_EVENTS = {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}

# Parameters in the path: the meaning and an example of each.
PATH_PARAMETERS = {
    "userId": ("The id of the user, chosen by you.", "ada"),
    "orgSlug": ("The slug of the organization.", "acme"),
    "provider": ("The provider of the account.", "google"),
    "calendarId": ("The id of the calendar at the provider, or `primary` for the main one.", "primary"),
    "eventId": ("The id of the event at the provider.", "5k0q7ja3hrfgt8e1u6p2m9c4db"),
    "metaId": ("The id that ties the copies of the unified event together.", "review-2026-12"),
    "webhookId": ("The id of the webhook endpoint.", "wh_1f0c7e5d9a3b4c2e8d6f7a90"),
    "holdId": ("The id of the hold.", "hold_5d9a3b4c2e8d6f7a901f0c7e"),
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
            if parameters := headers.of_request(facts):
                operation.setdefault("parameters", []).extend(parameters)
            codes = error_codes.codes_of(
                facts,
                method.upper(),
                rule.arguments,
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
                answer["headers"] = headers.of_response(facts, status, no_store=blueprint.no_store)
            operation["responses"] = dict(sorted(answers.items()))


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
