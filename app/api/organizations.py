"""Routes for organizations and their members."""

from __future__ import annotations

from typing import Any

from flask import Response
from flask.views import MethodView

from app.accounts import organizations
from app.api import replay_access
from app.http import paging
from app.http.authentication import caller, caller_organization_id
from app.http.responses import json_response
from app.http.routes import Blueprint, route_facts
from app.schemas.error_codes import Code
from app.schemas.parameters import PageQuery
from app.schemas.records import (
    AddedMembersAnswer,
    MembersBody,
    OrganizationBody,
    OrganizationChangeBody,
    OrganizationSchema,
    RemovedMembersAnswer,
    SuccessSchema,
    UserListQuery,
    UserSchema,
    organization_view_with_quotas,
    user_list_view,
)
from app.services import services
from store.sql.queries import organizations as organization_queries
from store.sql.queries import users as user_queries

blp = Blueprint(
    "organizations",
    __name__,
    metric_group="organizations",
    description="Workspaces: groups of users. Busy periods and slots of a whole organization are one "
    "request. An API key may be bound to one organization.",
)


@blp.route("/organizations")
class Organizations(MethodView):
    @route_facts("listOrganizations")
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, OrganizationSchema(many=True))
    def get(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """List organizations

        Each with its members, by slug. An API key that is bound to an organization sees that one only.
        """
        with services().stores.database.reading() as session:
            rows = organization_queries.page(
                session,
                organization_id=caller_organization_id(),
                after=paging.after(params),
                limit=paging.one_more(params),
            )
        return [organization_view_with_quotas(row) for row in paging.cut(params, rows, "slug")]

    @route_facts(
        "createOrganization",
        replay_check=replay_access.organization,
        codes=(Code.ORGANIZATION_EXISTS, Code.KEY_BOUND_TO_ORGANIZATION),
    )
    @blp.arguments(OrganizationBody)
    @blp.response(200, OrganizationSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create an organization

        The API key must not be bound to an organization. The status is 200.
        """
        with services().stores.database.writing() as session:
            organizations.create(session, caller(), body["slug"], body["name"], body["quotas"])
            return organization_view_with_quotas(organizations.find(session, caller(), body["slug"]))


@blp.route("/organizations/<org_slug:orgSlug>")
class OrganizationBySlug(MethodView):
    @route_facts("getOrganization")
    @blp.response(200, OrganizationSchema)
    def get(self, orgSlug: str) -> dict[str, Any]:
        """Read an organization

        With all its members.
        """
        with services().stores.database.reading() as session:
            return organization_view_with_quotas(organizations.find(session, caller(), orgSlug))

    @route_facts("updateOrganization", codes=(Code.ORGANIZATION_EXISTS, Code.KEY_BOUND_TO_ORGANIZATION))
    @blp.arguments(OrganizationChangeBody)
    @blp.response(200, OrganizationSchema)
    def put(self, body: dict[str, Any], orgSlug: str) -> dict[str, Any]:
        """Rename an organization, or change its quotas

        Fields that are not in the body stay unchanged. A change of `quotas` needs an API key that is not
        bound to an organization; it takes effect with the next request.
        """
        with services().stores.database.writing() as session:
            return organization_view_with_quotas(organizations.change(session, caller(), orgSlug, body))

    @route_facts("deleteOrganization", codes=(Code.KEY_BOUND_TO_ORGANIZATION,))
    @blp.response(200, OrganizationSchema)
    def delete(self, orgSlug: str) -> dict[str, Any]:
        """Delete an organization

        Answers with the deleted organization. Its users stay; API keys that are bound to it end.
        """
        return organization_view_with_quotas(organizations.delete(caller(), orgSlug))


@blp.route("/organizations/<org_slug:orgSlug>/members")
class Members(MethodView):
    @route_facts("listMembers")
    @blp.arguments(UserListQuery, location="query")
    @blp.response(200, UserSchema(many=True))
    def get(self, params: dict[str, Any], orgSlug: str) -> list[dict[str, Any]]:
        """List an organization's members

        An organization of a listed user holds at most 100 members here; `GET /v1/organizations/{orgSlug}`
        has all of them.
        """
        include = params["include"] or user_queries.RELATIONS
        with services().stores.database.reading() as session:
            page = user_queries.page(
                session,
                organization_id=organizations.number(session, caller(), orgSlug),
                include=include,
                after=paging.after(params),
                limit=paging.one_more(params),
                shown_organization_id=caller_organization_id(),
            )
        page = page._replace(users=paging.cut(params, page.users, "custom_id"))
        return user_list_view(page, include=include)

    @route_facts("addMembers", replay_check=replay_access.members, codes=(Code.USER_NOT_FOUND,))
    @blp.arguments(MembersBody)
    @blp.response(201, AddedMembersAnswer)
    @blp.alt_response(200, schema=AddedMembersAnswer, success=True, description="All were members already")
    def post(self, body: dict[str, Any], orgSlug: str) -> Response:
        """Add members

        If any user is unknown, no user is added.
        """
        with services().stores.database.writing() as session:
            added, members = organizations.add_members(session, caller(), orgSlug, body["userIds"])
        sentence = f"All users are already members of {orgSlug}"
        if added:
            sentence = f"{len(added)} users added successfully to {orgSlug}"
        answer = {"data": sentence, "added": added, "alreadyMembers": members, "count": len(added)}
        return json_response(answer, 201 if added else 200)

    @route_facts("removeMembers", codes=(Code.USER_NOT_FOUND,))
    @blp.arguments(MembersBody)
    @blp.response(200, RemovedMembersAnswer)
    def delete(self, body: dict[str, Any], orgSlug: str) -> Response:
        """Remove members

        The users stay. If any user is unknown, no user is removed. Some proxies drop the body of a `DELETE`:
        `DELETE /v1/organizations/{orgSlug}/members/{userId}` needs none.
        """
        removed, others = organizations.remove_members(caller(), orgSlug, body["userIds"])
        sentence = f"Users removed successfully from {orgSlug}"
        return json_response(
            {"data": sentence, "removed": removed, "notMembers": others, "count": len(removed)}
        )


@blp.route("/organizations/<org_slug:orgSlug>/members/<user_id:userId>")
class Member(MethodView):
    @route_facts("removeMember", codes=(Code.MEMBER_NOT_FOUND,))
    @blp.response(200, SuccessSchema)
    def delete(self, orgSlug: str, userId: str) -> dict[str, bool]:
        """Remove one member

        The user stays.
        """
        organizations.remove_member(caller(), orgSlug, userId)
        return {"success": True}
