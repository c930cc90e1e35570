"""The session cookie: the signed-in administrator and the messages for the next page.

Only the dashboard reads and writes it.
"""

from __future__ import annotations

from typing import Any

from flask import Flask, Request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface

from store.config.settings import Settings
from store.sql.queries import dashboard_sessions

PATH = "/dashboard"


class _Sessions(SecureCookieSessionInterface):
    """Signed cookies for the pages below ``PATH``. API requests have no session."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """The session of a dashboard request; None elsewhere, which Flask replaces by a null session."""
        return super().open_session(app, request) if request.path.startswith(PATH) else None

    def make_null_session(self, app: Flask) -> Any:
        """The null session, shared by all requests."""
        return _NULL_SESSION


_NULL_SESSION = SecureCookieSessionInterface.null_session_class()


def install(app: Flask, settings: Settings) -> None:
    """Configure Flask's session and the CSRF protection."""
    app.secret_key = settings.secret_key
    app.session_interface = _Sessions()
    app.config.update(
        SESSION_COOKIE_NAME="almanac",
        SESSION_COOKIE_PATH=PATH,
        SESSION_COOKIE_HTTPONLY=True,
        # Lax: an administrator who returns from a provider's consent page is still signed in.
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.public_url.startswith("https:"),
        # For signed-in browsers. Without sign-in, the cookie ends when the browser closes.
        PERMANENT_SESSION_LIFETIME=dashboard_sessions.LIFETIME,
        SESSION_REFRESH_EACH_REQUEST=False,
        # CSRF tokens are valid as long as the session, so that an open page can still be sent.
        WTF_CSRF_TIME_LIMIT=None,
        # The dashboard calls ``csrf.protect`` itself. The API needs none: browsers never add its keys.
        WTF_CSRF_CHECK_DEFAULT=False,
        # Behind a proxy, the host in a form's Referer differs from this request's. The token protects
        # without it: another site cannot know the token, and its forms send no Lax cookie.
        WTF_CSRF_SSL_STRICT=False,
    )
