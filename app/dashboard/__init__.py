"""The dashboard: pages for operators, at ``/dashboard``.

Imported by ``app``, ``app.accounts``.
"""

from __future__ import annotations

from flask import Flask

from app.dashboard import errors
from app.dashboard.blueprint import blp, csrf
from app.dashboard.sign_in import cookies
from store.config.settings import Settings


def install(app: Flask, settings: Settings) -> None:
    """Register the pages with their session cookie, CSRF protection and error pages."""
    from app.dashboard import (
        activity,
        audit_log,
        connecting,
        deliveries,
        keys,
        members,
        organizations,
        overview,
        providers,
        user_calendars,
        users,
        webhooks,
    )
    from app.dashboard.explorer import explanation
    from app.dashboard.explorer import pages as explorer
    from app.dashboard.grants import importing
    from app.dashboard.grants import pages as grants
    from app.dashboard.sign_in import account
    from app.dashboard.sign_in import pages as sign_in

    cookies.install(app, settings)
    csrf.init_app(app)
    errors.claim_unknown_paths(app)
    people = (keys, organizations, members, grants, importing, users, user_calendars, connecting)
    operation = (overview, providers, webhooks, deliveries, activity, audit_log)
    for pages in (account, sign_in, explorer, explanation, *people, *operation):
        assert pages.blp is blp
    app.register_blueprint(blp, url_prefix="/dashboard")
