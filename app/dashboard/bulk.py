"""Changes of many users at once: members of an organization, deletion, undoing an import; exports."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO

from flask import Response, flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from marshmallow import ValidationError, fields

from app.accounts import delegations, organizations
from app.accounts import users as accounts
from app.accounts.delegations import ImportedMember
from app.dashboard import forms, user_filter
from app.dashboard.audit_log import harmless
from app.dashboard.blueprint import blp, done, failed, page, warned
from app.dashboard.forms import UserId
from app.dashboard.organizations import get_organization, organization_page
from app.dashboard.pagination import ROWS, searched
from app.dashboard.sign_in import sessions
from app.http.authentication import caller
from app.http.errors import ApiError, NotFound
from app.http.routes import route_facts
from app.schemas.error_codes import Code
from app.schemas.fields import USER_ID, Word
from app.schemas.parameters import MAX_AT_ONCE
from app.services import services
from store.security.one_time_secrets import OneTimeSecrets
from store.sql.models import Role, User
from store.sql.queries import audit, organization_grants, users

# An error lists at most this many unknown users.
MAX_NAMED = 5
# Of a text that is no identifier; more than the longest one.
MAX_SHOWN = 160


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
                raise ValidationError(f"do not all fit: {each[:MAX_SHOWN]} {UserId.RULE}") from error
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
                added = len(organizations.add_members(session, caller(), slug, user_ids).changed)
    if not form:
        return organization_page(slug, adding=form, status=400)
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
    removed = organizations.remove_members(caller(), slug, custom_ids).changed
    if not removed:
        return failed("They were no members any more.", "organization", slug=slug)
    who = f"{removed[0]} is" if len(removed) == 1 else f"{len(removed)} users are"
    undo = _removals().put(Removal(slug, removed, [each for each in delegated if each[1] in removed]))
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


@blp.route("/delete-users", methods=["GET", "POST"])
@route_facts(role=Role.OPERATOR)
def delete_users() -> ResponseReturnValue:
    """Ask for a confirmation; with the right text, delete the selected users and all their data."""
    if request.method != "POST":
        # The page of a confirmation was reloaded.
        return redirect(url_for("dashboard.users"))
    chosen = selected()
    with services().stores.database.reading() as session:
        found = [each for each in chosen if each in users.ids(session, chosen, organization_id=None)]
    if not found:
        return failed("Select at least one user first.", "users")
    phrase = f"delete {len(found)} {'user' if len(found) == 1 else 'users'}"
    if not forms.typed(phrase):
        wrong = "confirm" in request.form
        return page("delete_users.html", 400 if wrong else 200, user_ids=found, phrase=phrase, wrong=wrong)
    deleted = 0
    for custom_id in found:
        try:
            accounts.delete(caller(), custom_id)
            deleted += 1
        except NotFound:
            # Another administrator deleted the user meanwhile.
            continue
    what = "1 user is" if deleted == 1 else f"{deleted} users are"
    sentence = f"{what} deleted, with all tokens and cached calendar data."
    if deleted < len(found):
        return warned(f"{sentence} {len(found) - deleted} had been deleted before.", "users")
    return done(sentence, "users")


def selected() -> list[str]:
    """The users that were selected on a page of a list, without repetitions."""
    sent = dict.fromkeys(request.form.getlist("userId"))
    return [each for each in sent if USER_ID.fullmatch(each)][:ROWS]


MINUTES = 15


@dataclass(frozen=True, slots=True)
class Removal:
    """Removed members; ``delegated`` has provider, user and address of their delegated connections."""

    slug: str
    user_ids: list[str]
    delegated: list[tuple[str, str, str]]


def _removals() -> OneTimeSecrets[Removal]:
    """Removals that can be undone once, each by its token."""
    stores = services().stores
    return OneTimeSecrets(stores.redis, stores.keyring, "undo", Removal, MINUTES * 60)


@blp.post("/organizations/<slug>/members/undo")
@route_facts(role=Role.OPERATOR)
def undo_removal(slug: str) -> ResponseReturnValue:
    """Make the members that were removed members again, with their delegated connections."""
    removal = _removals().take(request.form.get("token", ""))
    if removal is None or removal.slug != slug:
        return failed(
            f"This can be undone once, for {MINUTES} minutes. Add the members again instead.",
            "organization",
            slug=slug,
        )
    with services().stores.database.writing() as session:
        # Some may have been deleted since.
        left = list(users.ids(session, removal.user_ids, organization_id=None, keep=True))
        added = len(organizations.add_members(session, caller(), slug, left).changed)
    sentence = f"Undone: {added} {'is a member' if added == 1 else 'are members'} again."
    if not _delegate(removal, set(left)):
        return warned(
            f"{sentence} The organization's grant has changed, so import them again to read their calendars.",
            "organization",
            slug=slug,
        )
    return done(sentence, "organization", slug=slug)


def _delegate(removal: Removal, left: set[str]) -> bool:
    """Restore the delegated connections, beside others; whether the grants allow all of them."""
    complete = True
    # An import names a user once. A user may have had several connections by a grant.
    imports: dict[tuple[str, int], list[ImportedMember]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for provider, user, email in removal.delegated:
        if user in left:
            imports[provider, seen[provider, user]].append(ImportedMember(user, email))
            seen[provider, user] += 1
    for (provider, _), members in imports.items():
        try:
            with services().stores.database.writing() as session:
                delegations.import_members(session, caller(), removal.slug, provider, members, adds=True)
        except ApiError:
            complete = False
    return complete


def csv_file(name: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Response:
    """A CSV file to save, in UTF-8, without formulas."""
    text = StringIO()
    written = csv.writer(text, lineterminator="\r\n")
    written.writerow(header)
    written.writerows([harmless(each) for each in row] for row in rows)
    response = Response(text.getvalue(), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


@blp.get("/users.csv")
def export_users() -> ResponseReturnValue:
    """The users that the search and the filter find."""
    with services().stores.database.reading() as session:
        found = users.exported(session, searched(), condition=user_filter.condition(session))
        return csv_file("users", _HEADER, map(_row, found))


@blp.get("/organizations/<slug>/members.csv")
def export_members(slug: str) -> ResponseReturnValue:
    """The members that the search and the filter find. The import of a grant's members reads this file."""
    with services().stores.database.reading() as session:
        organization = get_organization(session, slug)
        found = users.exported(
            session, searched(), organization_id=organization.id, condition=user_filter.condition(session)
        )
        return csv_file(f"members-{slug}", _HEADER, map(_row, found))


_HEADER = ("userId", "email", "connections", "organizations", "registered")


def _row(user: User) -> list[str]:
    emails = [each.email for each in user.connections if each.email]
    return [
        user.custom_id,
        emails[0] if emails else "",
        " ".join(f"{each.provider}:{'connected' if each.usable else 'ended'}" for each in user.connections),
        " ".join(each.slug for each in user.organizations),
        f"{user.created_at:%Y-%m-%dT%H:%M:%SZ}",
    ]
