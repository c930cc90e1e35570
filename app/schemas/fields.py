"""Base of request bodies, and fields for the parameters of the API. Error messages continue "<name> ..."."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar
from zoneinfo import ZoneInfo

from marshmallow import EXCLUDE, Schema, ValidationError, fields, pre_load, validate, validates_schema

from app.schemas import timestamps
from scheduling.json_render import timestamp
from scheduling.windows import zone_named
from scheduling.zones import iana_zone

USER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,127}", re.ASCII)
SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{2,127}", re.ASCII)
WEBHOOK_ID = re.compile(r"wh_[0-9a-f]{24}", re.ASCII)
CONNECTION_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
HOLD_ID = re.compile(r"hold_[0-9a-f]{24}", re.ASCII)
KEY_ID = re.compile(r"key_[1-9][0-9]{0,8}", re.ASCII)
DELIVERY_ID = re.compile(r"msg_[0-9a-f]{32}", re.ASCII)
INTEGER = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)

EXAMPLES = {
    USER_ID: "ada",
    SLUG: "design-team",
    WEBHOOK_ID: "wh_1f0c7e5d9a3b4c2e8d6f7a90",
    CONNECTION_ID: "5f0c3e9a7b1d4e2f8a6c9d0b1e3f5a7c",
    HOLD_ID: "hold_5d9a3b4c2e8d6f7a901f0c7e",
    KEY_ID: "key_12",
    DELIVERY_ID: "msg_019a5e0b7c3d1f0c7e5d9a3b4c2e8d6f",
}

# Marshmallow's own fields use our messages too.
fields.Field.default_error_messages = {
    **fields.Field.default_error_messages,
    "required": "is required",
    "null": "must not be null",
}
fields.String.default_error_messages = {
    **fields.String.default_error_messages,
    "invalid": "must be a string",
}
fields.List.default_error_messages = {**fields.List.default_error_messages, "invalid": "must be an array"}
fields.Nested.default_error_messages = {
    **fields.Nested.default_error_messages,
    "type": "must be an object",
}


Internal = TypeVar("Internal")


class Body(Schema):
    """A JSON object in a request; unknown fields are ignored at any depth."""

    error_messages = {"type": "must be an object"}  # noqa: RUF012 - read by marshmallow, never changed

    class Meta:
        unknown = EXCLUDE

    @pre_load
    def null_is_absent(self, data: Any, **_: Any) -> Any:
        """Leave out the fields that are null, unless null is a value of the field."""
        if not isinstance(data, dict) or None not in data.values():
            return data
        nullable = {field.data_key or name for name, field in self.fields.items() if field.allow_none}
        return {name: value for name, value in data.items() if value is not None or name in nullable}


class RefusingBody(Body):
    """A body that does not ignore every other field.

    ``refused`` are fields of other routes that would silently have no effect here, each with the message.
    """

    refused: ClassVar[Mapping[str, str]] = {}
    # The values that ask for nothing else than what is done anyway.
    neutral: ClassVar[Mapping[str, Any]] = {}

    @pre_load
    def refuse(self, data: Any, **_: Any) -> Any:
        """Refuse the fields of other routes, and leave out neutral ones."""
        if not isinstance(data, dict):
            return data
        for name, message in self.refused.items():
            value = data.get(name)
            if value is not None and value != self.neutral.get(name):
                raise ValidationError(message, name)
        return {name: value for name, value in data.items() if name not in self.refused}


class WholeBody(Schema):
    """A schema that includes the envelope; its view makes the response."""


class QuerySchema(Schema):
    """A schema for query or headers whose fields can be parsed independently of each other.

    ``refused`` are names of other routes that must not be given, each with the message. ``NEUTRAL`` has the
    values that change nothing, which are accepted.
    """

    NEUTRAL: ClassVar[Mapping[str, str]] = {
        "ifFree": "false",
        "primaryOnly": "true",
        "profile": "apply",
        "order": "request",
    }

    refused: Mapping[str, str] = {}

    @pre_load
    def _refuse(self, data: Any, **_: Any) -> Any:
        for name, message in self.refused.items():
            if name in data and any(
                value not in ("", self.NEUTRAL.get(name)) for value in _values(data, name)
            ):
                raise ValidationError(message, name)
        return data

    def check(self, data: dict[str, Any]) -> None:
        """Validate the fields in combination.

        :raise ValidationError: with the name of the field
        """

    @validates_schema
    def _checked(self, data: dict[str, Any], **_: Any) -> None:
        self.check(data)


def _values(data: Any, name: str) -> list[Any]:
    values: list[Any] = data.getlist(name) if hasattr(data, "getlist") else [data[name]]
    return values


def about(description: str, *examples: Any, **keywords: Any) -> dict[str, Any]:
    """The metadata of a field: its description in the OpenAPI document, examples, and other keywords."""
    return {"description": description, **({"examples": [*examples]} if examples else {}), **keywords}


F = TypeVar("F", bound=fields.Field[Any])


def given(kind: type[F], description: str, *examples: Any, null: bool = False, **keywords: Any) -> F:
    """A field that every body of its kind has, described as by ``about``; ``null``: its value may be null."""
    return kind(required=True, allow_none=null, metadata=about(description, *examples, **keywords))


def list_of(schema: type[Schema], metadata: dict[str, Any]) -> fields.List[Any]:
    """A list of objects that every answer has."""
    return fields.List(fields.Nested(schema), required=True, metadata=metadata)


def at_most(number: int) -> validate.Length:
    """A validator for lists with at most this many elements."""
    return validate.Length(max=number, error="must have at most {max} elements")


class Parsed(fields.Field[Internal], ABC):
    """A field that is a string in the request. ``parse`` returns its value or raises ``ValidationError``.

    ``no_text`` is the error for another type.
    """

    no_text = "must be a string"

    def __init__(
        self, *, shape: Mapping[str, Any], metadata: Mapping[str, Any] | None = None, **options: Any
    ):
        super().__init__(metadata={**shape, **(metadata or {})}, **options)

    @abstractmethod
    def parse(self, text: str) -> Internal:
        """The value of ``text``."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Internal:
        if not isinstance(value, str):
            raise ValidationError(self.no_text)
        return self.parse(value)


class Text(Parsed[str]):
    """A string of bounded length, in one line and without control characters (databases reject NUL)."""

    def __init__(self, *, shortest: int = 0, longest: int, **options: Any) -> None:
        super().__init__(shape={"minLength": shortest, "maxLength": longest}, **options)
        self.shortest = shortest
        self.longest = longest

    def parse(self, text: str) -> str:
        """The text itself."""
        if not self.shortest <= len(text) <= self.longest:
            raise ValidationError(f"must have {self.shortest} to {self.longest} characters")
        if CONTROL.search(text):
            raise ValidationError("must not contain control characters")
        return text


class PathText(Text):
    """A text that is used as one path segment, so ``.`` and ``..`` are not allowed."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shortest=1, **options)

    def parse(self, text: str) -> str:
        """The text itself."""
        segment = super().parse(text)
        if segment in (".", ".."):
            raise ValidationError("must not be . or ..")
        return segment


def identifier_shape(pattern: re.Pattern[str]) -> dict[str, Any]:
    """The schema of an identifier in the OpenAPI document."""
    return {"pattern": f"^{pattern.pattern}$", "examples": [EXAMPLES[pattern]]}


class Identifier(Parsed[str]):
    """An identifier made by this service, or chosen by the client."""

    def __init__(self, pattern: re.Pattern[str], **options: Any) -> None:
        super().__init__(shape=identifier_shape(pattern), **options)
        self.pattern = pattern

    def parse(self, text: str) -> str:
        """The validated identifier."""
        if not self.pattern.fullmatch(text):
            raise ValidationError(f"must match ^{self.pattern.pattern}$")
        return text


class Reference(Text):
    """The id of something that may exist. One of another shape is like one that does not: 404."""

    def __init__(
        self, pattern: re.Pattern[str], *, metadata: Mapping[str, Any] | None = None, **options: Any
    ):
        example = {"examples": [EXAMPLES[pattern]]}
        super().__init__(longest=2048, metadata={**example, **(metadata or {})}, **options)


class Instant(Parsed[timestamps.Timestamp]):
    """A timestamp in any form that the API accepts."""

    # Clients of other APIs send seconds since 1970.
    no_text = timestamps.FORM

    def __init__(self, **options: Any) -> None:
        shape = {"examples": ["2026-11-20T09:00:00Z", "2026-11-20", "2026-11-20T10:00:00+01:00"]}
        super().__init__(shape=shape, **options)

    def parse(self, text: str) -> timestamps.Timestamp:
        """The timestamp; a local time gets its zone later."""
        try:
            return timestamps.parse(text)
        except timestamps.NotATimestamp as error:
            raise ValidationError(str(error)) from error


class Timestamp(fields.DateTime):
    """An instant in a response: UTC, milliseconds, ``Z``. Serializes an aware datetime."""

    def __init__(self, *, metadata: Mapping[str, Any] | None = None, **options: Any) -> None:
        example = {"examples": ["2026-11-20T09:00:00.000Z"]}
        super().__init__(metadata={**example, **(metadata or {})}, **options)

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> str | None:
        if value is None:
            return None
        return timestamp((value - timestamps.EPOCH) // timestamps.MILLISECOND)


class IntegerText(Parsed[int]):
    """An integer in a query: ASCII digits, no leading zeros, within inclusive bounds."""

    def __init__(self, *, least: int, most: int, **options: Any) -> None:
        super().__init__(shape={"type": "integer", "minimum": least, "maximum": most}, **options)
        self.least = least
        self.most = most

    def parse(self, text: str) -> int:
        """The number."""
        if not INTEGER.fullmatch(text):
            raise ValidationError("must be an integer")
        # Twenty digits exceed all bounds; the rest need not be converted.
        number = int(text[:20])
        if not self.least <= number <= self.most:
            raise ValidationError(f"must be between {self.least} and {self.most}")
        return number


class Clock(Parsed[int]):
    """``H:MM`` or ``HH:MM`` on a 24-hour clock, as minutes since midnight."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={"pattern": f"^{CLOCK.pattern}$", "examples": ["09:00"]}, **options)

    def parse(self, text: str) -> int:
        """Minutes since midnight."""
        match = CLOCK.fullmatch(text)
        if match is None:
            raise ValidationError("must be a time of day as HH:MM, from 00:00 to 23:59")
        return int(match[1]) * 60 + int(match[2])


class TrueOrFalse(Parsed[bool]):
    """``true`` or ``false``, exactly."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={"type": "boolean"}, **options)

    def parse(self, text: str) -> bool:
        """The boolean value."""
        if text not in ("true", "false"):
            raise ValidationError("must be true or false")
        return text == "true"


class JsonBoolean(fields.Boolean):
    """``true`` or ``false`` in a JSON body; marshmallow's own field accepts 1 and 0 too."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise ValidationError("must be true or false")
        return value


class JsonInteger(fields.Integer):
    """An integer in a JSON body, within inclusive bounds; a text has the form of those in a query."""

    def __init__(
        self, *, least: int, most: int, metadata: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        shape = {"minimum": least, "maximum": most}
        super().__init__(metadata={**shape, **(metadata or {})}, **options)
        self.least = least
        self.most = most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        number = json_integer(value)
        if number is None:
            raise ValidationError("must be an integer")
        if not self.least <= number <= self.most:
            raise ValidationError(f"must be between {self.least} and {self.most}")
        return number


def json_integer(value: Any) -> int | None:
    """The integer of a JSON body, as a number or as the text of a query; None for anything else."""
    if isinstance(value, str) and INTEGER.fullmatch(value):
        # Twenty digits exceed all bounds; the rest need not be converted.
        return int(value[:20])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class Word(Parsed[str]):
    """One of a closed set of words."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        super().__init__(shape={"enum": [str(word) for word in words]}, **options)
        self.words = words

    def parse(self, text: str) -> str:
        """The validated word."""
        if text not in self.words:
            raise ValidationError(f"must be one of {', '.join(self.words)}")
        return text


class Zone(Parsed[ZoneInfo]):
    """A time zone: any name of the IANA database, or a Windows name; both in any case."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={"examples": ["Europe/Berlin"]}, **options)

    def parse(self, text: str) -> ZoneInfo:
        """The zone."""
        name = zone_named(text) or iana_zone(text)
        if name is None:
            raise ValidationError("must be a time zone name, like Europe/Berlin")
        return ZoneInfo(name)


class OneOf(fields.Field[Any]):
    """An object of one of several schemas; the value of its field ``selector`` decides.

    ``component`` is its name in the OpenAPI document, ``meaning`` its description there.
    """

    def __init__(
        self, component: str, selector: str, schemas: Mapping[str, type[Schema]], *, meaning: str
    ) -> None:
        super().__init__()
        self.component = component
        self.selector = selector
        self.schemas = schemas
        self.meaning = meaning

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return self.schemas[value[self.selector]]().dump(value)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        schema = self.schemas.get(str(value.get(self.selector))) if isinstance(value, dict) else None
        if schema is None:
            raise ValidationError(f"must have {self.selector}, one of {', '.join(self.schemas)}")
        return schema().load(value)


class Several(fields.List[Any]):
    """A query array in any spelling: repeated, with ``[]``, or with commas. Duplicates are dropped."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        parts = [part for text in value for part in str(text).split(",") if part]
        return list(dict.fromkeys(super()._deserialize(parts, attr, data, **kwargs)))
