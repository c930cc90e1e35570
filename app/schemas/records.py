"""Schemas of users and organizations in requests and responses."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson
from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema

from app.schemas.connections import ConnectionSchema, RevokeQuery, connection_view
from app.schemas.fields import (
    SLUG,
    USER_ID,
    Body,
    Identifier,
    JsonInteger,
    Reference,
    RefusingBody,
    Several,
    Text,
    Timestamp,
    WholeBody,
    Word,
    about,
    at_most,
    given,
    list_of,
)
from app.schemas.parameters import PageQuery
from store.coordination.shares import MAX_OWN
from store.sql.models import Organization, User
from store.sql.queries.organizations import PREVIEWED_MEMBERS, Preview
from store.sql.queries.users import RELATIONS, ListedUser, Page

# The most users that one request may name; organizations can be larger.
MAX_MEMBERS = 10_000
MAX_ORGANIZATIONS = 1000


OWN_ID = about("The id of the user, chosen by you.")
OWN_SLUG = about("The identifier of the organization, chosen by you.")
NAME = about("The name for people; may be null.", "Design team")


class MemberSchema(Schema):
    """A user as a member of an organization."""

    id = Identifier(USER_ID, required=True, metadata=OWN_ID)
    createdAt = given(Timestamp, "When the user was registered.")


REQUESTS_PER_MINUTE = about("Requests a minute of all its API keys together; each keeps its own limit.", 600)
WAITING_READS = about("Requests that wait for reads of providers at once.", 64)
WAITING_WRITES = about("Requests that wait for writes at providers at once.", 32)
HELD_USERS = about("Users with held time at once.", 2000)
WEBHOOK_TURNS = about("Its webhook endpoints that a worker serves at once.", 8)


class QuotasSchema(Schema):
    """The limits of an organization that differ from the installation's settings."""

    requestsPerMinute = fields.Integer(metadata=REQUESTS_PER_MINUTE)
    waitingReads = fields.Integer(metadata=WAITING_READS)
    waitingWrites = fields.Integer(metadata=WAITING_WRITES)
    heldUsers = fields.Integer(metadata=HELD_USERS)
    webhookTurns = fields.Integer(metadata=WEBHOOK_TURNS)


def _own_quota(metadata: dict[str, Any]) -> JsonInteger:
    return JsonInteger(least=1, most=MAX_OWN, allow_none=True, metadata=metadata)


class QuotasBody(Body):
    """A change of an organization's quotas: absent ones stay unchanged, null is the installation's."""

    error_messages = {"unknown": "is no quota"}  # noqa: RUF012 - read by marshmallow, never changed

    class Meta:
        unknown = RAISE

    requestsPerMinute = _own_quota(REQUESTS_PER_MINUTE)
    waitingReads = _own_quota(WAITING_READS)
    waitingWrites = _own_quota(WAITING_WRITES)
    heldUsers = _own_quota(HELD_USERS)
    webhookTurns = _own_quota(WEBHOOK_TURNS)


class OrganizationSchema(Schema):
    """A workspace and its members."""

    slug = Identifier(SLUG, required=True, metadata=OWN_SLUG)
    name = fields.String(required=True, allow_none=True, metadata=NAME)
    createdAt = given(Timestamp, "When the organization was created.")
    members = list_of(MemberSchema, about("The members, by id."))
    membersTruncated = fields.Boolean(
        metadata=about(
            "True in a list of users when the organization has more members than the "
            f"{PREVIEWED_MEMBERS} that `members` then holds; absent otherwise."
        )
    )
    memberCount = fields.Integer(
        metadata=about("The number of all members; present with `membersTruncated`.")
    )
    quotas = fields.Nested(
        QuotasSchema,
        metadata=about(
            "What the organization may use, where it differs from the installation's settings; absent "
            "otherwise, and in users."
        ),
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


class UserSchema(MemberSchema):
    """A user, with the relations in ``include``."""

    oauthConnections = fields.List(
        fields.Nested(ConnectionSchema),
        metadata=about("The connected accounts. Absent unless `include` names them or is absent."),
    )
    organizations = fields.List(
        NestedOrganization(),
        metadata=about("The organizations of the user. Absent unless `include` names them or is absent."),
    )


class IncludeQuery(Schema):
    """The relations to include in the response."""

    include = Several(
        Word(RELATIONS), load_default=list, metadata=about("Relations to answer with; both without it.")
    )


class DeleteUserQuery(IncludeQuery, RevokeQuery):
    """The relations to include, and whether the grants of the user are revoked."""


class UserListQuery(PageQuery, IncludeQuery):
    """Paging and relations."""


MEMBERSHIPS = (
    "is no field of new users: give organizationSlugs, or add members by POST "
    "/v1/organizations/{orgSlug}/members"
)


class UserBody(RefusingBody):
    """A new user."""

    # Ignored, they would leave the user without the memberships that the client asked for.
    refused = dict.fromkeys(("organization", "organizations", "organizationSlug", "orgSlug"), MEMBERSHIPS)
    # As in the answer about a user without memberships.
    neutral = {"organizations": []}  # noqa: RUF012

    id = Identifier(USER_ID, required=True, metadata=OWN_ID)
    organizationSlugs = fields.List(
        Reference(SLUG),
        load_default=list,
        validate=at_most(MAX_ORGANIZATIONS),
        metadata=about("Organizations to become a member of; an unknown one creates nothing."),
    )


class RenameBody(Body):
    """A user's new identifier; without one, the user stays unchanged."""

    userId = Identifier(USER_ID, metadata=about("The new id."))
    id = Identifier(USER_ID, metadata=about("The same as `userId`, for older clients."))

    @validates_schema
    def names_one(self, data: dict[str, Any], **_: Any) -> None:
        """Both names stand for one id."""
        if "userId" in data and data.get("id", data["userId"]) != data["userId"]:
            raise ValidationError("must be the same as userId", "id")


OWN_QUOTAS = about(
    "What the organization may use, where it differs from the installation's settings. A quota that is "
    "absent stays unchanged, null is the installation's. Needs an API key that is not bound to an "
    "organization."
)


class OrganizationBody(Body):
    """A new organization."""

    slug = Identifier(SLUG, required=True, metadata=OWN_SLUG)
    name = Text(shortest=1, longest=128, load_default=None, allow_none=True, metadata=NAME)
    quotas = fields.Nested(QuotasBody, load_default=dict, metadata=OWN_QUOTAS)


class OrganizationChangeBody(Body):
    """A change of an organization; absent fields stay unchanged."""

    slug = Identifier(SLUG, metadata=about("The new identifier."))
    name = Text(shortest=1, longest=128, allow_none=True, metadata=NAME)
    quotas = fields.Nested(QuotasBody, metadata=OWN_QUOTAS)


class MembersBody(Body):
    """Users to add or remove."""

    userIds = fields.List(
        Reference(USER_ID),
        required=True,
        validate=at_most(MAX_MEMBERS),
        metadata=about("The ids of the users. If one is unknown, nothing is changed."),
    )


class AddedMembersAnswer(WholeBody):
    """The users who are members now."""

    data = given(
        fields.String, "A sentence that reports what was done.", "2 users added successfully to design-team"
    )
    added = fields.List(
        Identifier(USER_ID),
        required=True,
        metadata=about("Users who were not members before, in the order of the request."),
    )
    alreadyMembers = fields.List(
        Identifier(USER_ID),
        required=True,
        metadata=about("Users who were members before, in the order of the request."),
    )
    count = given(fields.Integer, "The number of users in `added`.")


class RemovedMembersAnswer(WholeBody):
    """The users who are not members any more."""

    data = given(
        fields.String, "A sentence that reports what was done.", "Users removed successfully from design-team"
    )
    removed = fields.List(
        Identifier(USER_ID),
        required=True,
        metadata=about("Users who were members before, in the order of the request."),
    )
    notMembers = fields.List(
        Identifier(USER_ID),
        required=True,
        metadata=about("Users who were not members, in the order of the request."),
    )
    count = given(fields.Integer, "The number of users in `removed`.")


class SuccessSchema(Schema):
    """The result of a request without other data."""

    success = given(fields.Boolean, "Always true.")


def organization_view(row: Organization) -> dict[str, Any]:
    """An organization for ``OrganizationSchema``."""
    members = [{"id": user.custom_id, "createdAt": user.created_at} for user in row.members]
    return {"slug": row.slug, "name": row.name, "createdAt": row.created_at, "members": members}


def organization_view_with_quotas(row: Organization) -> dict[str, Any]:
    """The same with the quotas that it has of its own."""
    return {**organization_view(row), **({"quotas": row.quotas} if row.quotas else {})}


def organizations_shown(row: User, *, only_organization_id: int | None) -> list[Organization]:
    """A user's organizations; for a key that is bound to one, only that one."""
    return [
        organization for organization in row.organizations if only_organization_id in (None, organization.id)
    ]


def user_list_view(page: Page, *, include: Collection[str]) -> list[dict[str, Any]]:
    """Users for ``UserSchema(many=True)``; each organization is encoded once for all its members."""
    schema = OrganizationSchema()
    encoded = {
        number: orjson.Fragment(orjson.dumps(schema.dump(_preview_view(each))))
        for number, each in page.organizations.items()
    }
    views = []
    for row in page.users:
        view = _view_without_organizations(row, include)
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


def user_view(row: User, *, only_organization_id: int | None, include: Collection[str]) -> dict[str, Any]:
    """A user for ``UserSchema``, with the relations in ``include``."""
    view = _view_without_organizations(row, include)
    if "organizations" in include:
        view["organizations"] = [
            organization_view(each)
            for each in organizations_shown(row, only_organization_id=only_organization_id)
        ]
    return view


def _view_without_organizations(row: User | ListedUser, include: Collection[str]) -> dict[str, Any]:
    view: dict[str, Any] = {"id": row.custom_id, "createdAt": row.created_at}
    if "oauthConnections" in include:
        view["oauthConnections"] = [connection_view(connection) for connection in row.connections]
    return view
