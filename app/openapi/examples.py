"""Examples in the OpenAPI document: requests and answers that the contract tests have executed.

``make examples`` records them into ``examples.json``. There, each example of an operation has the row of the
contract that executes it. Examples of all operations, and of those with an ``Idempotency-Key``, stand once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from app.http.idempotency import HEADER
from app.openapi.operations import every_operation

FILE = Path(__file__).with_name("examples.json")
EXAMPLES: dict[str, dict[str, dict[str, dict[str, Any]]]] = orjson.loads(FILE.read_bytes())

# Keys of examples that stand once; the other keys are operation ids.
SHARED, IDEMPOTENT = "everyOperation", "everyIdempotentOperation"

_MEDIA = "application/json"


def add(document: dict[str, Any]) -> None:
    """Add the examples to the operations of a document."""
    document["components"]["examples"] = {
        name: {"value": example["answer"]}
        for group in (SHARED, IDEMPOTENT)
        for by_name in EXAMPLES[group].values()
        for name, example in by_name.items()
    }
    for operation in every_operation(document):
        recorded = EXAMPLES.get(operation["operationId"], {})
        _add_request(operation, recorded)
        idempotent = any(each.get("name") == HEADER for each in operation.get("parameters", ()))
        for status, answer in operation["responses"].items():
            own = {name: {"value": example["answer"]} for name, example in recorded.get(status, {}).items()}
            shared = [
                *EXAMPLES[SHARED].get(status, ()),
                *(EXAMPLES[IDEMPOTENT].get(status, ()) if idempotent else ()),
            ]
            references = {name: {"$ref": f"#/components/examples/{name}"} for name in shared}
            answer["content"][_MEDIA]["examples"] = own | references


def _add_request(operation: dict[str, Any], recorded: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Add the requests that succeeded: bodies by name, and the parameters of the first."""
    requests = {
        name: example["request"]
        for status, by_name in recorded.items()
        if status.startswith("2")
        for name, example in by_name.items()
    }
    bodies = {name: {"value": each["body"]} for name, each in requests.items() if "body" in each}
    if bodies:
        operation["requestBody"]["content"][_MEDIA]["examples"] = bodies
    first: dict[str, Any] = next(iter(requests.values()), {})
    sent = first.get("query", {}) | first.get("headers", {})
    for parameter in operation.get("parameters", ()):
        if parameter["name"] in sent:
            parameter["example"] = _typed(sent[parameter["name"]], parameter["schema"])


def _typed(text: str, schema: dict[str, Any]) -> Any:
    """A value of a query or a header, by the type of its schema."""
    match schema.get("type"):
        case "array":
            return text.split(",")
        case "integer" | "boolean":
            return orjson.loads(text)
    return text
