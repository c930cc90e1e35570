"""Google's discovery document as JSON Schema: the vendor's own definition of its answers."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

KEPT = ("type", "enum", "pattern", "minimum", "maximum")
# JSON Schema for each format of a string or number.
FORMATS = {
    "date": {"pattern": r"^\d{4}-\d{2}-\d{2}$"},
    "date-time": {"pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{3})?(Z|[+-]\d{2}:\d{2})$"},
    "int64": {"pattern": r"^-?\d+$"},
    "int32": {"minimum": -(2**31), "maximum": 2**31 - 1},
    "uint32": {"minimum": 0, "maximum": 2**32 - 1},
}


@cache
def document() -> dict[str, Any]:
    """The discovery document in the official client."""
    path = files("googleapiclient.discovery_cache.documents").joinpath("calendar.v3.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def strict(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of the document without additional properties."""
    if "$ref" in schema:
        return {"$ref": f"#/$defs/{schema['$ref']}"}
    made = {name: schema[name] for name in KEPT if name in schema and schema["type"] != "any"}
    made |= FORMATS.get(schema.get("format", ""), {})
    if schema.get("type") == "array":
        made["items"] = strict(schema["items"])
    if schema.get("type") == "object":
        made["properties"] = {name: strict(field) for name, field in schema.get("properties", {}).items()}
        more = schema.get("additionalProperties")
        made["additionalProperties"] = strict(more) if more else False
    return made


@cache
def validator(name: str) -> Draft202012Validator:
    definitions = {name: strict(schema) for name, schema in document()["schemas"].items()}
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})


def check(answer: Any, name: str) -> None:
    """Fail unless ``answer`` matches the document's schema ``name``."""
    problems = [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(answer)]
    assert not problems, "\n".join(problems)


def methods(resources: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Every method of the document by its id."""
    found: dict[str, dict[str, Any]] = {}
    for resource in resources.values():
        found |= {method["id"]: method for method in resource.get("methods", {}).values()}
        found |= methods(resource.get("resources", {}))
    return found
