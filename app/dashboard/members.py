"""Members of an organization: adding and removing them."""

from __future__ import annotations

import re

from flask import request
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError, fields

from app.accounts import organizations
from app.dashboard import forms
from app.dashboard.blueprint import blp, done
from app.dashboard.identifiers import UserId
from app.dashboard.organizations import one
from app.dashboard.sign_in import sessions
from app.http.auth import caller
from app.http.error_codes import Code
from app.http.errors import NotFound
from app.schemas.fields import USER_ID
from app.schemas.paging import MOST_AT_ONCE
from app.services import services
from store.sql.queries import audit, users

# An error lists at most this many unknown users.
MOST_NAMED = 5


class _UserIds(fields.Field[list[str]]):
    """Identifiers separated by spaces, commas, semicolons or line breaks."""

    def _deserialize(self, value: str, attr: str | None, data: object, **kwargs: object) -> list[str]:
        written = list(dict.fromkeys(re.split(r"[\s,;]+", value.strip())))
        if len(written) > MOST_AT_ONCE:
            raise ValidationError(f"must be at most {MOST_AT_ONCE} at once")
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


@blp.post("/organizations/<slug>/members")
def add_members(slug: str) -> ResponseReturnValue:
    """Add users as members: all of them, or none if one is unknown."""
    form = forms.read(MembersForm)
    if form:
        user_ids = form.data["userIds"]
        with services().stores.database.writing() as session:
            known = users.ids(session, user_ids, within=None, keep=True)
            if unknown := [each for each in user_ids if each not in known]:
                form.refuse("userIds", _unknown(unknown))
            else:
                added = len(organizations.add_members(session, caller(), slug, user_ids).changed)
                audit.record(
                    session, actor=sessions.actor(), action="addMembers", subject=f"{added} to {slug}"
                )
    if not form:
        return one(slug, change=None, adding=form, status=400)
    before = len(user_ids) - added
    sentence = f"{added} added." if not before else f"{added} added; {before} had been members before."
    return done(sentence, "organization", slug=slug)


@blp.post("/organizations/<slug>/members/remove")
def remove_member(slug: str) -> ResponseReturnValue:
    """End a membership; the user stays."""
    custom_id = request.form.get("userId", "")
    if not USER_ID.fullmatch(custom_id):
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    with services().stores.database.writing() as session:
        organizations.remove_members(session, caller(), slug, [custom_id])
        audit.record(
            session, actor=sessions.actor(), action="removeMember", subject=f"{custom_id} from {slug}"
        )
    return done(f"{custom_id} is no longer a member.", "organization", slug=slug)


def _unknown(custom_ids: list[str]) -> str:
    named = ", ".join(custom_ids[:MOST_NAMED])
    more = f" and {len(custom_ids) - MOST_NAMED} more" if len(custom_ids) > MOST_NAMED else ""
    return f"are not registered: {named}{more}. No user was added; register them first"
