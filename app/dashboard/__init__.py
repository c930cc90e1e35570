"""The dashboard: pages for those who run the service, at ``/dashboard``."""

from __future__ import annotations

from flask import Flask

from app.dashboard import cookies, errors
from app.dashboard.blueprint import blp, csrf
from store.settings import Settings


def install(app: Flask, settings: Settings) -> None:
    """The pages, with their cookie and their protection."""
    from app.dashboard import (
        account,
        activity,
        audit_log,
        connecting,
        deliveries,
        explorer,
        keys,
        members,
        organizations,
        overview,
        providers,
        sign_in,
        user_calendars,
        users,
        webhooks,
        why,
    )

    cookies.install(app, settings)
    csrf.init_app(app)
    errors.keep_the_lost(app)
    people = (keys, organizations, members, users, user_calendars, connecting)
    operation = (overview, providers, webhooks, deliveries, activity, audit_log)
    for pages in (account, sign_in, explorer, why, *people, *operation):
        assert pages.blp is blp
    app.register_blueprint(blp, url_prefix="/dashboard")
