"""Validates the types in a JSON body."""

from __future__ import annotations

from typing import Any

# A type, a list of one shape, or an object whose known fields have shapes.
Shape = Any

WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}


def shape_error(value: Any, shape: Shape, path: str = "body") -> str | None:
    """The first type error as a sentence, or None; null is always valid, unknown fields are ignored."""
    if value is None:
        return None
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{path} is not an array"
        found = (shape_error(item, shape[0], f"{path}[{n}]") for n, item in enumerate(value))
        return next((problem for problem in found if problem), None) or absent(value, path)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{path} is not an object"
        found = (shape_error(value.get(name), part, f"{path}.{name}") for name, part in shape.items())
        return next((problem for problem in found if problem), None)
    allowed = (int, float) if shape is float else shape
    # In Python, unlike JSON, true is a number.
    if not isinstance(value, allowed) or (isinstance(value, bool) and shape is not bool):
        return f"{path} is not {WORDS[shape]}"
    return None


def absent(items: list[Any], path: str) -> str | None:
    """An array holds no nulls."""
    return f"{path} holds null" if None in items else None
