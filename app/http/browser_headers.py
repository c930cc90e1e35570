"""Headers for browsers: no MIME sniffing of any response, no framing of pages, and CORS for ``/v1``.

Other origins are refused unless ``ALMANAC_CORS_ORIGINS`` names them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Container

from flask import Flask, Response, current_app, request

from app.http import authentication
from app.http.authentication import PREFIX
from app.http.idempotency import HEADER as IDEMPOTENCY_KEY
from app.http.idempotency import REPLAYED
from app.http.requests import HEADER as REQUEST_ID
from store.config.settings import Settings

# Scripts and styles come from our own files. Nothing is loaded from, sent to or framed by other sites.
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # URLs of pages contain identifiers of people.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

# The source of an inline script.
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def _protect(response: Response) -> Response:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if response.mimetype == "text/html":
        response.headers.setdefault("X-Frame-Options", "DENY")
    return response


def policy_of(page: bytes) -> str:
    """The content security policy of a built page: that of all pages, its inline scripts, and inline styles.

    Its scripts add styles of their own, for instance to the search.
    """
    own = {"script-src": f"'self' {_inline_scripts(page)}".rstrip(), "style-src": "'self' 'unsafe-inline'"}
    policy = _POLICY | own
    return "; ".join(f"{name} {sources}" for name, sources in policy.items())


def own_scripts_only(response: Response) -> Response:
    """Restrict a page to scripts from our own files and the inline scripts that it was served with."""
    scripts = _inline_scripts(response.get_data())
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; form-action 'none'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )
    response.headers["Referrer-Policy"] = "same-origin"
    return response


def _inline_scripts(page: bytes) -> str:
    hashes = (hashlib.sha256(each).digest() for each in _INLINE.findall(page))
    return " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in hashes)


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
    authentication.LIMIT,
    authentication.REMAINING,
    authentication.RESET,
    REPLAYED,
    REQUEST_ID,
    "X-Failed-Calendars",
    "X-Failed-Calendars-Count",
)

# In seconds; browsers cache a preflight response for two hours at most.
PREFLIGHT_LIFETIME = 7200


def install(app: Flask, settings: Settings) -> None:
    """Set the headers of every response, to which pages add their own, and allow the configured origins.

    OPTIONS is answered without an API key, which a preflight cannot send.
    """
    app.after_request(_protect)
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
