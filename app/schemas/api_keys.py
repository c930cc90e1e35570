"""Schemas of API keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from marshmallow import RAISE, Schema, ValidationError, fields

from app.schemas.fields import (
    KEY_ID,
    SLUG,
    Body,
    Identifier,
    Instant,
    JsonBoolean,
    JsonInteger,
    Reference,
    RefusingBody,
    Text,
    Timestamp,
    about,
    given,
)
from app.schemas.timestamps import EPOCH, MILLISECOND
from store.sql.models import ApiKey, now
from store.sql.queries.api_keys import MAX_RATE_LIMIT

# How long a replaced key is valid: by default a day, at most 30 days, for programs that are released seldom.
USUAL_OVERLAP = 86_400
MAX_OVERLAP = 2_592_000

NAME = about("A name for your own records.", "billing")
ORGANIZATION = about("The organization that the key is bound to; null: it reaches all.", "acme")
READ_ONLY = about("The key can only read.", False)
SHOWS = about("The key can show access and refresh tokens.", False)
LIMIT = about("Requests a minute. Null: as the setting `ALMANAC_RATE_LIMIT` says.", 600)
KEY = about("The key. It is shown only here.", "alm_5Zb0Xq1mT8wQ0c3Jr7hKd2fLs9VyNa4e")
UTC = ZoneInfo("UTC")


class FutureInstant(Instant):
    """An instant that lies in the future, as a datetime; without an offset it is UTC."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> datetime:  # type: ignore[override]
        moment = super()._deserialize(value, attr, data, **kwargs)
        instant = EPOCH + moment.milliseconds(UTC) * MILLISECOND
        if instant <= now():
            raise ValidationError("must lie in the future")
        return instant


USE_ORGANIZATION = "is no field of API keys: give the slug as organization"
OTHER_ORGANIZATION = "cannot be changed: create another key"
MANAGES_NONE = "must not be given here: API keys that are made by the API manage no keys"
# What other routes call an organization.
OTHER_NAMES = ("organizationSlug", "organizationSlugs", "orgSlug", "organizations")


class _WholeKeyBody(RefusingBody):
    """A body of a key, without a field that keys do not have: ignored, it would leave a key stronger."""

    error_messages = {"unknown": "is no field of API keys"}  # noqa: RUF012 - read by marshmallow, never changed

    class Meta:
        unknown = RAISE


class KeyBody(_WholeKeyBody):
    """A new key."""

    refused = {**dict.fromkeys(OTHER_NAMES, USE_ORGANIZATION), "manageKeys": MANAGES_NONE}  # noqa: RUF012
    neutral = {"manageKeys": False}  # noqa: RUF012

    name = Text(shortest=1, longest=128, required=True, metadata=NAME)
    organization = Reference(
        SLUG,
        load_default=None,
        metadata=about(
            "The organization to bind the key to. Default: that of the managing key; if that is bound to "
            "none, the new key reaches all organizations."
        ),
    )
    readOnly = JsonBoolean(load_default=False, metadata=READ_ONLY)
    showTokens = JsonBoolean(load_default=False, metadata=SHOWS)
    expiresAt = FutureInstant(
        load_default=None,
        metadata=about("From when on the key is refused. Default: as the managing key."),
    )
    rateLimit = JsonInteger(
        least=1,
        most=MAX_RATE_LIMIT,
        load_default=None,
        metadata=about("Requests a minute. Default: as the managing key."),
    )


class KeyChangeBody(_WholeKeyBody):
    """A change of a key; absent fields stay unchanged."""

    # A key that moved to another organization would take its holds and links along.
    refused = {  # noqa: RUF012
        **dict.fromkeys(("organization", *OTHER_NAMES), OTHER_ORGANIZATION),
        "manageKeys": "cannot be changed: keys that manage keys are made by almanac keys create",
    }

    name = Text(shortest=1, longest=128, metadata=NAME)
    readOnly = JsonBoolean(metadata=READ_ONLY)
    showTokens = JsonBoolean(metadata=SHOWS)
    expiresAt = FutureInstant(
        allow_none=True, metadata=about("From when on the key is refused; null: it does not expire.")
    )
    rateLimit = JsonInteger(least=1, most=MAX_RATE_LIMIT, allow_none=True, metadata=LIMIT)


class KeyRotationBody(Body):
    """How a key is replaced."""

    overlapSeconds = JsonInteger(
        least=0,
        most=MAX_OVERLAP,
        load_default=USUAL_OVERLAP,
        metadata=about(
            "For how long the replaced key is valid too. 0: it ends at once, as it should when it may be "
            "known to others."
        ),
    )


class KeySchema(Schema):
    """An API key, without the key itself."""

    id = Identifier(KEY_ID, required=True, metadata=about("The id of the key."))
    name = fields.String(required=True, metadata=NAME)
    visible = given(
        fields.String, "The beginning of the key, by which lists and the audit log name it.", "alm_5Zb0Xq1m"
    )
    organization = fields.String(required=True, allow_none=True, metadata=ORGANIZATION)
    readOnly = fields.Boolean(required=True, metadata=READ_ONLY)
    showTokens = fields.Boolean(required=True, metadata=SHOWS)
    manageKeys = given(fields.Boolean, "The key can manage keys.")
    createdAt = given(Timestamp, "When the key was created.")
    expiresAt = given(Timestamp, "From when on the key is refused; null if it does not expire.", null=True)
    lastUsedAt = given(Timestamp, "When the key was last used, to a minute; null if it never was.", null=True)
    rateLimit = fields.Integer(required=True, allow_none=True, metadata=LIMIT)


class NewKeySchema(KeySchema):
    """An API key with the key itself."""

    key = fields.String(required=True, metadata=KEY)


class RotatedKeySchema(NewKeySchema):
    """An API key with its new key."""

    previousKeyUntil = given(
        Timestamp, "Until when the replaced key is valid; null if it has ended.", null=True
    )


def key_view(row: ApiKey) -> dict[str, Any]:
    """A key for ``KeySchema``."""
    return {
        "id": row.public_id,
        "name": row.name,
        "visible": row.visible,
        "organization": row.organization.slug if row.organization else None,
        "readOnly": row.read_only,
        "showTokens": row.shows_tokens,
        "manageKeys": row.manages_keys,
        "createdAt": row.created_at,
        "expiresAt": row.expires_at,
        "lastUsedAt": row.last_used_at,
        "rateLimit": row.rate_limit,
    }
