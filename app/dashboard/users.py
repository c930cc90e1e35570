"""Users: searching, registering, renaming and deleting, and the page of one user's connections."""

from __future__ import annotations

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import oauth_flow
from app.accounts import users as accounts
from app.dashboard import connection_badge, forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.identifiers import Slug, UserId
from app.dashboard.pagination import LONGEST_CHOICE, ResultPage, after, searched
from app.dashboard.sign_in import sessions
from app.http.auth import caller
from app.http.error_codes import Code
from app.http.errors import Conflict, NotFound
from app.schemas.fields import USER_ID
from app.services import services
from providers.names import ProviderName
from store.sql.models import User
from store.sql.queries import audit, organization_grants, organizations
from store.sql.queries import users as stored


class UserForm(forms.Body):
    """A new user."""

    id = UserId(required=True)
    organization = Slug(load_default=None)


class RenameForm(forms.Body):
    """A user's new identifier."""

    id = UserId(required=True)


@blp.get("/users")
def users() -> ResponseReturnValue:
    """The users that match the search, without one all, with their connections."""
    return _list(forms.blank(organization=request.args.get("organization", "")))


@blp.post("/users")
def create_user() -> ResponseReturnValue:
    """Register a user."""
    form = forms.read(UserForm)
    if not form:
        return _list(form, 400)
    custom_id, slug = form.data["id"], form.data["organization"]
    try:
        with services().stores.database.writing() as session:
            accounts.register(session, caller(), custom_id, [slug] if slug is not None else [])
            audit.record(session, actor=sessions.actor(), action="createUser", subject=custom_id)
    except Conflict:
        form.refuse("id", "is taken by another user")
        return _list(form, 409)
    except NotFound:
        form.refuse("organization", "with this slug does not exist")
        return _list(form, 400)
    return done(f"{custom_id} is registered. Connect a calendar next.", "user", custom_id=custom_id)


@blp.get("/users/<custom_id>")
def user(custom_id: str) -> ResponseReturnValue:
    """One user with connections and organizations."""
    return _one(custom_id, forms.blank())


@blp.post("/users/<custom_id>/rename")
def rename_user(custom_id: str) -> ResponseReturnValue:
    """Change a user's identifier."""
    form = forms.read(RenameForm)
    if not form:
        return _one(custom_id, form, 400)
    new_id = form.data["id"]
    try:
        with services().stores.database.writing() as session:
            accounts.rename(session, caller(), custom_id, new_id)
            audit.record(
                session, actor=sessions.actor(), action="renameUser", subject=f"{custom_id} to {new_id}"
            )
    except Conflict:
        form.refuse("id", "is taken by another user")
        return _one(custom_id, form, 409)
    return done(
        f"{custom_id} is called {new_id} now. Requests with the old identifier get 404.",
        "user",
        custom_id=new_id,
    )


@blp.post("/users/<custom_id>/delete")
def delete_user(custom_id: str) -> ResponseReturnValue:
    """Delete a user and all data stored for the user."""
    accounts.delete(caller(), custom_id)
    return done(f"{custom_id} is deleted, with all tokens and cached calendar data.", "users")


def known(custom_id: str) -> User:
    """A user with connections.

    :raise NotFound: when there is none of that identifier
    """
    # An address can hold text that the database rejects.
    if USER_ID.fullmatch(custom_id):
        with services().stores.database.reading() as session:
            row = stored.load(session, custom_id, within=None, include=["oauthConnections"])
        if row is not None:
            return row
    raise NotFound("User not found", Code.USER_NOT_FOUND)


def _list(form: forms.Form, status: int = 200) -> ResponseReturnValue:
    with services().stores.database.reading() as session:
        found = ResultPage.of(stored.search(session, searched(), after=after(), limit=ResultPage.FETCHED))
        known_slugs = organizations.slugs(session, limit=LONGEST_CHOICE)
    return page(
        "users.html",
        status,
        form=form,
        found=found,
        q=searched(),
        slugs=known_slugs,
        badge_of=connection_badge.badge_of,
    )


def _one(custom_id: str, form: forms.Form, status: int = 200) -> ResponseReturnValue:
    row = known(custom_id)
    with services().stores.database.reading() as session:
        memberships = organizations.of_user(session, row.id)
        granting = organization_grants.owners(
            session, [each.grant_id for each in row.connections if each.grant_id]
        )
    return page(
        "user.html",
        status,
        form=form,
        user=row,
        organizations=memberships,
        granting=granting,
        connections={each.provider: each for each in row.connections},
        providers=oauth_flow.providers(),
        names=list(ProviderName),
        levels=connection_badge.LEVELS,
        health=connection_badge,
    )
