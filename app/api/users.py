"""Routes for users."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from flask.views import MethodView
from sqlalchemy.orm import Session

from app.accounts import users
from app.api import replay_access
from app.http import paging
from app.http.authentication import caller, caller_organization_id
from app.http.errors import NotFound
from app.http.routes import Blueprint, route_facts
from app.schemas.error_codes import Code
from app.schemas.parameters import PageQuery
from app.schemas.person_data import PersonDataSchema, person_data_view
from app.schemas.records import (
    DeleteUserQuery,
    IncludeQuery,
    OrganizationSchema,
    RenameBody,
    UserBody,
    UserListQuery,
    UserSchema,
    organization_view,
    organizations_shown,
    user_list_view,
    user_view,
)
from app.services import services
from store.sql.models import User
from store.sql.queries import users as user_queries

blp = Blueprint(
    "users",
    __name__,
    metric_group="users",
    description="People whose calendars are read. You choose the id of a user; everything else refers to it.",
)


@blp.route("/users")
class Users(MethodView):
    @route_facts("listUsers")
    @blp.arguments(UserListQuery, location="query")
    @blp.response(200, UserSchema(many=True))
    def get(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        """List users

        An organization of a listed user holds at most 100 members here; `GET /v1/organizations/{orgSlug}`
        has all of them.
        """
        include = params["include"] or user_queries.RELATIONS
        with services().stores.database.reading() as session:
            page = user_queries.page(
                session,
                organization_id=caller_organization_id(),
                include=include,
                after=paging.after(params),
                limit=paging.one_more(params),
                shown_organization_id=caller_organization_id(),
            )
        page = page._replace(users=paging.cut(params, page.users, "custom_id"))
        return user_list_view(page, include=include)

    @route_facts(
        "createUser", replay_check=replay_access.user, codes=(Code.USER_EXISTS, Code.ORGANIZATION_NOT_FOUND)
    )
    @blp.arguments(UserBody)
    @blp.response(201, UserSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Register a user

        With an API key that is bound to an organization, the user becomes its member.
        """
        with services().stores.database.writing() as session:
            users.register(session, caller(), body["id"], body["organizationSlugs"])
            return _view(session, body["id"])


@blp.route("/users/<user_id:userId>")
class UserById(MethodView):
    @route_facts("getUser")
    @blp.arguments(IncludeQuery, location="query")
    @blp.response(200, UserSchema)
    def get(self, params: dict[str, Any], userId: str) -> dict[str, Any]:
        """Read a user

        With the connected accounts and the organizations of the user, unless `include` names one of them.
        """
        with services().stores.database.reading() as session:
            return _view(session, userId, params["include"])

    @route_facts("renameUser", codes=(Code.USER_EXISTS,))
    @blp.arguments(IncludeQuery, location="query")
    @blp.arguments(RenameBody)
    @blp.response(200, UserSchema)
    def put(self, params: dict[str, Any], body: dict[str, Any], userId: str) -> dict[str, Any]:
        """Rename a user

        Connections and memberships stay. `id` is accepted in the place of `userId`.
        """
        new_id: str = body.get("userId", body.get("id", userId))
        with services().stores.database.writing() as session:
            if new_id != userId:
                users.rename(session, caller(), userId, new_id)
            return _view(session, new_id, params["include"])

    @route_facts("deleteUser")
    @blp.arguments(DeleteUserQuery, location="query")
    @blp.response(200, UserSchema)
    def delete(self, params: dict[str, Any], userId: str) -> dict[str, Any]:
        """Delete a user

        Answers with the deleted user. Grants are revoked as by DELETE of `oauth`; tokens and cached data are
        removed in any case.
        """
        with services().stores.database.reading() as session:
            view = _view(session, userId, params["include"])
        users.delete(caller(), userId, revoke=params["revoke"])
        return view


@blp.route("/users/<user_id:userId>/export")
class UserExport(MethodView):
    @route_facts("exportUser", codes=(Code.KEY_BOUND_TO_ORGANIZATION,))
    @blp.response(200, PersonDataSchema)
    def get(self, userId: str) -> dict[str, list[dict[str, Any]]]:
        """Export a user's data

        Everything that is stored about the user, without secrets, for a person who asks for their data. It
        needs an API key that is not bound to an organization, and is in the audit log. Events of calendars
        are not stored.
        """
        with services().stores.database.writing() as session:
            return person_data_view(users.export(session, caller(), userId))


@blp.route("/users/<user_id:userId>/organizations")
class UserOrganizations(MethodView):
    @route_facts("listUserOrganizations")
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, OrganizationSchema(many=True))
    def get(self, params: dict[str, Any], userId: str) -> list[dict[str, Any]]:
        """List a user's organizations

        Each with its members, by slug. An API key that is bound to an organization sees that one only.
        """
        with services().stores.database.reading() as session:
            row = _load(session, userId, ["organizations"])
        shown = organizations_shown(row, only_organization_id=caller_organization_id())
        return [organization_view(each) for each in paging.cut_short_list(params, shown, "slug")]


def _load(session: Session, custom_id: str, include: Collection[str]) -> User:
    row = user_queries.load(session, custom_id, organization_id=caller_organization_id(), include=include)
    if row is None:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    return row


def _view(session: Session, custom_id: str, include: Collection[str] = ()) -> dict[str, Any]:
    """A user with the relations in ``include``, or with both if it is empty."""
    relations = include or user_queries.RELATIONS
    return user_view(
        _load(session, custom_id, relations), only_organization_id=caller_organization_id(), include=relations
    )
