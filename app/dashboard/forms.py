"""Forms, validated by the same schemas as request bodies; errors are shown beside their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flask import request
from marshmallow import Schema, ValidationError

from app.schemas.fields import Body

__all__ = ["Body", "Form", "blank", "read", "typed"]


@dataclass(slots=True)
class Form:
    """A form as it was sent: ``values`` and ``errors`` by field name; ``data`` if the form is valid.

    An error that belongs to no single field has the key ``""``.
    """

    values: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return not self.errors

    def refuse(self, name: str, error: str) -> None:
        """Add an error for a field."""
        self.errors[name] = error


def blank(**values: str) -> Form:
    """An empty form, or one with suggested values."""
    return Form(values=values)


def read(schema: type[Schema], suggested: Mapping[str, str] | None = None) -> Form:
    """The form of this request. Empty fields count as missing; ``suggested`` has values for missing ones."""
    sent = {name: value for name, value in request.form.items() if value.strip() and name != "csrf_token"}
    values = {**(suggested or {}), **sent}
    form = Form(values)
    try:
        form.data = schema().load(values)
    except ValidationError as error:
        messages = error.messages_dict
        form.errors = {"" if name == "_schema" else name: _first(each) for name, each in messages.items()}
    return form


def typed(expected: str) -> bool:
    """Whether the person has typed ``expected`` to confirm an action, see the macro ``confirmed``."""
    return request.form.get("confirm", "").strip() == expected


def _first(messages: Any) -> str:
    while not isinstance(messages, str):
        messages = next(iter(messages.values() if isinstance(messages, dict) else messages))
    return "is required" if messages.startswith("Missing data") else messages
