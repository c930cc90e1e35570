"""The body that connects an account: tokens, or the fields that the definitions of the providers declare."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, validates_schema

from app.schemas.connections import LABEL, MAX_LABEL, ConnectionBody
from app.schemas.fields import Body, Text, Word, about
from providers import registry
from providers.definition import Field

MAX_VALUE = 2048


def declared(provider: str) -> tuple[Field, ...]:
    """The fields of a provider's form; none if it has no form."""
    form = registry.definition(provider).form
    return () if form is None else form.fields


class _AccountBody(ConnectionBody):
    label = Text(longest=MAX_LABEL, load_default=None, allow_none=True, metadata=LABEL)

    @validates_schema
    def has_what_its_type_needs(self, data: Mapping[str, Any], **options: Any) -> None:
        """Require the fields of the provider's form; without one, those of tokens."""
        fields = declared(data["provider"])
        for each in fields:
            if data.get(each.name) is None:
                raise ValidationError("is required", each.name)
        if not fields:
            super().has_what_its_type_needs(dict(data), **options)


def _fields() -> dict[str, Any]:
    """The fields of all forms by name; those of the same name are one."""
    found: dict[str, list[tuple[str, Field]]] = {}
    taken = set(_AccountBody().fields)
    for provider in registry.with_form():
        for each in declared(provider):
            if each.name in taken:
                raise ValueError(f"The form of {provider} has a field {each.name}, which every account has")
            found.setdefault(each.name, []).append((provider, each))
    return {name: _field(uses) for name, uses in found.items()}


def _field(uses: list[tuple[str, Field]]) -> Text:
    helps = (f"`{provider}`: {each.help or each.title}" for provider, each in uses)
    formats = {"url": {"format": "uri"}, "password": {"format": "password"}}
    shape = formats.get(uses[0][1].kind, {})
    return Text(shortest=1, longest=MAX_VALUE, metadata=about(". ".join(helps) + ".", **shape))


def form_body(provider: str) -> type[Schema]:
    """The schema of a provider's form as a page sends it: its fields, and a label."""
    fields: dict[str, Any] = {
        each.name: Text(shortest=1, longest=MAX_VALUE, required=True) for each in declared(provider)
    }
    label = Text(longest=MAX_LABEL, load_default=None)
    return Body.from_dict({"label": label, **fields}, name="AccountForm")


def account_body() -> type[Schema]:
    """The schema of the body, made of the providers that are registered."""
    about_provider = about("The provider of the account. Fields of other providers are ignored.")
    provider = Word(registry.names(), required=True, metadata=about_provider)
    made = _AccountBody.from_dict({"provider": provider, **_fields()}, name="AccountBody")
    made.__doc__ = (
        "An account: tokens that the client obtained itself, a mailbox that is read by the grant of an "
        "organization (`delegated`), or the fields of a provider that is connected by a form."
    )
    return made
