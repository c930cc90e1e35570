"""The web tier: Flask and ``/v1``, put together."""

from __future__ import annotations

import flask

from app import (
    auth,
    compression,
    envelope,
    health,
    idempotency,
    identifiers,
    openapi,
    paths,
    request_ids,
    services,
)
from app.api import (
    authorization,
    busy,
    calendars,
    events,
    oauth,
    organizations,
    scheduling,
    unified,
    users,
)
from store.settings import Settings

LARGEST_BODY = 1024 * 1024


def create_app(settings: Settings) -> flask.Flask:
    """The WSGI application of one process."""
    app = request_ids.Flask(__name__)
    app.config.update(
        MAX_CONTENT_LENGTH=LARGEST_BODY,
        API_TITLE="Almanac",
        API_VERSION="v1",
        OPENAPI_VERSION="3.1.0",
        OPENAPI_URL_PREFIX="/v1",
        OPENAPI_JSON_PATH="openapi.json",
        OPENAPI_SWAGGER_UI_PATH="docs",
        OPENAPI_SWAGGER_UI_URL="/static/swagger-ui/",
        OPENAPI_SWAGGER_UI_CONFIG=openapi.SWAGGER_UI,
        API_SPEC_OPTIONS=openapi.OPTIONS,
    )
    # A path is there or not: a redirect would be an answer without our envelope.
    app.url_map.strict_slashes = app.url_map.merge_slashes = False
    paths.install(app)
    compression.install(app)
    services.install(app, settings)
    request_ids.install(app)
    envelope.install(app)
    auth.install(app)
    envelope.refuse_unreadable_bodies(app)
    identifiers.install(app)
    idempotency.install(app)
    api = envelope.Api(app)
    parts = (users, organizations, oauth, authorization, calendars, events, unified, busy, scheduling)
    for part in parts:
        api.register_blueprint(part.blp, url_prefix="/v1")
    health.install(app)
    return app
