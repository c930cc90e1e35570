"""Organizations and their members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flask import Response
from flask.views import MethodView
from marshmallow import fields
from sqlalchemy.orm import Session

from app import paging
from app.auth import require_whole_service, within
from app.conflicts import conflict_on
from app.envelope import Blueprint, WholeBody, whole
from app.errors import NotFound
from app.schemas.records import (
    MembersBody,
    MembersQuery,
    OrganizationBody,
    OrganizationChangeBody,
    OrganizationSchema,
    PageQuery,
    UserSchema,
    organization_view,
    user_view,
)
from app.services import services
from store.models import Organization
from store.queries import organizations, users

blp = Blueprint("organizations", __name__, description="Workspaces: groups of users")


class MessageSchema(WholeBody):
    """A sentence that says what was done."""

    data = fields.String(required=True, metadata={"examples": ["2 users added successfully to design-team"]})


@blp.route("/organizations")
class Organizations(MethodView):
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, OrganizationSchema(many=True))
    def get(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """List organizations"""
        with services().stores.database.reading() as session:
            rows = organizations.page(
                session, within=within(), after=paging.after(query), limit=paging.one_more(query)
            )
        return [organization_view(row) for row in paging.cut(query, rows, "slug")]

    @blp.arguments(OrganizationBody)
    @blp.response(200, OrganizationSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create an organization"""
        require_whole_service("Creating organizations")
        with services().stores.database.writing() as session:
            with conflict_on(Organization.slug, "Organization with slug already exists"):
                session.add(Organization(slug=body["slug"], name=body["name"]))
                session.flush()
            return organization_view(_find(session, body["slug"]))


@blp.route("/organizations/<org_slug:orgSlug>")
class OrganizationBySlug(MethodView):
    @blp.response(200, OrganizationSchema)
    def get(self, orgSlug: str) -> dict[str, Any]:
        """Read an organization"""
        with services().stores.database.reading() as session:
            return organization_view(_find(session, orgSlug))

    @blp.arguments(OrganizationChangeBody)
    @blp.response(200, OrganizationSchema)
    def put(self, body: dict[str, Any], orgSlug: str) -> dict[str, Any]:
        """Rename an organization

        What the body does not name stays as it is.
        """
        with services().stores.database.writing() as session:
            row = _find(session, orgSlug, to_change=True)
            with conflict_on(Organization.slug, "Organization with slug already exists"):
                row.slug = body.get("slug", row.slug)
                row.name = body.get("name", row.name)
                session.flush()
            return organization_view(row)

    @blp.response(200, OrganizationSchema)
    def delete(self, orgSlug: str) -> dict[str, Any]:
        """Delete an organization

        Answers with the deleted organization. Its users stay; API keys that are bound to it end.
        """
        with services().stores.database.writing() as session:
            row = _find(session, orgSlug, to_change=True)
            require_whole_service("Deleting an organization")
            organizations.remove(session, row.id)
        return organization_view(row)


@blp.route("/organizations/<org_slug:orgSlug>/members")
class Members(MethodView):
    @blp.arguments(MembersQuery, location="query")
    @blp.response(200, UserSchema(many=True))
    def get(self, query: dict[str, Any], orgSlug: str) -> list[dict[str, Any]]:
        """List an organization's members"""
        include = query["include"] or users.RELATIONS
        with services().stores.database.reading() as session:
            rows = users.page(
                session,
                within=_id(session, orgSlug),
                include=include,
                after=paging.after(query),
                limit=paging.one_more(query),
            )
        page = paging.cut(query, rows, "custom_id")
        return [user_view(row, within=within(), include=include) for row in page]

    @blp.arguments(MembersBody)
    @blp.response(201, MessageSchema)
    @blp.alt_response(200, schema=MessageSchema, success=True, description="All were members already")
    def post(self, body: dict[str, Any], orgSlug: str) -> Response:
        """Add members

        An unknown user adds nobody.
        """
        with services().stores.database.writing() as session:
            organization_id = _id(session, orgSlug, keep=True)
            added = organizations.add_members(session, organization_id, _user_ids(session, body["userIds"]))
        if not added:
            return whole({"data": f"All users are already members of {orgSlug}"})
        return whole({"data": f"{added} users added successfully to {orgSlug}"}, 201)

    @blp.arguments(MembersBody)
    @blp.response(200, MessageSchema)
    def delete(self, body: dict[str, Any], orgSlug: str) -> Response:
        """Remove members

        The users stay. An unknown user removes nobody.
        """
        with services().stores.database.writing() as session:
            organization_id = _id(session, orgSlug)
            organizations.remove_members(session, organization_id, _user_ids(session, body["userIds"]))
        return whole({"data": f"Users removed successfully from {orgSlug}"})


def _find(session: Session, slug: str, *, to_change: bool = False) -> Organization:
    row = organizations.load(session, slug, within=within(), to_change=to_change)
    if row is None:
        raise NotFound("Organization not found")
    return row


def _id(session: Session, slug: str, *, keep: bool = False) -> int:
    found = organizations.ids(session, [slug], within=within(), keep=keep)
    if not found:
        raise NotFound("Organization not found")
    return found[slug]


def _user_ids(session: Session, custom_ids: Sequence[str]) -> list[int]:
    """The internal ids of users that this key may know of; all of them, or an error."""
    found = users.ids(session, set(custom_ids), within=within(), keep=True)
    if len(found) < len(set(custom_ids)):
        raise NotFound("User not found")
    return list(found.values())
