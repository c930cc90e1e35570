"""CORS for ``/v1``: refused unless ``ALMANAC_CORS_ORIGINS`` names the origin."""

from __future__ import annotations

from collections.abc import Container

from flask import Flask, Response, current_app, request

from app.http import rate_limit
from app.http.authentication import PREFIX
from app.http.idempotency import HEADER as IDEMPOTENCY_KEY
from app.http.idempotency import REPLAYED
from app.http.request_ids import HEADER as REQUEST_ID
from store.config.settings import Settings

ORIGINS = "ALMANAC_CORS_ORIGINS"

REQUEST_HEADERS = (
    "Authorization",
    "Cache-Control",
    "Content-Type",
    "If-Match",
    IDEMPOTENCY_KEY,
    REQUEST_ID,
    "X-Timezone",
)
ANSWER_HEADERS = (
    "Age",
    "ETag",
    "Link",
    "Retry-After",
    rate_limit.LIMIT,
    rate_limit.REMAINING,
    rate_limit.RESET,
    REPLAYED,
    REQUEST_ID,
    "X-Failed-Calendars",
    "X-Failed-Calendars-Count",
)

# In seconds; browsers cache a preflight response for two hours at most.
PREFLIGHT_LIFETIME = 7200


def install(app: Flask, settings: Settings) -> None:
    """Answer OPTIONS without an API key, which a preflight cannot send, and allow the configured origins."""
    app.config[ORIGINS] = frozenset(settings.cors_origins)
    app.before_request(_answer_options)
    if settings.cors_origins:
        app.after_request(_allow)


def allowed_headers(origin: str | None, origins: Container[str]) -> dict[str, str]:
    """The headers that let pages of this origin read a response; none if it is not among ``origins``."""
    if origin is None or origin not in origins:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": ", ".join(ANSWER_HEADERS),
    }


def _answer_options() -> Response | None:
    if request.method != "OPTIONS" or request.url_rule is None or not request.path.startswith(PREFIX):
        return None
    response = current_app.make_default_options_response()
    response.status_code = 204
    del response.headers["Content-Type"]
    return response


def _allow(response: Response) -> Response:
    origins = current_app.config[ORIGINS]
    if not request.path.startswith(PREFIX):
        return response
    response.vary.add("Origin")
    allowed = allowed_headers(request.headers.get("Origin"), origins)
    response.headers.update(allowed)
    if allowed and request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = response.headers.get("Allow", "")
        response.headers["Access-Control-Allow-Headers"] = ", ".join(REQUEST_HEADERS)
        response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_LIFETIME)
    return response
