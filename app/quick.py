"""Flat schemas read field by field: what a warm request has no time for is marshmallow's way around them.

Only what is right is read here. At the first fault marshmallow looks at the same request and finds the words.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from marshmallow import Schema, ValidationError, fields, missing, validates_schema
from werkzeug.datastructures import Headers, MultiDict


class QuerySchema(Schema):
    """A schema for query or headers, all of whose fields stand for themselves."""

    def check(self, data: dict[str, Any]) -> None:
        """Look at the fields together.

        :raise ValidationError: naming the field
        """

    @validates_schema
    def _checked(self, data: dict[str, Any], **_: Any) -> None:
        self.check(data)


@cache
def _plan(schema: QuerySchema) -> list[tuple[str, str, fields.Field[Any], bool]]:
    """What to put where: the key of the result, the name in the request, the field, whether it is a list."""
    return [
        (name, field.data_key or name, field, isinstance(field, fields.List))
        for name, field in schema.fields.items()
    ]


def read(schema: QuerySchema, source: MultiDict[str, str] | Headers) -> dict[str, Any] | None:
    """What ``schema`` makes of a query or of headers; None when that is for marshmallow to tell."""
    found: dict[str, Any] = {}
    try:
        for name, key, field, several in _plan(schema):
            if key in source:
                value: Any = source.getlist(key) if several else source[key]
                found[name] = field.deserialize(value, key)
            elif field.required:
                return None
            elif field.load_default is not missing:
                default = field.load_default
                found[name] = default() if callable(default) else default
        schema.check(found)
    except ValidationError:
        return None
    return found
