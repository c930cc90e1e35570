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
        audit_log,
        bulk,
        connecting,
        invitation_landing,
        invitations,
        keys,
        organizations,
        providers,
        search,
        user_calendars,
        users,
        webhook_deliveries,
        webhooks,
    )
    from app.dashboard.explorer import explanation, periods
    from app.dashboard.explorer import pages as explorer
    from app.dashboard.grants import importing
    from app.dashboard.grants import pages as grants
    from app.dashboard.overview import pages as overview
    from app.dashboard.sign_in import account, code, people, registration, second_factor
    from app.dashboard.sign_in import pages as sign_in

    cookies.install(app, settings)
    csrf.init_app(app)
    errors.install(app)
    static_files.install_favicon(app)
    access = (account, sign_in, code, people, registration, second_factor)
    accounts = (keys, organizations, grants, importing, users, user_calendars, connecting, invitations)
    many = (bulk, webhooks, webhook_deliveries)
    operation = (overview, providers, activity, audit_log, search)
    for pages in (*access, explorer, explanation, periods, *accounts, *many, *operation):
        assert pages.blp is blp
    app.register_blueprint(blp, url_prefix="/dashboard")
    app.register_blueprint(invitation_landing.blp)
