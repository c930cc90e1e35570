"""Flat schemas read field by field: what a warm request has no time for is marshmallow's way around them.

Only what is right is read here. At the first fault marshmallow looks at the same request and finds the words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from marshmallow import Schema, ValidationError, fields, missing, validates_schema
from werkzeug.datastructures import Headers, MultiDict

from app.schemas.fields import Parsed


class QuerySchema(Schema):
    """A schema for query or headers, all of whose fields stand for themselves."""

    def check(self, data: dict[str, Any]) -> None:
        """Look at the fields together.

        :raise ValidationError: naming the field
        """

    @validates_schema
    def _checked(self, data: dict[str, Any], **_: Any) -> None:
        self.check(data)


class _Step(NamedTuple):
    """What becomes of one field: the key of the result, the name in the request, how its value is read."""

    name: str
    key: str
    value_of: Callable[[Any], Any]
    several: bool
    required: bool
    default: Any


@cache
def _plan(schema: QuerySchema) -> list[_Step]:
    return [
        _Step(
            name,
            field.data_key or name,
            _reader(field),
            isinstance(field, fields.List),
            field.required,
            field.load_default,
        )
        for name, field in schema.fields.items()
    ]


def _reader(field: fields.Field[Any]) -> Callable[[Any], Any]:
    """A text is only parsed, where no more is asked of it."""
    if isinstance(field, Parsed) and not (field.validators or field.pre_load or field.post_load):
        return field.parse
    return field.deserialize


def read(schema: QuerySchema, source: MultiDict[str, str] | Headers) -> dict[str, Any] | None:
    """What ``schema`` makes of a query or of headers; None when that is for marshmallow to tell."""
    found: dict[str, Any] = {}
    try:
        for name, key, value_of, several, required, default in _plan(schema):
            if key in source:
                found[name] = value_of(source.getlist(key) if several else source[key])
            elif required:
                return None
            elif default is not missing:
                found[name] = default() if callable(default) else default
        schema.check(found)
    except ValidationError:
        return None
    return found
