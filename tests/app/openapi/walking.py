"""Walks through the parts of an OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.app.routes import METHODS


def all_operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each operation and webhook, with all its parameters, by a name like ``GET /v1/users``."""
    for path, item in (document["paths"] | document["webhooks"]).items():
        for method in item.keys() & {each.lower() for each in METHODS}:
            operation = item[method]
            parameters = [*item.get("parameters", ()), *operation.get("parameters", ())]
            yield f"{method.upper()} {path}", operation | {"parameters": parameters}


def parts(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The contents of the request and of each response of an operation."""
    if "requestBody" in operation:
        yield "request", operation["requestBody"]["content"]["application/json"]
    for status, answer in operation["responses"].items():
        if "content" in answer:
            yield status, answer["content"]["application/json"]


def closed(node: Any, *, part: bool = False) -> Any:
    """The same document with closed objects: a field that it does not know is an error.

    An object that is a part of another (``allOf``) stays open: it does not know the fields of the others.
    """
    if isinstance(node, list):
        return [closed(each, part=part) for each in node]
    if not isinstance(node, dict):
        return node
    found = {name: closed(each, part=name == "allOf") for name, each in node.items()}
    if not part and found.get("type") == "object" and isinstance(found.get("properties"), dict):
        found.setdefault("additionalProperties", False)
    return found
