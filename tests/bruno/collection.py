"""The Bruno collection of the API, from the OpenAPI document: ``make bruno`` writes it.

Bruno is a client for HTTP APIs that keeps its requests in text files
(https://docs.usebruno.com/bru-lang/overview). Parameters that a request may have are there, switched off.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.almanac_typescript.types import document

FOLDER = Path(__file__).parents[2] / "clients/bruno"
METHODS = ("get", "post", "put", "patch", "delete")

COLLECTION = {"version": "1", "name": "Almanac", "type": "collection"}
# Every request inherits it.
SIGN_IN = """\
auth {
  mode: bearer
}

auth:bearer {
  token: {{key}}
}
"""
ENVIRONMENT = """\
vars {
  url: http://127.0.0.1:8080
  organization: demo
}
vars:secret [
  key
]
"""


def files(api: Mapping[str, Any]) -> dict[str, str]:
    """The text of each file of the collection, by its path."""
    found = {
        "bruno.json": json.dumps(COLLECTION, indent=2) + "\n",
        "collection.bru": SIGN_IN,
        "environments/local.bru": ENVIRONMENT,
    }
    tags = [tag["name"] for tag in api["tags"]]
    for number, tag in enumerate(tags, 1):
        found[f"{tag}/folder.bru"] = _block("meta", _lines({"name": tag, "seq": number}))
    numbers = dict.fromkeys(tags, 0)
    for path, item in api["paths"].items():
        for method in (each for each in METHODS if each in item):
            operation = item[method]
            tag = operation["tags"][0]
            numbers[tag] += 1
            shared = item.get("parameters", [])
            found[f"{tag}/{operation['operationId']}.bru"] = _request(
                path, method, operation, [*shared, *operation.get("parameters", [])], numbers[tag]
            )
    return found


def _request(
    path: str,
    method: str,
    operation: Mapping[str, Any],
    parameters: Sequence[Mapping[str, Any]],
    number: int,
) -> str:
    body = _example_body(operation)
    for each in parameters:
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", f":{each['name']}")
    query = [each for each in parameters if each["in"] == "query"]
    sent = "&".join(f"{each['name']}={_value(each)}" for each in query if _is_sent(each))
    blocks = [
        _block("meta", _lines({"name": operation["summary"], "type": "http", "seq": number})),
        _block(
            method,
            _lines(
                {
                    "url": f"{{{{url}}}}{path}{'?' * bool(sent)}{sent}",
                    "body": "none" if body is None else "json",
                    "auth": "inherit",
                }
            ),
        ),
    ]
    places = (("params:path", "path"), ("params:query", "query"), ("headers", "header"))
    for name, place in places:
        if lines := [_parameter(each) for each in parameters if each["in"] == place]:
            blocks.append(_block(name, lines))
    if body is not None:
        blocks.append(_block("body:json", json.dumps(body, indent=2, ensure_ascii=False).splitlines()))
    return "\n".join(blocks)


def _lines(values: Mapping[str, object]) -> Iterator[str]:
    return (f"{name}: {value}" for name, value in values.items())


def _block(name: str, lines: Iterator[str] | Sequence[str]) -> str:
    inside = "".join(f"  {line}\n" for line in lines)
    return f"{name} {{\n{inside}}}\n"


def _parameter(parameter: Mapping[str, Any]) -> str:
    """A line; a tilde switches it off."""
    return f"{'' if _is_sent(parameter) else '~'}{parameter['name']}: {_value(parameter)}".rstrip()


def _is_sent(parameter: Mapping[str, Any]) -> bool:
    return bool(parameter.get("required"))


def _value(parameter: Mapping[str, Any]) -> str:
    if parameter["name"] == "orgSlug":
        # That of the demo company, unless the environment says otherwise.
        return "{{organization}}"
    schema = parameter["schema"]
    found = parameter.get("example", next(iter(schema.get("examples", ())), schema.get("default", "")))
    return json.dumps(found) if isinstance(found, bool) else str(found)


def _example_body(operation: Mapping[str, Any]) -> Any:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    return next(iter(content["examples"].values()))["value"]


def main() -> None:
    """Write the collection again."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, text in files(json.loads(document())).items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


if __name__ == "__main__":
    main()
