"""Identifiers in a path: their schema in the OpenAPI document, and their validation."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from flask import Flask, request
from werkzeug.routing import UnicodeConverter

from app.http import raw_path
from app.http.error_codes import Code
from app.http.errors import Invalid, NotFound
from app.schemas.fields import CONTROL, DELIVERY_ID, HOLD_ID, SLUG, USER_ID, WEBHOOK_ID, identifier_shape
from providers.names import ProviderName


class UserId(UnicodeConverter):
    """A user's identifier. It matches any text, so that a malformed one gets the error of an unknown user."""


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
        """The text; bytes that are not UTF-8 become surrogates, which ``_check`` answers with 404."""
        return raw_path.text(value)

    def to_url(self, value: str) -> str:
        """The segment."""
        return quote(value, safe="")


# Graph documents no length limit for its identifiers; this one bounds requests and log lines.
MAX_FOREIGN_ID = 2048
NO_TEXT = re.compile("[\ud800-\udfff]")

# The shape of each identifier, and the error for one that does not exist, as none of another shape does.
IDENTIFIERS = {
    "userId": (USER_ID, "User not found", Code.USER_NOT_FOUND),
    "orgSlug": (SLUG, "Organization not found", Code.ORGANIZATION_NOT_FOUND),
    "webhookId": (WEBHOOK_ID, "Webhook not found", Code.WEBHOOK_NOT_FOUND),
    "deliveryId": (DELIVERY_ID, "Delivery not found", Code.DELIVERY_NOT_FOUND),
    "holdId": (HOLD_ID, "Hold not found", Code.HOLD_NOT_FOUND),
}
FOREIGN_IDS = {
    "calendarId": ("Calendar not found", Code.CALENDAR_NOT_FOUND),
    "eventId": ("Event not found", Code.EVENT_NOT_FOUND),
    "metaId": ("Event not found", Code.EVENT_NOT_FOUND),
}

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
    for name, value in (request.view_args or {}).items():
        if name == "provider" and value not in set(ProviderName):
            raise Invalid(f"provider must be one of {', '.join(ProviderName)}", param=name)
        if name in IDENTIFIERS:
            pattern, sentence, code = IDENTIFIERS[name]
            if not pattern.fullmatch(value):
                raise NotFound(sentence, code)
        if name in FOREIGN_IDS and _cannot_exist(value):
            raise NotFound(*FOREIGN_IDS[name])


def _cannot_exist(foreign_id: str) -> bool:
    """Whether an identifier is invalid at every provider."""
    # In a provider's URL, the last two change the path, even percent-encoded.
    is_text = not (NO_TEXT.search(foreign_id) or CONTROL.search(foreign_id))
    return not is_text or len(foreign_id) > MAX_FOREIGN_ID or foreign_id in (".", "..")
