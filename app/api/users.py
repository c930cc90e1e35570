"""Users."""

from __future__ import annotations

from typing import Any

from flask.views import MethodView
from sqlalchemy.orm import Session

from app import paging
from app.auth import within
from app.conflicts import conflict_on
from app.envelope import Blueprint
from app.errors import Forbidden, NotFound
from app.forgetting import forget_connections
from app.schemas.records import (
    IncludeQuery,
    OrganizationSchema,
    PageQuery,
    RenameBody,
    UserBody,
    UserSchema,
    user_view,
)
from app.services import services
from store.models import User
from store.queries import organizations, users

blp = Blueprint("users", __name__, description="People whose calendars are read")


@blp.route("/users")
class Users(MethodView):
    @blp.arguments(PageQuery, location="query")
    @blp.response(200, UserSchema(many=True))
    def get(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """List users"""
        with services().stores.database.reading() as session:
            rows = users.page(
                session, within=within(), after=paging.after(query), limit=paging.one_more(query)
            )
        return [user_view(row, within=within()) for row in paging.cut(query, rows, "custom_id")]

    @blp.arguments(UserBody)
    @blp.response(201, UserSchema)
    def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Register a user

        With an API key that is bound to an organization, the user becomes its member.
        """
        slugs = set(body["organizationSlugs"])
        with services().stores.database.writing() as session:
            memberships = organizations.ids(session, slugs, within=within())
            if slugs - memberships.keys():
                raise NotFound("Organization not found")
            own = within()
            organization_ids = {*memberships.values(), *([own] if own is not None else [])}
            with conflict_on(User.custom_id, "User already exists"):
                user = User(custom_id=body["id"])
                session.add(user)
                session.flush()
            for organization_id in organization_ids:
                organizations.add_members(session, organization_id, [user.id])
        return _loaded(body["id"])


@blp.route("/users/<user_id:userId>")
class UserById(MethodView):
    @blp.arguments(IncludeQuery, location="query")
    @blp.response(200, UserSchema)
    def get(self, query: dict[str, Any], userId: str) -> dict[str, Any]:
        """Read a user"""
        with services().stores.database.reading() as session:
            row = users.load(session, userId, within=within())
        if row is None:
            raise NotFound("User not found")
        return user_view(row, within=within(), include=query["include"])

    @blp.arguments(RenameBody)
    @blp.response(200, UserSchema)
    def put(self, body: dict[str, Any], userId: str) -> dict[str, Any]:
        """Rename a user"""
        new_id: str = body["userId"] if "userId" in body else body["id"]
        with services().stores.database.writing() as session:
            row = _own(session, userId)
            with conflict_on(User.custom_id, "User already exists"):
                row.custom_id = new_id
                session.flush()
        return _loaded(new_id)

    @blp.response(200, UserSchema)
    def delete(self, userId: str) -> dict[str, Any]:
        """Delete a user

        Grants are revoked where the provider offers it; tokens and cached data are removed in any case.
        """
        with services().stores.database.reading() as session:
            _own(session, userId)
        view = _loaded(userId)
        forget_connections(userId)
        with services().stores.database.writing() as session:
            session.delete(_own(session, userId))
        return view


@blp.route("/users/<user_id:userId>/organizations")
class UserOrganizations(MethodView):
    @blp.response(200, OrganizationSchema(many=True))
    def get(self, userId: str) -> list[dict[str, Any]]:
        """List a user's organizations"""
        view: list[dict[str, Any]] = _loaded(userId)["organizations"]
        return view


def _loaded(custom_id: str) -> dict[str, Any]:
    with services().stores.database.reading() as session:
        row = users.load(session, custom_id, within=within())
    if row is None:
        raise NotFound("User not found")
    return user_view(row, within=within())


def _own(session: Session, custom_id: str) -> User:
    """A user that this key may change: one that no other organization shares with its own."""
    row = users.find(session, custom_id, within=within())
    if row is None:
        raise NotFound("User not found")
    if within() is not None and users.organization_ids(session, row.id) != {within()}:
        raise Forbidden("The user belongs to other organizations too; remove the membership instead")
    return row
