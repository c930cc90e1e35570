"""Everything in the OpenAPI document is described, and every request and status has an example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.app.openapi.walking import all_operations, closed, parts


@pytest.fixture(scope="module")
def document(app) -> dict[str, Any]:
    found: dict[str, Any] = app.test_client().get("/v1/openapi.json").json
    return found


def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
    """The schema and its properties without a description; a reference has that of its target."""
    if not schema.get("description") and "$ref" not in schema:
        yield path
    for name, part in schema.get("properties", {}).items():
        yield from undescribed(part, f"{path}.{name}")


def test_every_schema_and_property_is_described(document):
    schemas = document["components"]["schemas"]
    found = [fault for name, schema in schemas.items() for fault in undescribed(schema, name)]

    assert len(schemas) > 60
    assert found == []


def test_every_other_part_is_described(document):
    headers = document["components"]["headers"]
    faults = [f"header {name}" for name, header in headers.items() if not header["description"]]
    faults += [f"tag {each['name']}" for each in document["tags"] if len(each["description"]) < 40]
    for name, operation in all_operations(document):
        if len(operation.get("description", "")) < 10 or not operation.get("summary"):
            faults.append(name)
        for parameter in operation["parameters"]:
            if not parameter.get("description"):
                faults.append(f"{name} {parameter['name']}")
        for status, answer in operation["responses"].items():
            if not answer.get("description"):
                faults.append(f"{name} {status}")

    assert faults == []


def test_no_request_and_no_status_lacks_an_example(document):
    faults = []
    for name, operation in all_operations(document):
        for parameter in operation["parameters"]:
            schema = parameter["schema"]
            if parameter.get("required") and "example" not in parameter and "examples" not in schema:
                faults.append(f"{name} {parameter['name']}")
        for what, content in parts(operation):
            if not content.get("examples") and "example" not in content:
                faults.append(f"{name} {what}")

    assert faults == []


def test_every_example_conforms_to_its_schema_without_extra_fields(document):
    strict = closed(document)
    components = strict["components"]
    checked = 0
    for name, operation in all_operations(strict):
        for what, content in parts(operation):
            validator = jsonschema.Draft202012Validator({"components": components, **content["schema"]})
            for example in content.get("examples", {}).values():
                if "$ref" in example:
                    example = components["examples"][example["$ref"].rpartition("/")[2]]
                faults = [error.message for error in validator.iter_errors(example["value"])]
                assert faults == [], (name, what)
                checked += 1

    assert checked > 300


def test_every_parameter_example_conforms_to_its_schema(document):
    for name, operation in all_operations(document):
        for parameter in operation["parameters"]:
            schema = {"components": document["components"], **parameter["schema"]}
            examples = [*parameter["schema"].get("examples", ())]
            examples += [parameter["example"]] if "example" in parameter else []
            for example in examples:
                errors = jsonschema.Draft202012Validator(schema).iter_errors(example)
                assert [error.message for error in errors] == [], (name, parameter["name"])
