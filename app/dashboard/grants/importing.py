"""Importing members of a grant: the list, a preview in which nothing is stored, and the import itself."""

from __future__ import annotations

from typing import NamedTuple

from flask import request
from flask.typing import ResponseReturnValue

from app.accounts import delegations
from app.accounts import organization_grants as grants
from app.accounts.delegations import Member
from app.accounts.disconnect import clean_up
from app.dashboard import connection_badge, forms
from app.dashboard.blueprint import blp, done, page
from app.dashboard.grants.member_list import MemberList, parse, written
from app.dashboard.organizations import get_organization
from app.http.authentication import caller
from app.http.route_facts import route_facts
from app.schemas.organization_grants import MAX_IMPORTED
from app.services import services
from store.sql.models import Role
from store.sql.queries.organization_grants import GrantSummary
from store.sql.queries.organizations import Summary

# The page lists at most this many wrong lines, and this many members of each kind.
MAX_WRONG = 50
MAX_LISTED = 100

NO_TEXT = "is no text in UTF-8: save the file as CSV UTF-8"


class Group(NamedTuple):
    """Members of a preview that the import treats alike: created, changed or unchanged."""

    title: str
    badge: str
    hint: str
    members: list[Member]


@blp.get("/organizations/<slug>/grants/<any(google, microsoft):provider>/members")
@route_facts(role=Role.OPERATOR)
def grant_members(slug: str, provider: str) -> ResponseReturnValue:
    """The form for a list of members."""
    return _form(slug, provider, forms.blank(), MemberList())


@blp.post("/organizations/<slug>/grants/<any(google, microsoft):provider>/members")
@route_facts(role=Role.OPERATOR)
def preview_grant_members(slug: str, provider: str) -> ResponseReturnValue:
    """Show the changes that an import of the list would make; nothing is stored."""
    organization, grant = _granted(slug, provider)
    form = _sent()
    found = _checked(form, grant)
    if not form:
        return _form(slug, provider, form, found, 400)
    with services().stores.database.reading() as session:
        preview = delegations.preview_import(session, caller(), slug, provider, found.members)
    emails = dict(found.members)
    title = connection_badge.title(provider)
    personal = set(preview.personal)

    def group(name: str, badge: str, hint: str, user_ids: list[str]) -> Group:
        return Group(name, badge, hint, [Member(each, emails[each]) for each in user_ids])

    groups = (
        group("Created", "good", f"They have no account of {title} here yet.", preview.created),
        group(
            "Changed",
            "warn",
            "Their connection is replaced, or they become members."
            + (f" {len(personal)} of them had given a consent of their own, which ends." if personal else ""),
            preview.changed,
        ),
        group("Unchanged", "", "They are read by the grant already.", preview.unchanged),
    )
    return page(
        "import_preview.html",
        organization=organization,
        provider=provider,
        title=title,
        groups=groups,
        total=len(found.members),
        personal=personal,
        text=written(found.members),
        most=MAX_LISTED,
    )


@blp.post("/organizations/<slug>/grants/<any(google, microsoft):provider>/members/import")
@route_facts(role=Role.OPERATOR)
def import_grant_members(slug: str, provider: str) -> ResponseReturnValue:
    """Import the members of a list that was previewed: all of them, or none."""
    _, grant = _granted(slug, provider)
    form = _sent()
    found = _checked(form, grant)
    if not form:
        return _form(slug, provider, form, found, 400)
    with services().stores.database.writing() as session:
        imported = delegations.import_members(session, caller(), slug, provider, found.members)
    clean_up(imported.replaced)
    return done(
        f"Imported: {len(imported.created)} created, {len(imported.changed)} changed, "
        f"{len(imported.unchanged)} unchanged.",
        "organization",
        slug=slug,
    )


def _granted(slug: str, provider: str) -> tuple[Summary, GrantSummary]:
    """An organization and its grant.

    :raise NotFound: when either does not exist
    """
    with services().stores.database.reading() as session:
        organization = get_organization(session, slug)
        return organization, grants.find(session, caller(), slug, provider)


def _sent() -> forms.Form:
    """The list of this request: a file if one was chosen, else the text."""
    form = forms.blank(members=request.form.get("members", ""))
    upload = request.files.get("file")
    if upload is not None and upload.filename:
        try:
            form.values["members"] = upload.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            form.refuse("members", NO_TEXT)
    return form


def _checked(form: forms.Form, grant: GrantSummary) -> MemberList:
    """The members of a list; its mistakes are errors of the form."""
    if not form:
        return MemberList()
    found = parse(form.values["members"], delegations.required_domain(grant))
    if found.error is not None:
        form.refuse("members", found.error)
    if found.wrong:
        lines = "1 line is" if len(found.wrong) == 1 else f"{len(found.wrong)} lines are"
        form.refuse("", f"Nothing was stored: {lines} wrong. Correct the list and check it again.")
    return found


def _form(
    slug: str, provider: str, form: forms.Form, found: MemberList, status: int = 200
) -> ResponseReturnValue:
    organization, grant = _granted(slug, provider)
    return page(
        "import_members.html",
        status,
        organization=organization,
        provider=provider,
        title=connection_badge.title(provider),
        domain=delegations.required_domain(grant),
        form=form,
        wrong=found.wrong[:MAX_WRONG],
        more=len(found.wrong) - MAX_WRONG,
        most=MAX_IMPORTED,
    )
