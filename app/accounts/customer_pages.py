"""The pages that customers see, invitations and results of a consent, in the operator's name and colour."""

from __future__ import annotations

import logging
import secrets
from functools import cache
from typing import NamedTuple

from flask import Response, render_template

from app.services import services
from providers.scopes import Level
from store.config import branding
from store.config.settings import SettingsError

log = logging.getLogger(__name__)


class Boundary(NamedTuple):
    """What this service does with a level of access, and what it never does, in words."""

    does: tuple[str, ...]
    never: tuple[str, ...]


_BUSY, _EVENTS = "Reads when you are busy", "Reads the events of your calendars"
_NEVER = "Reads your e-mails, contacts or files"
BOUNDARIES = {
    Level.FREE_BUSY: Boundary((_BUSY,), ("Reads what your events are about, or who takes part", _NEVER)),
    Level.READ: Boundary((_BUSY, _EVENTS), (_NEVER, "Changes your events")),
    Level.WRITE: Boundary((_BUSY, _EVENTS, "Adds and changes events for bookings"), (_NEVER,)),
}


def render(template: str, status: int, *, form_action: str = "'none'", **values: object) -> Response:
    """A page that calls no other host; ``form_action`` is where its forms may lead."""
    settings, nonce = services().settings, secrets.token_urlsafe(16)
    text = render_template(
        template,
        nonce=nonce,
        operator=settings.operator_name,
        logo=_logo(settings.operator_logo),
        colour=settings.operator_colour,
        ink=ink_on(settings.operator_colour) if settings.operator_colour else "",
        **values,
    )
    response = private(Response(text, status, mimetype="text/html"))
    response.headers["Content-Security-Policy"] = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; "
        f"form-action {form_action}; frame-ancestors 'none'"
    )
    return response


@cache
def _logo(path: str) -> str:
    """The logo as a ``data:`` URL; empty if there is none. Without it, the pages still serve."""
    try:
        return branding.logo(path)
    except SettingsError as error:
        log.error("the pages for customers have no logo: %s", error)
        return ""


def private(response: Response) -> Response:
    """Forbid caching, and the Referer header: the URL of such a page contains a secret."""
    response.headers["Cache-Control"] = "no-store"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def ink_on(colour: str) -> str:
    """Black or white, whichever contrasts more with a colour.

    https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio
    """
    channels = (int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5))
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#fff"
