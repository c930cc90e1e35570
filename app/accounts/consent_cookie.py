"""The cookie that binds a consent to the browser that began it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from typing import NamedTuple, Self

from flask import Response

from app.services import services
from store.security.crypto import digest
from store.security.one_time_secrets import STATE_SECONDS, PendingConsent

# Browsers send the cookie to the callbacks only.
PATH = "/v1/oauth"
VALUE_BYTES = 24


class ConsentCookie(NamedTuple):
    """A cookie that only the browser that began a consent has."""

    name: str
    value: str

    @classmethod
    def of(cls, state: str, value: str) -> Self:
        """The cookie of the consent with this state: a browser may have several pending."""
        return cls(_name(state), value)

    def set_on(self, response: Response) -> None:
        """Send the cookie with a response; it is valid for as long as the state is."""
        response.set_cookie(
            self.name,
            self.value,
            max_age=STATE_SECONDS,
            path=PATH,
            secure=services().settings.public_url.startswith("https:"),
            httponly=True,
            # Lax: the provider's redirect to the callback comes from another site.
            samesite="Lax",
        )


def new_value() -> str:
    """A random value for a cookie."""
    return secrets.token_urlsafe(VALUE_BYTES)


def may_finish(consent: PendingConsent, state: str, cookies: Mapping[str, str]) -> bool:
    """Whether a browser with these cookies may finish a consent: any may, if the consent is bound to none."""
    if consent.browser_digest is None:
        return True
    return hmac.compare_digest(digest(cookies.get(_name(state), "")), consent.browser_digest)


def _name(state: str) -> str:
    return f"almanac-consent-{digest(state)[:16]}"
