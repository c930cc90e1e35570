"""Members of an organization: adding and removing them."""

from __future__ import annotations

import re

from flask import flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError, fields

from app.accounts import organizations
from app.dashboard import forms
from app.dashboard.blueprint import blp, done, failed
from app.dashboard.bulk.undo import Removal, remember
from app.dashboard.identifiers import UserId
from app.dashboard.organizations import organization_page
from app.dashboard.sign_in import sessions
from app.http.authentication import caller
from app.http.error_codes import Code
from app.http.errors import NotFound
from app.http.route_facts import route_facts
from app.schemas.fields import USER_ID, Word
from app.schemas.parameters import MAX_AT_ONCE
from app.services import services
from store.sql.models import Role
from store.sql.queries import audit, organization_grants, users

# An error lists at most this many unknown users.
MAX_NAMED = 5


class _UserIds(fields.Field[list[str]]):
    """Identifiers separated by spaces, commas, semicolons or line breaks."""

    def _deserialize(self, value: str, attr: str | None, data: object, **kwargs: object) -> list[str]:
        written = list(dict.fromkeys(re.split(r"[\s,;]+", value.strip())))
        if len(written) > MAX_AT_ONCE:
            raise ValidationError(f"must be at most {MAX_AT_ONCE} at once")
        one = UserId()
        for each in written:
            try:
                one.parse(each)
            except ValidationError as error:
                raise ValidationError(f"do not all fit: {each[:40]} {UserId.RULE}") from error
        return written


class MembersForm(forms.Body):
    """Users to add."""

    userIds = _UserIds(required=True)
    register = Word(("missing",), load_default=None)


@blp.post("/organizations/<slug>/members")
@route_facts(role=Role.OPERATOR)
def add_members(slug: str) -> ResponseReturnValue:
    """Add users as members: all of them, or none if one is unknown and is not to be registered."""
    form = forms.read(MembersForm)
    registered = 0
    if form:
        user_ids = form.data["userIds"]
        with services().stores.database.writing() as session:
            if form.data["register"]:
                registered = len(users.add_missing(session, user_ids)[1])
                if registered:
                    subject = f"{registered} for {slug}"
                    audit.record(session, actor=sessions.actor(), action="createUsers", subject=subject)
            known = users.ids(session, user_ids, organization_id=None, keep=True)
            if unknown := [each for each in user_ids if each not in known]:
                form.refuse("userIds", _unknown(unknown))
            else:
                new = organizations.add_members(session, caller(), slug, user_ids).changed
                added = len(new)
                audit.record(
                    session,
                    actor=sessions.actor(),
                    action="addMembers",
                    subject=f"{added} to {slug}",
                    changes={"members": (None, new or None)},
                )
    if not form:
        return organization_page(slug, change=None, adding=form, status=400)
    before = len(user_ids) - added
    sentence = f"{added} added." if not before else f"{added} added; {before} had been members before."
    if registered:
        sentence += (
            f" {registered} of them {'is' if registered == 1 else 'are'} new: connect a calendar next."
        )
    return done(sentence, "organization", slug=slug)


@blp.post("/organizations/<slug>/members/remove")
@route_facts(role=Role.OPERATOR)
def remove_members(slug: str) -> ResponseReturnValue:
    """End the memberships of the selected users, who stay users; the next page can undo it."""
    sent = dict.fromkeys(request.form.getlist("userId"))
    custom_ids = [each for each in sent if USER_ID.fullmatch(each)][:MAX_AT_ONCE]
    if not sent:
        return failed("Select at least one member first.", "organization", slug=slug)
    if not custom_ids:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    with services().stores.database.reading() as session:
        number = organizations.number(session, caller(), slug)
        delegated = organization_grants.delegated_members(session, number, custom_ids)
    removed = organizations.remove_members(caller(), slug, custom_ids, actor=sessions.actor()).changed
    if not removed:
        return failed("They were no members any more.", "organization", slug=slug)
    who = f"{removed[0]} is" if len(removed) == 1 else f"{len(removed)} users are"
    undo = remember(Removal(slug, removed, [each for each in delegated if each[1] in removed]))
    flash(
        {  # type: ignore[arg-type]
            "sentence": f"{who} no longer {'a member' if len(removed) == 1 else 'members'}.",
            "undo": url_for("dashboard.undo_removal", slug=slug),
            "token": undo,
        },
        "good",
    )
    return redirect(url_for("dashboard.organization", slug=slug), 303)


def _unknown(custom_ids: list[str]) -> str:
    named = ", ".join(custom_ids[:MAX_NAMED])
    more = f" and {len(custom_ids) - MAX_NAMED} more" if len(custom_ids) > MAX_NAMED else ""
    return f"are not registered: {named}{more}. No user was added; register them first, or with the box below"
