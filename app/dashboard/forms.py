"""Forms, validated by the schemas of request bodies, with errors beside their fields; and one-time tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flask import request
from marshmallow import Schema, ValidationError

from app.dashboard import csrf
from app.schemas.fields import SLUG, USER_ID, Body, Identifier
from app.services import services

__all__ = [
    "Body",
    "Form",
    "Slug",
    "UserId",
    "blank",
    "new_form_token",
    "once",
    "read",
    "typed",
]


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
    sent = {name: value for name, value in request.form.items() if value.strip() and name != csrf.FIELD}
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


class _IdentifierField(Identifier):
    def __init__(self, pattern: re.Pattern[str], rule: str, **options: Any) -> None:
        super().__init__(pattern, **options)
        self._rule = rule

    def parse(self, text: str) -> str:
        """The identifier, without surrounding spaces, which often come with copied text."""
        try:
            return super().parse(text.strip())
        except ValidationError as error:
            raise ValidationError(self._rule) from error


class Slug(_IdentifierField):
    """An organization's slug."""

    RULE = "must have 3 to 128 lower-case letters, digits, - and _, and begin with a letter or digit"

    def __init__(self, **options: Any) -> None:
        super().__init__(SLUG, self.RULE, **options)


class UserId(_IdentifierField):
    """A user's identifier."""

    RULE = "must have 3 to 128 letters, digits, dots, - and _, and begin with a letter or digit"

    def __init__(self, **options: Any) -> None:
        super().__init__(USER_ID, self.RULE, **options)


TOKEN_BYTES = 16
# A browser may keep the answer open, and send the form again, for about this long.
REMEMBERED_SECONDS = 14 * 24 * 3600


def new_form_token() -> str:
    """A new token for the hidden field of a form."""
    return secrets.token_urlsafe(TOKEN_BYTES)


@contextmanager
def once(form: Form, sent_before: str) -> Iterator[bool]:
    """Act once for the token of a form: whether it was unused; else it is refused with this sentence.

    Of several concurrent requests exactly one acts. If the action raises or refuses the form, it can be sent
    again.
    """
    redis = services().stores.redis
    key = f"form:{hashlib.sha256(form.data['ticket'].encode()).hexdigest()}"
    if not redis.set(key, b"1", nx=True, ex=REMEMBERED_SECONDS):
        form.refuse("", sent_before)
        yield False
        return
    acted = False
    try:
        yield True
        acted = bool(form)
    finally:
        if not acted:
            redis.delete(key)
