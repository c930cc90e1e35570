"""Every page of the dashboard, read from the application, so that tests include new pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import cast

from flask import Flask
from werkzeug.routing import Rule

from app import dashboard
from app.cli import demo
from app.http import paths
from app.http.routes import declared_facts
from store.config.settings import Settings
from tests.dashboard.routes import PREFIX, path, rules

# Routes with this prefix answer with a file to save, which a browser does not show as a page;
# tests/dashboard/test_downloads.py reads these files.
DOWNLOAD = "export_"
# Parts of pages, which scripts load, and redirects.
PARTS = frozenset(
    {
        "activity_plots",
        "explorer_grid",
        "explorer_why",
        "explorer_events",
        "user_calendars",
        "webhook_log",
        "user_events",
        "connected",
        "delete_users",
        "palette",
        "suggestions",
        # A redirect without a password before it.
        "sign_in_code",
        # Redirects to the identity provider and back.
        "sign_in_openid",
        "sign_in_openid_callback",
        "reload_connect",
        "reload_rotate",
        "explorer_periods",
    }
)

# One user's day, with the explanation of ten o'clock.
ANSWER = f"?show=1&users={demo.PEOPLE[0].id}&day=2026-12-03&days=1&zone=UTC&moment=2026-12-03T10:00"

# Queries for pages with several views, by the name of the view.
VIEWS: Mapping[str, Mapping[str, str]] = {
    "account_form": {"": "", "service": "?service=iCloud"},
    "explorer": {
        "": "",
        "answer": ANSWER,
        "picture": f"?show=1&organization={demo.SLUG}",
        "question": "?show=1&users=%3Cb%3E",
    },
    "users": {
        "": "",
        "attention": "?show=attention",
        "unread": "?show=unread",
        "search": "?q=odd",
        "nobody": "?q=%3Cb%3Enobody",
    },
    "audit_log": {"": "", "filters": "?person=alm&q=2026-11-27"},
    "organizations": {"": "", "nobody": "?q=%3Cb%3Enobody"},
    "working_hours": {"": "", "copied": "?from=odd.0", "refused": "?from=%3Cb%3E"},
}


@dataclass(frozen=True)
class View:
    """One view of a page. Without a ``rule``, ``query`` is a whole path without a page."""

    name: str
    rule: Rule | None
    query: str
    signed_in: bool
    status: int = 200

    def path(self, names: Mapping[str, str]) -> str:
        """The path of the view; ``names`` has a value for each argument of paths."""
        return path(self.rule, names) + self.query if self.rule else self.query.format_map(names)


def views() -> Iterator[View]:
    """All views of all pages."""
    for name, rule in every_rule().items():
        if name in PARTS:
            continue
        for title, query in VIEWS.get(name, {"": ""}).items():
            yield View(f"{name}-{title}".rstrip("-"), rule, query, needs_sign_in(rule.endpoint))
    yield View("not-found", None, "/dashboard/nothing/here", signed_in=True, status=404)
    yield View("not-found-stranger", None, "/dashboard/nothing/here", signed_in=False, status=404)
    yield View("invitation", None, "/invitation/{invitation}", signed_in=False)
    form = "/invitation/{invitation}/form/caldav?service=iCloud"
    yield View("invitation-form", None, form, signed_in=False)
    yield View("invitation-stale", None, "/invitation/guessed", signed_in=False, status=404)
    yield View("stale-link", None, f"/dashboard/welcome/{'x' * 43}", signed_in=False, status=404)


def every_rule() -> dict[str, Rule]:
    """The routes of all pages and parts of pages, by name; downloads are no pages."""
    every = {rule.endpoint.removeprefix(PREFIX): rule for rule in rules(_application(), "GET")}
    return {name: rule for name, rule in every.items() if not name.startswith(DOWNLOAD)}


def needs_sign_in(endpoint: str) -> bool:
    """Whether a page requires a signed-in administrator."""
    facts = declared_facts(_application(), endpoint, "GET")
    return facts is None or facts.needs_sign_in


@cache
def _application() -> Flask:
    """The dashboard's routes without stores."""
    app = Flask("pages")
    paths.install(app)
    dashboard.install(app, cast(Settings, SimpleNamespace(secret_key="none", public_url="")))
    return app
