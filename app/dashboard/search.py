"""Suggestions for fields that take a user or an organization, and the entries of the command palette."""

from __future__ import annotations

from typing import NamedTuple

from flask import abort, url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.dashboard.blueprint import blp, page
from app.dashboard.pagination import searched
from app.dashboard.sign_in import roles
from app.services import services
from providers import registry
from store.sql.queries import organizations, users

# A field suggests at most this many choices; the palette as many of each kind.
SUGGESTED = 8

# The pages that the palette finds: endpoint, title, and other words for it.
PAGES = (
    ("overview", "Overview", "status health dashboard home"),
    ("explorer", "Explorer", "availability free times find"),
    ("organizations", "Organizations", "create an organization workspaces"),
    ("users", "Users", "register a user people members"),
    ("keys", "API keys", "tokens revoke"),
    ("new_key", "Create an API key", "new token"),
    ("webhooks", "Webhooks", "endpoints deliveries events"),
    ("new_webhook", "Create a webhook", "new endpoint add"),
    ("activity", "Activity", "requests latency charts"),
    ("audit_log", "Audit log", "history actions who"),
    ("settings", "Providers", f"settings {' '.join(registry.names())} registration client"),
    ("account", "Account", "password sessions administrators"),
)


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
    """The pages, users and organizations that match the text, as options of the command palette."""
    text = searched()
    groups = [("Page", _pages(text))]
    if text:
        with services().stores.database.reading() as session:
            groups += [("User", _users(session, text)), ("Organization", _organizations(session, text))]
    return page("suggestions.html", groups=groups, text=text)


def _pages(text: str) -> list[Suggestion]:
    wanted = text.lower().split()
    return [
        Suggestion(title, "", url_for(f"dashboard.{endpoint}"))
        for endpoint, title, words in PAGES
        if roles.may(endpoint) and all(each in f"{title} {words}".lower() for each in wanted)
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
