"""The dashboard: pages for operators, at ``/dashboard``."""

from __future__ import annotations

from flask import Flask

from app.dashboard import errors, static_files
from app.dashboard.blueprint import blp
from app.http.requests import DASHBOARD
from store.config.settings import Settings
from store.sql.queries import dashboard_sessions


def install(app: Flask, settings: Settings) -> None:
    """Register the pages with their session cookie, CSRF protection and error pages."""
    # Each registers its routes on the blueprint when it is imported.
    from app.dashboard import (  # noqa: F401
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
        user_import,
        users,
        webhook_deliveries,
        webhooks,
    )
    from app.dashboard.explorer import explanation
    from app.dashboard.explorer import pages as explorer
    from app.dashboard.grants import importing
    from app.dashboard.grants import pages as grants
    from app.dashboard.overview import pages as overview
    from app.dashboard.person import calendars, working_hours
    from app.dashboard.sign_in import account, openid, second_factor
    from app.dashboard.sign_in import pages as sign_in

    app.secret_key = settings.secret_key
    app.config.update(
        SESSION_COOKIE_NAME="almanac",
        SESSION_COOKIE_PATH=DASHBOARD,
        SESSION_COOKIE_HTTPONLY=True,
        # Lax: an administrator who returns from a provider's consent page is still signed in.
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.public_url.startswith("https:"),
        # For signed-in browsers. Without sign-in, the cookie ends when the browser closes.
        PERMANENT_SESSION_LIFETIME=dashboard_sessions.LIFETIME,
        SESSION_REFRESH_EACH_REQUEST=False,
    )
    static_files.install_favicon(app)
    for pages in (
        errors,
        explanation,
        explorer,
        importing,
        grants,
        overview,
        calendars,
        working_hours,
        account,
        openid,
        second_factor,
        sign_in,
    ):
        assert pages.blp is blp
    app.register_blueprint(blp, url_prefix=DASHBOARD)
    app.register_blueprint(invitation_landing.blp)
