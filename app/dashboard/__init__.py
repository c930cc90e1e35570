"""The dashboard: pages for operators, at ``/dashboard``."""

from __future__ import annotations

from flask import Flask

from app.dashboard import errors, requests, static_files
from app.dashboard.blueprint import blp
from store.config.settings import Settings


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
        user_calendars,
        users,
        webhook_deliveries,
        webhooks,
    )
    from app.dashboard.explorer import explanation
    from app.dashboard.explorer import pages as explorer
    from app.dashboard.grants import importing
    from app.dashboard.grants import pages as grants
    from app.dashboard.overview import pages as overview
    from app.dashboard.sign_in import account, second_factor
    from app.dashboard.sign_in import pages as sign_in

    requests.install(app, settings)
    static_files.install_favicon(app)
    for pages in (
        errors,
        explanation,
        explorer,
        importing,
        grants,
        overview,
        account,
        second_factor,
        sign_in,
    ):
        assert pages.blp is blp
    app.register_blueprint(blp, url_prefix="/dashboard")
    app.register_blueprint(invitation_landing.blp)
