"""Generated clients read answers with fields that their document does not know.

``before.json`` is the document of a version whose answers had fewer fields and were closed. It closed the
codes of errors too, with one word, so its generated Python client raises ``ValueError`` at other codes. Its
webhooks had ``disabledAt: null`` where the field is left out today.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.app.openapi.walking import all_operations, parts
from tests.generators.conftest import HERE, generate_python, run

pytestmark = pytest.mark.generators

BEFORE = HERE / "before.json"


def answers(document: dict[str, Any]) -> Iterator[tuple[str, int, Any]]:
    """The examples of answers: operation, status and body. They are what the service answers."""
    shared = document["components"]["examples"]
    for name, operation in all_operations(document):
        for status, content in parts(operation):
            if not status.isdecimal():
                continue
            for example in content["examples"].values():
                found = shared[example["$ref"].rpartition("/")[2]] if "$ref" in example else example
                yield name, int(status), found["value"]


def grown(value: Any) -> Any:
    """The same value with one more field in every object."""
    if isinstance(value, list):
        return [grown(each) for each in value]
    if isinstance(value, dict):
        return {"addedLater": {"by": ["a later version"]}} | {
            name: grown(each) for name, each in value.items()
        }
    return value


def without_code(body: Any, codes: list[str]) -> Any:
    """The same body, without the code of an error if this is none of ``codes``; bodies may be texts."""
    if not isinstance(body, dict) or body.get("code") in codes:
        return body
    return {name: value for name, value in body.items() if name != "code"}


def with_nulls(value: Any) -> Any:
    """The same value with the one field that was null in those answers, and is left out today."""
    if isinstance(value, list):
        return [with_nulls(each) for each in value]
    if isinstance(value, dict):
        before = {"disabledAt": None} if value.keys() >= {"url", "events", "createdAt"} else {}
        return before | {name: with_nulls(each) for name, each in value.items()}
    return value


def modules(document: dict[str, Any]) -> dict[str, str]:
    """The generated module of each operation."""
    return {
        name: f"{operation['tags'][0]}.{snake_case(operation['operationId'])}"
        for name, operation in all_operations(document)
        if name.partition(" ")[2] in document["paths"]
    }


def snake_case(name: str) -> str:
    return re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", name)


def parsed(folder: Path, document: dict[str, Any], bodies: list[tuple[str, int, Any]]) -> list[str]:
    """The types that the client of a document makes of answers; it documents all their statuses."""
    known = modules(document)
    file = folder / "answers.json"
    file.write_text(
        json.dumps([{"module": known[name], "status": status, "body": body} for name, status, body in bodies])
    )
    (folder / "parse.py").write_text((HERE / "parse.py").read_text())
    found: list[str] = json.loads(run(sys.executable, "parse.py", file, cwd=folder))
    return found


def test_client_of_an_earlier_document_parses_current_answers(document: Path, tmp_path: Path):
    before = json.loads(BEFORE.read_text())
    known = {
        (name, status)
        for name, operation in all_operations({"webhooks": {}, **before})
        for status in operation["responses"]
    }
    codes = before["components"]["schemas"]["ErrorCode"]["enum"]
    bodies = [
        (name, status, with_nulls(without_code(body, codes)))
        for name, status, body in answers(json.loads(document.read_text()))
        if (name, str(status)) in known
    ]
    assert len(bodies) > 300
    generate_python(BEFORE, tmp_path)

    found = parsed(tmp_path, {"webhooks": {}, **before}, bodies)

    assert [each for each, kind in zip(bodies, found, strict=True) if kind in ("NoneType", "dict")] == []


def test_a_client_of_this_document_reads_answers_with_more_fields(document: Path, tmp_path: Path):
    today = json.loads(document.read_text())
    bodies = [(name, status, grown(body)) for name, status, body in answers(today)]
    generate_python(document, tmp_path)

    found = parsed(tmp_path, today, bodies)

    assert [each for each, kind in zip(bodies, found, strict=True) if kind in ("NoneType", "dict")] == []
