"""What all records have in common."""

from __future__ import annotations

from typing import Any, dataclass_transform

import msgspec


# For type checkers: classes below are frozen too, without saying so themselves.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Record(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of an answer: its fields are those of the OpenAPI document, in snake_case.

    Fields that this version does not know are ignored. Timestamps are aware ``datetime`` objects in UTC.
    """

    def as_json(self) -> dict[str, Any]:
        """The record under the names of the API, as ``json.dumps`` takes it."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found
