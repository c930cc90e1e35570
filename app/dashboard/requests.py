"""Which requests are the dashboard's: those with its session cookie, and those with its error pages."""

from __future__ import annotations

from typing import Any

from flask import Flask, Request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface

from store.config.settings import Settings
from store.sql.queries import dashboard_sessions

PATH = "/dashboard"


def install(app: Flask, settings: Settings) -> None:
    """Configure Flask's session, and let the dashboard answer 404 and 405 wherever a person reads them."""
    app.request_class = _Request
    app.secret_key = settings.secret_key
    app.session_interface = _SessionCookies()
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
    )


class _Request(Request):
    """Assigns requests for unknown paths and methods to the dashboard's blueprint.

    Outside ``/dashboard`` only those of browsers: programs get an error in the envelope of the API.
    """

    @property
    def blueprint(self) -> str | None:
        """The blueprint whose hooks and error handlers apply."""
        found = super().blueprint
        unknown = found is None and self.endpoint is None and (self._below(PATH) or self._wants_page())
        return "dashboard" if unknown else found

    def _below(self, path: str) -> bool:
        return f"{self.path}/".startswith(f"{path}/")

    def _wants_page(self) -> bool:
        return not self._below("/v1") and "text/html" in self.headers.get("Accept", "")


class _SessionCookies(SecureCookieSessionInterface):
    """Signed cookies for the pages below ``PATH``. API requests have no session."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """The session of a dashboard request; None elsewhere, which Flask replaces by a null session."""
        return super().open_session(app, request) if request.path.startswith(PATH) else None

    def make_null_session(self, app: Flask) -> Any:
        """The null session, shared by all requests."""
        return _NULL_SESSION


_NULL_SESSION = SecureCookieSessionInterface.null_session_class()
