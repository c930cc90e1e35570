"""The dashboard: pages for operators, at ``/dashboard``.

Imported by ``app``, ``app.cli``.
"""

from __future__ import annotations

from flask import Flask

from app.dashboard import errors, static_files
from app.dashboard.blueprint import blp, csrf
from app.dashboard.sign_in import cookies
from store.config.settings import Settings


def install(app: Flask, settings: Settings) -> None:
    """Register the pages with their session cookie, CSRF protection and error pages."""
    from app.dashboard import (
        activity,
        connecting,
        keys,
        organizations,
        providers,
        user_calendars,
        users,
    )
    from app.dashboard.audit_log import pages as audit_log
    from app.dashboard.bulk import deletion, exports, members, undo
    from app.dashboard.explorer import explanation, periods
    from app.dashboard.explorer import pages as explorer
    from app.dashboard.grants import importing
    from app.dashboard.grants import pages as grants
    from app.dashboard.invitations import landing
    from app.dashboard.invitations import pages as invitations
    from app.dashboard.overview import pages as overview
    from app.dashboard.search import suggestions
    from app.dashboard.sign_in import account, code, people, registration, second_factor
    from app.dashboard.sign_in import pages as sign_in
    from app.dashboard.webhooks import deliveries, secrets, settings_form
    from app.dashboard.webhooks import pages as webhooks

    cookies.install(app, settings)
    csrf.init_app(app)
    errors.install(app)
    static_files.install_favicon(app)
    access = (account, sign_in, code, people, registration, second_factor)
    accounts = (keys, organizations, grants, importing, users, user_calendars, connecting, invitations)
    many = (deletion, exports, members, undo)
    hooks = (webhooks, settings_form, secrets, deliveries)
    operation = (overview, providers, activity, audit_log, suggestions)
    for pages in (*access, explorer, explanation, periods, *accounts, *many, *hooks, *operation):
        assert pages.blp is blp
    app.register_blueprint(blp, url_prefix="/dashboard")
    app.register_blueprint(landing.blp)
