"""Base class and validators of request bodies."""

from __future__ import annotations

from marshmallow import EXCLUDE, Schema, validate


class Body(Schema):
    """A JSON object in a request; unknown fields are ignored at any depth."""

    error_messages = {"type": "must be an object"}  # noqa: RUF012 - read by marshmallow, never changed

    class Meta:
        unknown = EXCLUDE


def at_most(number: int) -> validate.Length:
    """A validator for lists with at most this many elements."""
    return validate.Length(max=number, error="must have at most {max} elements")
