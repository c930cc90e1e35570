"""What request bodies have in common."""

from __future__ import annotations

from marshmallow import EXCLUDE, Schema, validate


class Body(Schema):
    """An object that a caller sends; what we do not know of it is ignored, at any depth."""

    error_messages = {"type": "must be an object"}  # noqa: RUF012 - read by marshmallow, never changed

    class Meta:
        unknown = EXCLUDE


def at_most(number: int) -> validate.Length:
    """No more elements than this."""
    return validate.Length(max=number, error="must have at most {max} elements")
