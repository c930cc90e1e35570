"""Inviting users: the form for one or many, the links that it makes, and the list of invitations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from flask import request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import fields
from sqlalchemy.orm import Session

from app.dashboard import forms, user_filter
from app.dashboard.blueprint import blp, done, failed, page
from app.dashboard.connecting import NO_ADDRESS
from app.dashboard.connection_badge import INVITATION_TITLES, LEVELS, invitation_badge
from app.dashboard.forms import Slug
from app.dashboard.pagination import ROWS, Chip, same_list, searched
from app.dashboard.sign_in import sessions
from app.http.hosts import base_url
from app.http.routes import route_facts
from app.schemas.fields import SLUG, USER_ID, Text, Word
from app.services import services
from providers.scopes import Level
from store.sql.models import Role, now
from store.sql.queries import audit, organizations, user_invitations, users
from store.sql.queries.user_invitations import LIFETIME, InvitationRow, InvitationState, NewInvitation

# One form invites at most this many users. Their links are shown once, on one page.
MAX_INVITED = 500
MAX_LIST = 70_000

SENT_BEFORE = (
    "This form was sent before. Its links were shown once: send it again from here to make others, which "
    "replace those"
)
_BETWEEN = re.compile(r"[\s,;]+")


class InvitationForm(forms.Body):
    """Users to invite: by identifier, or all members of an organization who never connected."""

    # With line breaks. Only what are identifiers is used.
    users = fields.String(load_default="")
    organization = Slug(load_default=None)
    scope = Word(tuple(LEVELS), required=True)
    ticket = Text(shortest=1, longest=64, required=True)


class InvitationLink(NamedTuple):
    """A user with the link to send."""

    user: str
    url: str


@blp.get("/invitations")
def invitations() -> ResponseReturnValue:
    """The invitations, the newest first, with their states."""
    chosen = request.args.get("show", "")
    state = InvitationState(chosen) if chosen in list(InvitationState) else None
    with services().stores.database.reading() as session:
        rows = user_invitations.page(session, state=state, text=searched(), before=_before(), limit=ROWS + 1)
        counts = user_invitations.counts(session)
    next_page = same_list("invitations", before=_position(rows[ROWS - 1])) if len(rows) > ROWS else None
    every = same_list("invitations", show=None, before=None)
    chips = [Chip("All", every, state is None, sum(counts.values()))]
    for each, title in INVITATION_TITLES.items():
        href = same_list("invitations", show=each.value, before=None)
        chips.append(Chip(title, href, state is each, counts[each]))
    return page(
        "invitations.html",
        rows=rows[:ROWS],
        next_page=next_page,
        first=same_list("invitations", before=None) if request.args.get("before") else None,
        chips_of_states=chips,
        badge_of=invitation_badge,
        q=searched(),
    )


@blp.get("/invitations/new")
@route_facts(role=Role.OPERATOR)
def new_invitations() -> ResponseReturnValue:
    """The form, with the users of a filter or the users named in the query."""
    named = " ".join(request.args.getlist("users"))
    with services().stores.database.reading() as session:
        condition = user_filter.to_invite(session)
        if condition is not None:
            found = users.search(session, condition=condition, limit=MAX_INVITED)
            named = "\n".join(each.custom_id for each in found.rows)
    slug = request.args.get("organization", "")
    slug = slug if SLUG.fullmatch(slug) else ""
    return _form(forms.blank(users="\n".join(_identifiers(named)), organization=slug))


@blp.post("/invitations/new")
@route_facts(role=Role.OPERATOR)
def create_invitations() -> ResponseReturnValue:
    """Invite users and show their links; they cannot be shown again."""
    site = base_url()
    if site is None:
        return failed(NO_ADDRESS, "invitations")
    form = forms.read(InvitationForm)
    # A list of checkboxes sends each user on its own.
    custom_ids = _identifiers(" ".join(request.form.getlist("users")))
    if not form:
        return _form(form, 400)
    scope = form.data["scope"]
    with forms.once(form, SENT_BEFORE) as unused:
        if not unused:
            return _form(form, 409)
        with services().stores.database.writing() as session:
            found = _invited(session, form, custom_ids)
            made = _make(session, found, scope) if form else []
    if not form:
        return _form(form, 400)
    return _made(site, made, scope, form.data["organization"])


@blp.post("/invitations/<invitation_id>/revoke")
@route_facts(role=Role.OPERATOR)
def revoke_invitation(invitation_id: str) -> ResponseReturnValue:
    """Withdraw an invitation: its link stops working."""
    with services().stores.database.writing() as session:
        user = user_invitations.revoke(session, invitation_id)
        if user is not None:
            audit.record(session, actor=sessions.actor(), action="revokeInvitation", subject=user)
    if user is None:
        return failed("That invitation could not be used any more.", "invitations")
    return done(f"The invitation of {user} is withdrawn.", "invitations")


def _invited(session: Session, form: forms.Form, custom_ids: list[str]) -> dict[str, int]:
    """The users to invite, by identifier; with an error in the form if any cannot be."""
    found = users.ids(session, custom_ids, organization_id=None)
    if missing := [each for each in custom_ids if each not in found]:
        form.refuse("users", f"include some that do not exist: {', '.join(missing[:5])}")
    slug = form.data["organization"]
    if slug is not None:
        number = organizations.ids(session, [slug], organization_id=None).get(slug)
        if number is None:
            form.refuse("organization", "with this slug does not exist")
        else:
            found |= user_invitations.never_connected(session, number, limit=MAX_INVITED + 1)
    if form and not found:
        form.refuse("", "Nobody to invite: name users, or an organization with members who never connected.")
    if len(found) > MAX_INVITED:
        form.refuse("", f"At most {MAX_INVITED} users can be invited at once; these are more.")
    return found


def _make(session: Session, user_ids: Mapping[str, int], scope: str) -> list[NewInvitation]:
    actor = sessions.actor()
    made = user_invitations.make(session, user_ids, scope=scope, created_by=actor, issuer=sessions.issuer())
    for each in made:
        audit.record(session, actor=actor, action="inviteUser", subject=each.user)
    return made


def _made(site: str, made: list[NewInvitation], scope: str, slug: str | None) -> ResponseReturnValue:
    links = [
        InvitationLink(each.user, f"{site}{url_for('invitation.opened', secret=each.secret)}")
        for each in made
    ]
    return page(
        "invitations_made.html",
        links=links,
        level=LEVELS[Level(scope)],
        until=now() + LIFETIME,
        organization=slug,
    )


def _form(form: forms.Form, status: int = 200) -> ResponseReturnValue:
    return page(
        "new_invitations.html",
        status,
        form=form,
        levels=LEVELS,
        ticket=forms.new_form_token(),
        known_address=base_url() is not None,
        no_address=NO_ADDRESS,
    )


def _identifiers(text: str) -> list[str]:
    """The identifiers in a text, in their order and without duplicates."""
    found = dict.fromkeys(part for part in _BETWEEN.split(text[:MAX_LIST]) if USER_ID.fullmatch(part))
    return list(found)


def _position(row: InvitationRow) -> str:
    return f"{row.invitation.created_at.timestamp():.6f}~{row.invitation.id}"


def _before() -> tuple[datetime, str] | None:
    """The position that this page begins after; None, the first page, for any other text."""
    moment, _, last = request.args.get("before", "").partition("~")
    try:
        return datetime.fromtimestamp(float(moment), UTC), last
    except (ValueError, OverflowError, OSError):
        return None
