"""Identifiers in a path: their schema in the OpenAPI document, and their validation."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from flask import Flask
from werkzeug.routing import UnicodeConverter

from app.http import raw_path
from app.http.errors import Invalid
from app.http.fast_context import current_request
from app.schemas.fields import CONTROL, DELIVERY_ID, HOLD_ID, SLUG, USER_ID, WEBHOOK_ID, identifier_shape
from providers.names import ProviderName


class UserId(UnicodeConverter):
    """A user's identifier. It matches any text, so that a malformed one gets 400, not 404."""


class OrgSlug(UnicodeConverter):
    """An organization's slug."""


class Provider(UnicodeConverter):
    """A provider's name."""


class WebhookId(UnicodeConverter):
    """A webhook endpoint."""


class HoldId(UnicodeConverter):
    """A hold."""


class DeliveryId(UnicodeConverter):
    """A webhook delivery."""


class ForeignId(UnicodeConverter):
    """An identifier chosen by a provider or a client: any text, percent-encoded as a path segment."""

    def to_python(self, value: str) -> str:
        """The text; bytes that are not UTF-8 become surrogates, which ``_check`` answers with 400."""
        return raw_path.text(value)

    def to_url(self, value: str) -> str:
        """The segment."""
        return quote(value, safe="")


# Graph documents no length limit for its identifiers; this one bounds requests and log lines.
MAX_FOREIGN_ID = 2048
FOREIGN_IDS = frozenset({"calendarId", "eventId", "metaId"})
NO_TEXT = re.compile("[\ud800-\udfff]")

PATTERNS = {"userId": USER_ID, "orgSlug": SLUG, "webhookId": WEBHOOK_ID}
PATTERNS |= {"deliveryId": DELIVERY_ID, "holdId": HOLD_ID}

SHAPES: dict[type[UnicodeConverter], dict[str, Any]] = {
    UserId: {"type": "string", **identifier_shape(USER_ID)},
    OrgSlug: {"type": "string", **identifier_shape(SLUG)},
    WebhookId: {"type": "string", **identifier_shape(WEBHOOK_ID)},
    HoldId: {"type": "string", **identifier_shape(HOLD_ID)},
    DeliveryId: {"type": "string", **identifier_shape(DELIVERY_ID)},
    Provider: {"type": "string", "enum": [str(name) for name in ProviderName]},
    ForeignId: {"type": "string", "minLength": 1, "maxLength": MAX_FOREIGN_ID},
}


def install(app: Flask) -> None:
    """Register the converters, and validate path parameters before each view."""
    app.url_map.converters |= {"user_id": UserId, "org_slug": OrgSlug, "provider": Provider}
    app.url_map.converters |= {"webhook_id": WebhookId, "delivery_id": DeliveryId, "hold_id": HoldId}
    app.url_map.converters |= dict.fromkeys(("calendar_id", "event_id", "meta_id"), ForeignId)
    app.before_request(_check)


def _check() -> None:
    for name, value in (current_request().view_args or {}).items():
        pattern = PATTERNS.get(name)
        if pattern is not None and not pattern.fullmatch(value):
            raise Invalid(f"{name} must match ^{pattern.pattern}$", param=name)
        if name == "provider" and value not in set(ProviderName):
            raise Invalid(f"provider must be one of {', '.join(ProviderName)}", param=name)
        if name in FOREIGN_IDS and (fault := _fault(value)):
            raise Invalid(f"{name} {fault}", param=name)


def _fault(foreign_id: str) -> str | None:
    """The reason why an identifier is invalid at every provider; None if it may be valid."""
    if NO_TEXT.search(foreign_id):
        return "must be UTF-8, percent-encoded"
    if len(foreign_id) > MAX_FOREIGN_ID:
        return f"must have 1 to {MAX_FOREIGN_ID} characters"
    if CONTROL.search(foreign_id):
        return "must not contain control characters"
    # In a provider's URL, these segments change the path, even percent-encoded.
    return "must not be . or .." if foreign_id in (".", "..") else None
