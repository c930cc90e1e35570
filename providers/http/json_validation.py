"""Type checks for values of a provider's JSON.

The strict readers raise for a wrong type: an id, a time or a list of events is never read as an empty one.
The tolerant readers (``shown``, ``shown_or_none``, ``object_or_empty``, ``objects``) are for what is only
shown, such as a subject. A value that they cannot read is absent, so that it hides no event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
import orjson

# Exceptions that parsing an unexpected payload can raise.
# OSError: ``zoneinfo`` raises it for the name of a folder of zones.
SHAPE_ERRORS = (
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    OSError,
    msgspec.ValidationError,
)

# Levels of lists and objects that our own messages and answers nest around a record.
AROUND = 16


def text(value: object) -> str:
    """A string, empty for null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def shown(value: object) -> str:
    """A text that is only shown: empty for anything else, so that it spoils nothing that matters."""
    return value if isinstance(value, str) else ""


def shown_or_none(value: object) -> str | None:
    """As :func:`shown`, None for an empty text."""
    return shown(value) or None


def object_or_empty(value: object) -> dict[str, Any]:
    """An object whose fields are only shown: empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Any]:
    """The objects of a list that is only shown: without its other entries, and empty for anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def has_identifier(record: object) -> bool:
    """Whether a record has an id, so that a client may know it."""
    return bool(shown(object_or_empty(record).get("id")))


def optional_text(value: object) -> str | None:
    """A string, None for null or an empty one."""
    return text(value) or None


def identifier(value: object) -> str:
    """A string that is not empty."""
    if not text(value):
        raise ValueError("no identifier")
    return text(value)


def flag(value: object) -> bool:
    """A boolean, false for null."""
    if value is not None and not isinstance(value, bool):
        raise TypeError("no boolean")
    return bool(value)


def array(value: object) -> list[Any]:
    """A list; an object or an empty string is an error, not an empty list."""
    if not isinstance(value, list):
        raise TypeError("no list")
    return value


def original(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record unchanged, checked to be serializable: orjson parses deeper nesting than it writes.

    Parts of a record, such as an attendee, are included in its check.
    """
    around: object = record
    for _ in range(AROUND):
        around = [around]
    orjson.dumps(around)
    return cast("dict[str, Any]", record)
