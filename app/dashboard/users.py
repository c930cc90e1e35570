"""Users: searching, registering, renaming and deleting, and the page of one user's connections."""

from __future__ import annotations

from collections.abc import Sequence

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import availability_profiles, oauth_flow
from app.accounts import users as accounts
from app.dashboard import account_page, connection_badge, forms, user_filter
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.forms import Slug, UserId
from app.dashboard.grants.importing import WrongLine
from app.dashboard.overview import unread
from app.dashboard.pagination import ROWS, ListPage, Sort, searched
from app.http.authentication import caller
from app.http.errors import Conflict, NotFound
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from app.schemas.fields import USER_ID
from app.schemas.organization_grants import MAX_IMPORTED
from app.services import services
from providers import registry
from store.sql.models import OAuthConnection, Role, User
from store.sql.queries import organization_grants, organizations, user_invitations
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
    return users_page(forms.blank(organization=request.args.get("organization", "")))


@blp.post("/users")
@route_facts(role=Role.OPERATOR)
def create_user() -> ResponseReturnValue:
    """Register a user."""
    form = forms.read(UserForm)
    if not form:
        return users_page(form, 400)
    custom_id, slug = form.data["id"], form.data["organization"]
    try:
        with services().stores.database.writing() as session:
            accounts.register(session, caller(), custom_id, [slug] if slug is not None else [])
    except Conflict:
        form.refuse("id", "is taken by another user")
        return users_page(form, 409)
    except NotFound:
        form.refuse("organization", "with this slug does not exist")
        return users_page(form, 400)
    return done(f"{custom_id} is registered. Connect a calendar next.", "user", custom_id=custom_id)


@blp.get("/users/<custom_id>")
def user(custom_id: str) -> ResponseReturnValue:
    """One user with connections and organizations."""
    return _user_page(custom_id, forms.blank())


@blp.post("/users/<custom_id>/rename")
@route_facts(role=Role.OPERATOR)
def rename_user(custom_id: str) -> ResponseReturnValue:
    """Change a user's identifier."""
    form = forms.read(RenameForm)
    if not form:
        return _user_page(custom_id, form, 400)
    new_id = form.data["id"]
    try:
        with services().stores.database.writing() as session:
            accounts.rename(session, caller(), custom_id, new_id)
    except Conflict:
        form.refuse("id", "is taken by another user")
        return _user_page(custom_id, form, 409)
    return done(
        f"{custom_id} is called {new_id} now. Requests with the old identifier get 404.",
        "user",
        custom_id=new_id,
    )


@blp.post("/users/<custom_id>/delete")
@route_facts(role=Role.OPERATOR)
def delete_user(custom_id: str) -> ResponseReturnValue:
    """Delete a user and all data stored for the user, after the identifier was typed."""
    if not forms.typed(custom_id):
        get_user(custom_id)
        return failed(f"Nothing was deleted: type {custom_id} to confirm it.", "user", custom_id=custom_id)
    accounts.delete(caller(), custom_id)
    return done(f"{custom_id} is deleted, with all tokens and cached calendar data.", "users")


def get_user(custom_id: str) -> User:
    """A user with connections.

    :raise NotFound: when there is none of that identifier
    """
    # An address can hold text that the database rejects.
    if USER_ID.fullmatch(custom_id):
        with services().stores.database.reading() as session:
            row = stored.load(session, custom_id, organization_id=None, include=["oauthConnections"])
        if row is not None:
            return row
    raise NotFound("User not found", Code.USER_NOT_FOUND)


def users_page(
    form: forms.Form,
    status: int = 200,
    *,
    imported: forms.Form | None = None,
    wrong: Sequence[WrongLine] = (),
) -> ResponseReturnValue:
    """The list of users with its forms; ``imported`` is an import that failed, ``wrong`` its lines."""
    sort = Sort.of_request("users", stored.ORDERS, "id")
    with services().stores.database.reading() as session:
        rows = stored.search(
            session,
            searched(),
            condition=user_filter.condition(session),
            order=sort.order,
            descending=sort.descending,
            position=sort.position,
            limit=ROWS,
        )
        filters = user_filter.chips(session, "users", list(stored.found_by(searched())))
        to_invite = user_filter.to_invite(session)
        invitable = to_invite is not None and bool(stored.search(session, condition=to_invite, limit=1).rows)
        unconnected = [each.id for each in rows.rows if not each.connections]
        invited = user_invitations.latest(session, unconnected)
    return page(
        "users.html",
        status,
        form=form,
        importing=forms.blank() if imported is None else imported,
        wrong=wrong,
        most=MAX_IMPORTED,
        found=ListPage.of(rows, sort),
        sort=sort,
        q=searched(),
        filters=filters,
        shown=user_filter.chosen(),
        invitable=invitable,
        health=connection_badge,
        unread=unread.last_reads([one.id for each in rows.rows for one in each.connections]),
        invited=invited,
    )


def _user_page(custom_id: str, form: forms.Form, status: int = 200) -> ResponseReturnValue:
    row = get_user(custom_id)
    with services().stores.database.reading() as session:
        memberships = organizations.of_user(session, row.id)
        granting = organization_grants.owners(
            session, [each.grant_id for each in row.connections if each.grant_id]
        )
        invitation = user_invitations.latest(session, [row.id]).get(row.id)
        profile = availability_profiles.find(session, caller(), custom_id)
    # Those too that this version does not have.
    names = list(dict.fromkeys([*registry.names(), *(each.provider for each in row.connections)]))
    return page(
        "user.html",
        status,
        form=form,
        user=row,
        organizations=memberships,
        profile=profile,
        granting=granting,
        invitation=invitation,
        invitable=_invitable(row.connections),
        invitation_badge=invitation and connection_badge.invitation_badge(user_invitations.state(invitation)),
        connections={name: [each for each in row.connections if each.provider == name] for name in names},
        offered=oauth_flow.offered(),
        with_consent=registry.with_consent(),
        with_form=registry.with_form(),
        names=names,
        levels=connection_badge.LEVELS,
        last_reads=services().stores.last_reads.load([each.id for each in row.connections]),
        health=connection_badge,
        advice=unread.advice,
        entered=account_page.facts,
        renewal=account_page.renewal,
        title_of=registry.title,
    )


def _invitable(connected: Sequence[OAuthConnection]) -> bool:
    """Whether an invitation may help: not if an organization's grant reads all ended connections."""
    return all(each.usable for each in connected) or any(each.grant_id is None for each in connected)
