"""Converts marshmallow schemas for the OpenAPI document.

Docstrings become descriptions. Objects are open: answers may gain fields, and unknown fields of requests are
ignored.
"""

from __future__ import annotations

from typing import Any

from apispec.ext.marshmallow import MarshmallowPlugin, OpenAPIConverter
from marshmallow import Schema, fields

from app.schemas.fields import OneOf

# Objects that marshmallow passes through unchanged, by name: client generators make a type of each.
OBJECTS: dict[str, dict[str, Any]] = {
    "MeetingUrl": {
        "type": "object",
        "description": "A meeting elsewhere.",
        "required": ["url"],
        "properties": {
            "url": {
                "type": "string",
                "description": "The address of the meeting: `https` or `http`, in ASCII.",
                "examples": ["https://meet.example.com/review"],
            }
        },
    },
    "Original": {
        "type": "object",
        "description": "A provider's own record. Its fields are those of Google or Microsoft.",
        "additionalProperties": True,
    },
}


class Converter(OpenAPIConverter):
    """apispec's converter, with descriptions from docstrings, ``const``, and objects of several schemas."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.attribute_functions.append(self.one_of2properties)

    def schema2jsonschema(self, schema: Schema) -> dict[str, Any]:
        """The JSON schema of a marshmallow schema."""
        converted: dict[str, Any] = super().schema2jsonschema(schema)
        converted.pop("additionalProperties", None)
        return {"description": _description(schema), **converted}

    def metadata2properties(self, field: fields.Field[Any], **named: Any) -> dict[str, Any]:
        """The keywords in the metadata of a field; apispec drops ``const``."""
        found: dict[str, Any] = super().metadata2properties(field, **named)
        const = field.metadata.get("const")
        return found if const is None else found | {"const": const}

    def one_of2properties(self, field: fields.Field[Any], **_: Any) -> dict[str, Any]:
        """A reference to the component of a ``OneOf``, which is registered at its first use."""
        if not isinstance(field, OneOf):
            return {}
        if field.component not in self.spec.components.schemas:
            references = {word: self.resolve_nested_schema(each) for word, each in field.schemas.items()}
            mapping = {word: reference["$ref"] for word, reference in references.items()}
            component = {
                "description": field.meaning,
                "oneOf": list(references.values()),
                "discriminator": {"propertyName": field.selector, "mapping": mapping},
            }
            self.spec.components.schema(field.component, component)
        return {"$ref": f"#/components/schemas/{field.component}"}


class SchemaPlugin(MarshmallowPlugin):
    """apispec's plugin for marshmallow, with our converter."""

    Converter = Converter


def _description(schema: Schema) -> str:
    text = type(schema).__doc__
    assert text is not None, f"{type(schema).__name__} has no docstring"
    return " ".join(text.split()).replace("``", "`")
