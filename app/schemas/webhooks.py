"""Schemas of webhook endpoints and their delivery log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from app.schemas.fields import (
    DELIVERY_ID,
    USER_ID,
    WEBHOOK_ID,
    Body,
    Identifier,
    IntegerText,
    Text,
    Timestamp,
    Word,
)
from app.schemas.records import MOST_AT_ONCE, PageQuery
from providers.names import ProviderName
from store.sql.models import WebhookDelivery, WebhookEndpoint
from store.sql.queries import deliveries
from store.sql.queries.webhooks import Event
from workers.webhooks.ssrf_guard import Refused, parse

EVENTS = tuple(event.value for event in Event)
STATUSES = ("pending", "delivered", "failed")

# The default page length: a log grows without bound, so it is always paged.
USUAL_PAGE = 100

WANTED = {"description": "The events that are sent there.", "examples": [["calendar.changed"]]}
SECRET = {
    "description": "Signs deliveries by the Standard Webhooks scheme. It is shown only here.",
    "examples": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
}


class WebhookUrl(Text):
    """A URL for webhooks; only its syntax is checked here, its addresses later."""

    def __init__(self, **options: Any) -> None:
        shape = {"format": "uri", "examples": ["https://example.com/hooks/almanac"]}
        super().__init__(shortest=1, longest=2048, metadata=shape, **options)

    def parse(self, text: str) -> str:
        """The validated URL."""
        url = super().parse(text)
        try:
            parse(url, allow_private=True)
        except Refused as error:
            raise ValidationError(str(error)) from error
        return url


class WebhookBody(Body):
    """A new endpoint."""

    url = WebhookUrl(required=True)
    events = fields.List(
        Word(EVENTS),
        load_default=lambda: list(EVENTS),
        validate=validate.Length(min=1, max=len(EVENTS), error="must have {min} to {max} elements"),
        metadata={**WANTED, "description": "The events to send there; all of them without it."},
    )


class WebhookSchema(Schema):
    """An endpoint that receives events."""

    id = Identifier(WEBHOOK_ID, required=True)
    url = fields.String(required=True)
    events = fields.List(Word(EVENTS), required=True, metadata=WANTED)
    createdAt = Timestamp(required=True)
    disabledAt = Timestamp(
        required=True,
        allow_none=True,
        metadata={"description": "When deliveries to it stopped, because it answered 410."},
    )


class NewWebhookSchema(WebhookSchema):
    """An endpoint with the secret that signs its deliveries."""

    secret = fields.String(required=True, metadata=SECRET)


class WebhookDataSchema(Schema):
    """The subject of an event, by the ids of this API."""

    userId = Identifier(USER_ID, required=True)
    provider = Word(tuple(ProviderName), required=True)
    calendarId = fields.String(
        metadata={"description": "Only of `calendar.changed`. Google's main calendar is `primary`."}
    )


class WebhookEventSchema(Schema):
    """The body of a webhook."""

    type = Word(EVENTS, required=True)
    timestamp = Timestamp(
        required=True, metadata={"description": "When it happened, or first happened since the last event."}
    )
    data = fields.Nested(WebhookDataSchema, required=True)


class DeliverySchema(Schema):
    """The delivery of an event to an endpoint."""

    id = Identifier(
        DELIVERY_ID, required=True, metadata={"description": "The header `webhook-id` of every attempt."}
    )
    status = Word(
        STATUSES, required=True, metadata={"description": "`failed`: given up. `pending`: on its way."}
    )
    payload = fields.Nested(WebhookEventSchema, required=True)
    attempts = fields.Integer(required=True)
    createdAt = Timestamp(required=True)
    lastAttemptAt = Timestamp(required=True, allow_none=True)
    nextAttemptAt = Timestamp(required=True, allow_none=True)
    deliveredAt = Timestamp(required=True, allow_none=True)
    lastStatus = fields.Integer(
        required=True,
        allow_none=True,
        metadata={"description": "The status of the last response; null if there was none."},
    )
    lastError = fields.String(
        required=True,
        allow_none=True,
        metadata={"description": "Why the last attempt failed.", "examples": ["no answer in time"]},
    )


class DeliveriesQuery(PageQuery):
    """Paging of the log, which is always paged."""

    limit = IntegerText(
        least=1,
        most=MOST_AT_ONCE,
        load_default=USUAL_PAGE,
        metadata={"description": f"The longest page, 1 to {MOST_AT_ONCE}."},
    )


def webhook_view(row: WebhookEndpoint) -> dict[str, Any]:
    """An endpoint for ``WebhookSchema``."""
    return {
        "id": row.id,
        "url": row.url,
        "events": row.events,
        "createdAt": row.created_at,
        "disabledAt": row.disabled_at,
    }


def delivery_view(row: WebhookDelivery) -> dict[str, Any]:
    """A delivery for ``DeliverySchema``."""
    return {
        "id": row.id,
        "status": deliveries.status(row),
        "payload": row.payload | {"timestamp": datetime.fromisoformat(row.payload["timestamp"])},
        "attempts": row.attempts,
        "createdAt": row.created_at,
        "lastAttemptAt": row.last_attempt_at,
        "nextAttemptAt": row.next_attempt_at,
        "deliveredAt": row.delivered_at,
        "lastStatus": row.last_status,
        "lastError": row.last_error,
    }
