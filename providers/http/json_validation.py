"""Values of a provider's JSON that have to be of their type: a wrong one is not an empty one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import orjson

# What a payload of another shape than expected leads to.
# OSError: the name of a folder of zones is not the name of one.
SHAPE_ERRORS = (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError, OSError)

# Levels of lists and objects that our own messages and answers put around a record.
AROUND = 16


def text(value: object) -> str:
    """A text, empty for null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def identifier(value: object) -> str:
    """A text that is not empty."""
    if not text(value):
        raise ValueError("no identifier")
    return text(value)


def flag(value: object) -> bool:
    """A boolean, false for null."""
    if value is not None and not isinstance(value, bool):
        raise TypeError("no boolean")
    return bool(value)


def array(value: object) -> list[Any]:
    """A list; an object, or an empty text, is not an empty list."""
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def original(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as it came, to be passed on: orjson reads what is nested deeper than it writes.

    What lies inside a record, such as an attendee, is passed on with it and needs no look of its own.
    """
    around: object = record
    for _ in range(AROUND):
        around = [around]
    orjson.dumps(around)
    return cast("dict[str, Any]", record)
