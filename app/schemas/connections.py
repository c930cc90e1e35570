"""Schemas of connections in requests and responses."""

from __future__ import annotations

import re
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from app.schemas.fields import (
    SLUG,
    Body,
    Identifier,
    Instant,
    Text,
    Timestamp,
    TrueOrFalse,
    Word,
)
from app.schemas.paging import PageQuery
from providers.names import ProviderName
from store.sql.models import OAuthConnection
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.users import ListedConnection

# Printable ASCII without spaces, as an HTTP header allows; providers use more than RFC 6750 allows.
TOKEN = re.compile(r"[!-~]+")
ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")
MAX_SCOPES = 200
CONNECTION_TYPES = ("oauth2", "delegated")
SCOPE = {
    "description": "The provider's own scopes, as granted.",
    "examples": [["https://www.googleapis.com/auth/calendar"]],
}
STORED_SCOPE = {
    "description": (
        "The provider's own scopes, as granted; also in one string with spaces, as providers return them. A "
        "level (`write`, `read`, `free-busy`, `edit`) stands for the calendar scopes that it requests."
    ),
    "examples": [["https://www.googleapis.com/auth/calendar"], ["write"]],
}
SHOWN = {"description": "Null unless `showToken` was asked for."}


class TokenText(Text):
    """An access or refresh token, as it can be sent in a header."""

    def __init__(self, description: str, **options: Any) -> None:
        shape = {"pattern": f"^{TOKEN.pattern}$", "description": description}
        super().__init__(shortest=1, longest=16_384, metadata=shape, **options)

    def parse(self, text: str) -> str:
        """The validated token."""
        token = super().parse(text)
        if not TOKEN.fullmatch(token):
            raise ValidationError("must be printable ASCII without spaces")
        return token


class Address(Text):
    """An e-mail address; only its syntax is checked, and only roughly."""

    def __init__(self, *, description: str | None = None, **options: Any) -> None:
        shape: dict[str, Any] = {"pattern": f"^{ADDRESS.pattern}$", "examples": ["ada@example.com"]}
        if description is not None:
            shape["description"] = description
        super().__init__(shortest=3, longest=320, metadata=shape, **options)

    def parse(self, text: str) -> str:
        """The validated address."""
        address = super().parse(text)
        if not ADDRESS.fullmatch(address):
            raise ValidationError("must be an e-mail address, like ada@example.com")
        return address


class Scopes(fields.List[str]):
    """Scopes as an array, or as one string with spaces, as token endpoints return them (RFC 6749, 3.3)."""

    def __init__(self, **options: Any) -> None:
        length = validate.Length(1, MAX_SCOPES, error="must have {min} to {max} elements")
        super().__init__(Text(shortest=1, longest=512), validate=length, metadata=STORED_SCOPE, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list):
            # Nothing but spaces is an empty scope, which is refused.
            parts = ((each.split() or [""]) if isinstance(each, str) else [each] for each in value)
            value = [part for each in parts for part in each]
        return super()._deserialize(value, attr, data, **kwargs)


class ConnectionSchema(Schema):
    """A provider account of a user."""

    provider = Word(
        tuple(ProviderName), required=True, metadata={"description": "The provider of the account."}
    )
    email = fields.String(
        required=True,
        allow_none=True,
        metadata={
            "description": "The address of the account; null if it is not known.",
            "examples": ["ada@example.com"],
        },
    )
    alive = fields.Boolean(
        required=True, metadata={"description": "False once the provider says that the grant is gone."}
    )
    expiresAt = Timestamp(
        required=True,
        allow_none=True,
        metadata={"description": "When the access token expires. It is refreshed before that."},
    )
    scope = fields.List(fields.String(), required=True, metadata=SCOPE)
    type = Word(CONNECTION_TYPES, required=True, metadata={"description": "How the account is connected."})
    accessToken = fields.String(required=True, allow_none=True, metadata=SHOWN)
    refreshToken = fields.String(required=True, allow_none=True, metadata=SHOWN)


class ConnectionBody(Body):
    """Tokens that the client obtained itself; or with the type `delegated`, a mailbox that is read by the
    grant of an organization.
    """

    type = Word(
        CONNECTION_TYPES,
        load_default="oauth2",
        metadata={
            "description": "`oauth2`, the default: from `accessToken` and `scope`, which are then required. "
            "`delegated`: by the grant of `organization`, which is then required, as is `email`.",
            "default": "oauth2",
        },
    )
    organization = Identifier(
        SLUG,
        metadata={
            "description": "Only with `delegated`: the organization whose grant is used. The user is a "
            "member."
        },
    )
    accessToken = TokenText("The access token.")
    refreshToken = TokenText(
        "The refresh token. Without it the connection ends with the access token.",
        load_default=None,
        allow_none=True,
    )
    email = Address(
        load_default=None,
        allow_none=True,
        description="The address of the account. By it, two connections of one account are recognized.",
    )
    expiresAt = Instant(
        load_default=None, allow_none=True, metadata={"description": "When the access token expires."}
    )
    scope = Scopes()

    @validates_schema
    def has_what_its_type_needs(self, data: dict[str, Any], **_: Any) -> None:
        """Require the fields of each type."""
        delegated = data["type"] == "delegated"
        for name in ("email", "organization") if delegated else ("accessToken", "scope"):
            if data.get(name) is None:
                raise ValidationError("is required", name)


class ShowTokenQuery(Schema):
    """Whether to reveal tokens."""

    showToken = TrueOrFalse(load_default=False, metadata={"description": "Reveal access and refresh token."})


class ConnectionsQuery(PageQuery, ShowTokenQuery):
    """Paging, and whether to reveal tokens."""


def connection_view(row: OAuthConnection | ListedConnection, tokens: Tokens | None = None) -> dict[str, Any]:
    """A connection for ``ConnectionSchema``; ``tokens`` only if the response shows them."""
    return {
        "provider": row.provider,
        "email": row.email,
        "alive": row.usable,
        "expiresAt": row.expires_at,
        "scope": row.scope,
        "type": "oauth2" if row.grant_id is None else "delegated",
        "accessToken": tokens.access_token if tokens else None,
        "refreshToken": tokens.refresh_token if tokens else None,
    }
