"""The one cookie, which the dashboard alone reads and writes: who is signed in, and what is told next."""

from __future__ import annotations

from typing import Any

from flask import Flask, Request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface

from store.config.settings import Settings
from store.sql.queries import dashboard_sessions

PATH = "/dashboard"


class _Sessions(SecureCookieSessionInterface):
    """Signed cookies, for the pages below ``PATH``; for a call of the API there is nothing to open."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """What the cookie says; None, for which Flask has a stand-in, elsewhere."""
        return super().open_session(app, request) if request.path.startswith(PATH) else None

    def make_null_session(self, app: Flask) -> Any:
        """The stand-in, one for all."""
        return _NOWHERE


_NOWHERE = SecureCookieSessionInterface.null_session_class()


def install(app: Flask, settings: Settings) -> None:
    """Flask's session as we want it."""
    app.secret_key = settings.secret_key
    app.session_interface = _Sessions()
    app.config.update(
        SESSION_COOKIE_NAME="almanac",
        SESSION_COOKIE_PATH=PATH,
        SESSION_COOKIE_HTTPONLY=True,
        # Lax: who comes back from a provider's consent page is still signed in.
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.public_url.startswith("https:"),
        # Of who is signed in, as long as that may last; anybody else's ends with the browser.
        PERMANENT_SESSION_LIFETIME=dashboard_sessions.LIFETIME,
        SESSION_REFRESH_EACH_REQUEST=False,
        # Whoever is signed in may leave a page open for as long as the session lasts.
        WTF_CSRF_TIME_LIMIT=None,
        # The pages ask for it themselves; the API has keys, which no browser sends by itself.
        WTF_CSRF_CHECK_DEFAULT=False,
        # Behind a proxy the Referer of a form names another host than we are asked by. The token is what
        # another site cannot know, and a Lax cookie does not come along with its forms.
        WTF_CSRF_SSL_STRICT=False,
    )
