"""Suggestions for fields that take a user or an organization, and the entries of the command palette."""

from __future__ import annotations

from typing import NamedTuple

from flask import abort, request, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.dashboard.blueprint import blp, page
from app.dashboard.explorer import asking, form
from app.dashboard.pagination import searched
from app.dashboard.sign_in import roles
from app.services import services
from providers import registry
from store.sql.queries import organizations, users

# A field suggests at most this many choices; the palette as many of each kind.
SUGGESTED = 8

# The entries of the palette: endpoint, part of the page, title, and other words for it.
PAGES = (
    ("overview", "", "Overview", "status health dashboard home"),
    ("explorer", "", "Explorer", "availability free times find"),
    ("organizations", "", "Organizations", "workspaces groups"),
    ("organizations", "f-slug", "Create an organization", "new add workspace"),
    ("users", "", "Users", "people members"),
    ("users", "f-id", "Register a user", "new create add person"),
    ("invitations", "", "Invitations", "links"),
    ("new_invitations", "", "Invite users", "new create link connect"),
    ("keys", "", "API keys", "tokens revoke"),
    ("new_key", "", "Create an API key", "new token"),
    ("webhooks", "", "Webhooks", "endpoints deliveries events"),
    ("new_webhook", "", "Create a webhook", "new endpoint add"),
    ("activity", "", "Activity", "requests latency charts"),
    ("audit_log", "", "Audit log", "history actions who"),
    ("settings", "", "Providers", f"settings {' '.join(registry.names())} registration client"),
    ("account", "", "Account", "sessions browsers administrators"),
    ("account", "password", "Change your password", "account"),
    ("account", "administrators", "Invite an administrator", "account people roles operator viewer"),
    ("second_factor", "", "Two-factor sign-in", "account authenticator recovery codes"),
    ("export_users", "", "Export users as CSV", "download"),
    ("export_audit_log", "", "Export the audit log as CSV", "download"),
)
# The endpoint that decides who may do what a part of a page is for.
_DECIDED_BY = {"f-slug": "create_organization", "f-id": "create_user", "administrators": "invite"}


class Suggestion(NamedTuple):
    """One entry: the value for a field, a text that tells similar ones apart, and the page of its subject."""

    value: str
    hint: str
    href: str


@blp.get("/search/<kind>")
def suggestions(kind: str) -> ResponseReturnValue:
    """The users or organizations whose name contains the text, as options of a field."""
    if kind not in _SOURCES:
        abort(404)
    with services().stores.database.reading() as session:
        found = _SOURCES[kind](session, searched())
    return page("suggestions.html", groups=[("", found)], text=searched())


@blp.get("/search/palette")
def palette() -> ResponseReturnValue:
    """The pages, users and organizations that match the text, as options of the command palette.

    A text such as ``ada tue 14:00`` is a question, which comes first.
    """
    text = searched()
    groups = [("Page", _pages(text))]
    if text:
        with services().stores.database.reading() as session:
            groups.insert(0, ("Is it offered, and why?", _questions(session, text)))
            named, slugs = _users(session, text), _organizations(session, text)
        invite, list_keys = ("new_invitations", "Invite"), ("keys", "API keys of")
        done = [*_actions(named[:1], "users", *invite), *_actions(slugs[:1], "organization", *list_keys)]
        groups += [("User", named), ("Organization", slugs), ("Action", done)]
    return page("suggestions.html", groups=groups, text=text)


def _questions(session: Session, text: str) -> list[Suggestion]:
    question = asking.parse(text, form.today(request.args))
    answered = question and asking.answered(session, question, request.args.get("zone", ""))
    return [Suggestion(answered.title, "", answered.address)] if answered else []


def _pages(text: str) -> list[Suggestion]:
    wanted = text.lower().split()
    return [
        Suggestion(title, "", url_for(f"dashboard.{endpoint}", _anchor=part or None))
        for endpoint, part, title, words in PAGES
        if roles.may(_DECIDED_BY.get(part, endpoint))
        and all(each in f"{title} {words}".lower() for each in wanted)
    ]


def _actions(found: list[Suggestion], argument: str, endpoint: str, verb: str) -> list[Suggestion]:
    """What can be done with the first user or organization that was found."""
    return [
        Suggestion(f"{title} {each.value}", "", url_for(f"dashboard.{target}", **{argument: each.value}))  # type: ignore[arg-type]
        for each in found
        for target, title in (("explorer", "Find free times of"), (endpoint, verb))
        if roles.may(target)
    ]


def _users(session: Session, text: str) -> list[Suggestion]:
    return [
        Suggestion(custom_id, email or "", url_for("dashboard.user", custom_id=custom_id))
        for custom_id, email in users.suggested(session, text, limit=SUGGESTED)
    ]


def _organizations(session: Session, text: str) -> list[Suggestion]:
    return [
        Suggestion(slug, name or "", url_for("dashboard.organization", slug=slug))
        for slug, name in organizations.suggested(session, text, limit=SUGGESTED)
    ]


_SOURCES = {"users": _users, "organizations": _organizations}
