"""Routes for organizations and their members."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView
from marshmallow import fields

from app.accounts import organizations
from app.api import replay_access
from app.http import paging
from app.http.auth import caller, within
from app.http.blueprint import Blueprint
from app.http.responses import WholeBody, json_response
from app.http.route_facts import route_facts
from app.schemas.records import (
    MembersBody,
    OrganizationBody,
    OrganizationChangeBody,
    OrganizationSchema,
    PageQuery,
    UserListQuery,
    UserSchema,
    organization_view,
    user_list_view,
)
from app.services import services
from store.sql.queries import organizations as organization_queries
from store.sql.queries import users as user_queries

blp = Blueprint(
    "organizations", __name__, metric_group="organizations", description="Workspaces: groups of users"
)


class MessageAnswer(WholeBody):
    """A sentence that reports what was done."""

    data = fields.String(required=True, metadata={"examples": ["2 users added successfully to design-team"]})


@blp.route("/organizations")
class Organizations(MethodView):
    @route_facts("listOrganizations")
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, OrganizationSchema(many=True))
    def get(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """List organizations"""
        with services().stores.database.reading() as session:
            rows = organization_queries.page(
                session, within=within(), after=paging.after(query), limit=paging.one_more(query)
            )
        return [organization_view(row) for row in paging.cut(query, rows, "slug")]

    @route_facts("createOrganization", replay_check=replay_access.organization)
    @blp.arguments(OrganizationBody)
    @blp.response(200, OrganizationSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create an organization"""
        with services().stores.database.writing() as session:
            organizations.create(session, caller(), body["slug"], body["name"])
            return organization_view(organizations.find(session, caller(), body["slug"]))


@blp.route("/organizations/<org_slug:orgSlug>")
class OrganizationBySlug(MethodView):
    @route_facts("getOrganization")
    @blp.response(200, OrganizationSchema)
    def get(self, orgSlug: str) -> dict[str, Any]:
        """Read an organization"""
        with services().stores.database.reading() as session:
            return organization_view(organizations.find(session, caller(), orgSlug))

    @route_facts("changeOrganization", errors=(409,))
    @blp.arguments(OrganizationChangeBody)
    @blp.response(200, OrganizationSchema)
    def put(self, body: dict[str, Any], orgSlug: str) -> dict[str, Any]:
        """Rename an organization

        Fields that are not in the body stay unchanged.
        """
        with services().stores.database.writing() as session:
            return organization_view(organizations.change(session, caller(), orgSlug, body))

    @route_facts("deleteOrganization")
    @blp.response(200, OrganizationSchema)
    def delete(self, orgSlug: str) -> dict[str, Any]:
        """Delete an organization

        Answers with the deleted organization. Its users stay; API keys that are bound to it end.
        """
        with services().stores.database.writing() as session:
            return organization_view(organizations.delete(session, caller(), orgSlug))


@blp.route("/organizations/<org_slug:orgSlug>/members")
class Members(MethodView):
    @route_facts("listMembers")
    @blp.arguments(UserListQuery, location="query")
    @blp.response(200, UserSchema(many=True))
    def get(self, query: dict[str, Any], orgSlug: str) -> list[dict[str, Any]]:
        """List an organization's members

        An organization of a listed user holds at most 100 members here; `GET /v1/organizations/{orgSlug}`
        has all of them.
        """
        include = query["include"] or user_queries.RELATIONS
        with services().stores.database.reading() as session:
            page = user_queries.page(
                session,
                within=organizations.number(session, caller(), orgSlug),
                include=include,
                after=paging.after(query),
                limit=paging.one_more(query),
                show_only=within(),
            )
        page = page._replace(users=paging.cut(query, page.users, "custom_id"))
        return user_list_view(page, include=include)

    @route_facts("addMembers", replay_check=replay_access.members)
    @blp.arguments(MembersBody)
    @blp.response(201, MessageAnswer)
    @blp.alt_response(200, schema=MessageAnswer, success=True, description="All were members already")
    def post(self, body: dict[str, Any], orgSlug: str) -> Response:
        """Add members

        If any user is unknown, no user is added.
        """
        with services().stores.database.writing() as session:
            added = organizations.add_members(session, caller(), orgSlug, body["userIds"])
        if not added:
            return json_response({"data": f"All users are already members of {orgSlug}"})
        return json_response({"data": f"{added} users added successfully to {orgSlug}"}, 201)

    @route_facts("removeMembers")
    @blp.arguments(MembersBody)
    @blp.response(200, MessageAnswer)
    def delete(self, body: dict[str, Any], orgSlug: str) -> Response:
        """Remove members

        The users stay. If any user is unknown, no user is removed.
        """
        with services().stores.database.writing() as session:
            organizations.remove_members(session, caller(), orgSlug, body["userIds"])
        return json_response({"data": f"Users removed successfully from {orgSlug}"})
