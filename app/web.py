"""The application factory of the web tier."""

from __future__ import annotations

import flask
from werkzeug.middleware.proxy_fix import ProxyFix

from app import dashboard, docs_site, services
from app.api import (
    authorization,
    availability_profiles,
    busy,
    calendars,
    changes,
    connections,
    events,
    explain,
    group_scheduling,
    holds,
    keys,
    oauth,
    organization_grants,
    organizations,
    push,
    scheduling,
    unified,
    users,
    webhooks,
)
from app.http import (
    authentication,
    browser_headers,
    error_handlers,
    idempotency,
    parsing,
    paths,
    requests,
    responses,
)
from app.observability import health, scrape
from app.openapi import document
from store.config.settings import Settings
from store.coordination import shares

MAX_BODY = 1024 * 1024


def create_app(settings: Settings) -> flask.Flask:
    """The WSGI application of one process."""
    app = requests.Flask(__name__)
    app.config.update(
        MAX_CONTENT_LENGTH=MAX_BODY,
        API_TITLE="Almanac",
        API_VERSION=document.VERSION,
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX="/v1",
        OPENAPI_JSON_PATH="openapi.json",
        API_SPEC_OPTIONS=document.OPTIONS,
    )
    # No redirects to other spellings of a path: they would be responses without our envelope.
    app.url_map.strict_slashes = app.url_map.merge_slashes = False
    paths.install(app)
    responses.install(app)
    services.install(app, settings)
    requests.observe(app)
    requests.install(app)
    error_handlers.install(app)
    browser_headers.install(app, settings)
    authentication.install(app)
    parsing.refuse_unreadable_bodies(app)
    paths.check_identifiers(app)
    idempotency.install(app)
    # Last: it then runs first, whatever the other ones raise.
    app.teardown_request(shares.end_turn)
    api = document.Api(app)
    calendar = (calendars, events, changes, unified, busy, scheduling, group_scheduling, explain)
    accounts = (
        users,
        availability_profiles,
        organizations,
        organization_grants,
        oauth,
        authorization,
        connections,
    )
    for part in (*accounts, *calendar, holds, webhooks, keys):
        api.register_blueprint(part.blp, url_prefix="/v1")
    app.register_blueprint(document.blp, url_prefix="/v1")
    # Called by providers, in their own format: these routes are not in the OpenAPI document.
    app.register_blueprint(push.blp, url_prefix="/v1")
    health.install(app)
    scrape.install(app)
    dashboard.install(app, settings)
    docs_site.install(app)
    _trust_proxies(app, settings.trusted_proxies)
    return app


def _trust_proxies(app: flask.Flask, number: int) -> None:
    """Take the client's address and scheme from the headers that this number of proxies added."""
    if number:
        # Not the host: we use it in links, and many proxies forward the value that the client sent.
        fixed = ProxyFix(app.wsgi_app, x_for=number, x_proto=number, x_host=0, x_port=0, x_prefix=0)
        app.wsgi_app = fixed  # type: ignore[method-assign]
