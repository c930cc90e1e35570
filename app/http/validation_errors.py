"""One error from marshmallow's tree of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from app.http.error_codes import Code
from app.http.errors import ApiError, Invalid

# The names and indexes that lead to a field.
Path = tuple[str | int, ...]


def validation_error(messages: Any) -> ApiError:
    """The first error of marshmallow's messages; its sentence and its ``param`` name the field."""
    for location in messages.values() if isinstance(messages, dict) else [messages]:
        for path, message in _errors(location, ()):
            if path:
                return Invalid(f"{_spelled(path)} {message}", param=".".join(map(str, path)))
            return ApiError(_of_whole_body(message), Code.MALFORMED_BODY)
    return ApiError("The request cannot be understood", Code.MALFORMED_BODY)


def _of_whole_body(message: str) -> str:
    if message == "must be an object":
        return "The request body must be an object"
    if message.startswith("Invalid JSON"):
        return "The request body is not valid JSON"
    return message


def _errors(node: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(node, dict):
        for key, child in node.items():
            yield from _errors(child, path if key == "_schema" else (*path, key))
    elif isinstance(node, list):
        for child in node:
            yield from _errors(child, path)
    else:
        yield path, str(node)


def _spelled(path: Path) -> str:
    """A path for people: ``schedules[0].start``."""
    first, *rest = path
    return f"{first}{''.join(f'[{each}]' if isinstance(each, int) else f'.{each}' for each in rest)}"
