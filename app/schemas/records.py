"""Schemas of users, organizations and connections in requests and responses."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import orjson
from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from app.schemas.fields import (
    SLUG,
    USER_ID,
    Body,
    Identifier,
    Instant,
    IntegerText,
    Several,
    Text,
    Timestamp,
    TrueOrFalse,
    Word,
    at_most,
)
from providers.names import ProviderName
from store.sql.models import OAuthConnection, Organization, User
from store.sql.queries.connections import Tokens
from store.sql.queries.organizations import PREVIEWED_MEMBERS, Preview
from store.sql.queries.users import RELATIONS, Page

# Printable ASCII without spaces, as an HTTP header allows; providers use more than RFC 6750 allows.
TOKEN = re.compile(r"[!-~]+")
ADDRESS = re.compile(r"[^\s@]+@[^\s@]+")

# The highest `limit` of a list.
MOST_AT_ONCE = 1000
# The most users that one request may name; organizations can be larger.
MOST_MEMBERS = 10_000
MOST_ORGANIZATIONS = 1000
MOST_SCOPES = 200

CONNECTION_TYPES = ("oauth2",)


SCOPE = {
    "description": "The provider's own scopes, as granted.",
    "examples": [["https://www.googleapis.com/auth/calendar"]],
}
STORED_SCOPE = {
    "description": (
        "The provider's own scopes, as granted. A level (`write`, `read`, `free-busy`, `edit`) stands for "
        "the calendar scopes that it requests."
    ),
    "examples": [["https://www.googleapis.com/auth/calendar"], ["write"]],
}
SHOWN = {"description": "Null unless `showToken` was asked for."}


class TokenText(Text):
    """An access or refresh token, as it can be sent in a header."""

    def __init__(self, **options: Any) -> None:
        shape = {"pattern": f"^{TOKEN.pattern}$"}
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


class ConnectionSchema(Schema):
    """A provider account of a user."""

    provider = Word(tuple(ProviderName), required=True)
    email = fields.String(required=True, allow_none=True, metadata={"examples": ["ada@example.com"]})
    alive = fields.Boolean(
        required=True, metadata={"description": "False once the provider says that the grant is gone."}
    )
    expiresAt = Timestamp(required=True, allow_none=True)
    scope = fields.List(fields.String(), required=True, metadata=SCOPE)
    type = Word(CONNECTION_TYPES, required=True)
    accessToken = fields.String(required=True, allow_none=True, metadata=SHOWN)
    refreshToken = fields.String(required=True, allow_none=True, metadata=SHOWN)


class MemberSchema(Schema):
    """A user as a member of an organization."""

    id = Identifier(USER_ID, required=True)
    createdAt = Timestamp(required=True)


class OrganizationSchema(Schema):
    """A workspace and its members."""

    slug = Identifier(SLUG, required=True)
    name = fields.String(required=True, allow_none=True, metadata={"examples": ["Design team"]})
    createdAt = Timestamp(required=True)
    members = fields.List(fields.Nested(MemberSchema), required=True)
    membersTruncated = fields.Boolean(
        metadata={
            "description": "True in a list of users when the organization has more members than the "
            f"{PREVIEWED_MEMBERS} that `members` then holds; absent otherwise."
        }
    )
    memberCount = fields.Integer(
        metadata={"description": "The number of all members; present with `membersTruncated`."}
    )


class NestedOrganization(fields.Nested):
    """An organization of a user, which a list of users encodes once for all its members."""

    def __init__(self, **options: Any) -> None:
        super().__init__(OrganizationSchema, **options)

    def _serialize(  # type: ignore[override]
        self, nested_obj: Any, attr: str | None, obj: Any, **kwargs: Any
    ) -> Any:
        if isinstance(nested_obj, orjson.Fragment):
            return nested_obj
        return super()._serialize(nested_obj, attr, obj, **kwargs)  # type: ignore[no-untyped-call]


class UserSchema(Schema):
    """A user, with the relations in ``include``."""

    id = Identifier(USER_ID, required=True)
    createdAt = Timestamp(required=True)
    oauthConnections = fields.List(fields.Nested(ConnectionSchema))
    organizations = fields.List(NestedOrganization())


class PageQuery(Schema):
    """Optional paging."""

    limit = IntegerText(
        least=1, most=MOST_AT_ONCE, metadata={"description": f"The longest page, 1 to {MOST_AT_ONCE}."}
    )
    cursor = Text(longest=512, metadata={"description": "`nextCursor` of the page before."})


class IncludeQuery(Schema):
    """The relations to include in the response."""

    include = Several(
        Word(RELATIONS),
        load_default=list,
        metadata={"description": "Relations to answer with; both without it."},
    )


class UserListQuery(PageQuery, IncludeQuery):
    """Paging and relations."""


class UserBody(Body):
    """A new user."""

    id = Identifier(USER_ID, required=True)
    organizationSlugs = fields.List(
        Identifier(SLUG),
        load_default=list,
        validate=at_most(MOST_ORGANIZATIONS),
        metadata={"description": "Organizations to become a member of; an unknown one creates nothing."},
    )


class RenameBody(Body):
    """A user's new identifier."""

    userId = Identifier(USER_ID)
    id = Identifier(USER_ID)

    @validates_schema
    def names_one(self, data: dict[str, Any], **_: Any) -> None:
        """Accept either name; one is required."""
        if not data:
            raise ValidationError("is required", "userId")


class OrganizationBody(Body):
    """A new organization."""

    slug = Identifier(SLUG, required=True)
    name = Text(shortest=1, longest=128, load_default=None, allow_none=True)


class OrganizationChangeBody(Body):
    """A change of an organization; absent fields stay unchanged."""

    slug = Identifier(SLUG)
    name = Text(shortest=1, longest=128, allow_none=True)


class MembersBody(Body):
    """Users to add or remove."""

    userIds = fields.List(Identifier(USER_ID), required=True, validate=at_most(MOST_MEMBERS))


class ConnectionBody(Body):
    """Tokens that the client obtained itself."""

    accessToken = TokenText(required=True)
    refreshToken = TokenText(load_default=None, allow_none=True)
    email = Address(load_default=None, allow_none=True)
    expiresAt = Instant(load_default=None, allow_none=True)
    scope = fields.List(
        Text(shortest=1, longest=512),
        required=True,
        validate=validate.Length(1, MOST_SCOPES, error="must have {min} to {max} elements"),
        metadata=STORED_SCOPE,
    )


class ShowTokenQuery(Schema):
    """Whether to reveal tokens."""

    showToken = TrueOrFalse(load_default=False, metadata={"description": "Reveal access and refresh token."})


class ConnectionsQuery(PageQuery, ShowTokenQuery):
    """Paging, and whether to reveal tokens."""


class SuccessSchema(Schema):
    """The result of a request without other data."""

    success = fields.Boolean(required=True)


def connection_view(row: OAuthConnection, tokens: Tokens | None = None) -> dict[str, Any]:
    """A connection for ``ConnectionSchema``; ``tokens`` only if the response shows them."""
    return {
        "provider": row.provider,
        "email": row.email,
        "alive": row.alive,
        "expiresAt": row.expires_at,
        "scope": row.scope,
        "type": "oauth2",
        "accessToken": tokens.access_token if tokens else None,
        "refreshToken": tokens.refresh_token if tokens else None,
    }


def organization_view(row: Organization) -> dict[str, Any]:
    """An organization for ``OrganizationSchema``."""
    members = [{"id": user.custom_id, "createdAt": user.created_at} for user in row.members]
    return {"slug": row.slug, "name": row.name, "createdAt": row.created_at, "members": members}


def organizations_shown(row: User, *, within: int | None) -> list[Organization]:
    """A user's organizations; for a key that is bound to one, only that one."""
    return [organization for organization in row.organizations if within in (None, organization.id)]


def user_list_view(page: Page, *, include: Collection[str]) -> list[dict[str, Any]]:
    """Users for ``UserSchema(many=True)``; each organization is encoded once for all its members."""
    schema = OrganizationSchema()
    encoded = {
        number: orjson.Fragment(orjson.dumps(schema.dump(_preview_view(each))))
        for number, each in page.organizations.items()
    }
    views = []
    for row in page.users:
        view = user_view(row, within=None, include=set(include) - {"organizations"})
        if "organizations" in include:
            # An organization can be deleted between the two statements that read it.
            numbers = page.memberships.get(row.id, ())
            view["organizations"] = [encoded[number] for number in numbers if number in encoded]
        views.append(view)
    return views


def _preview_view(preview: Preview) -> dict[str, Any]:
    members = [{"id": each.custom_id, "createdAt": each.created_at} for each in preview.members]
    view: dict[str, Any] = {
        "slug": preview.slug,
        "name": preview.name,
        "createdAt": preview.created_at,
        "members": members,
    }
    if preview.member_count > len(members):
        view |= {"membersTruncated": True, "memberCount": preview.member_count}
    return view


def user_view(row: User, *, within: int | None, include: Collection[str]) -> dict[str, Any]:
    """A user for ``UserSchema``, with the relations in ``include``."""
    view: dict[str, Any] = {"id": row.custom_id, "createdAt": row.created_at}
    if "oauthConnections" in include:
        view["oauthConnections"] = [connection_view(connection) for connection in row.connections]
    if "organizations" in include:
        view["organizations"] = [organization_view(each) for each in organizations_shown(row, within=within)]
    return view
