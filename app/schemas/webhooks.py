"""Schemas of webhook endpoints and their delivery log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from app.schemas.event_answers import EventSchema
from app.schemas.fields import (
    CONNECTION_ID,
    DELIVERY_ID,
    HOLD_ID,
    SLUG,
    USER_ID,
    WEBHOOK_ID,
    Body,
    Identifier,
    IntegerText,
    JsonBoolean,
    JsonInteger,
    Text,
    Timestamp,
    Word,
    about,
    given,
)
from app.schemas.parameters import MAX_AT_ONCE, PageQuery
from providers import registry
from providers.http.ssrf_guard import ForbiddenUrl, parse
from store.sql.models import WebhookDelivery, WebhookEndpoint
from store.sql.queries import deliveries
from store.sql.queries.webhook_events import TEST_EVENT, WebhookEvent

EVENTS = tuple(event.value for event in WebhookEvent)
# The events of an endpoint that does not choose: those of the first version. Strict clients know no others.
USUAL_EVENTS = (
    WebhookEvent.CALENDAR_CHANGED,
    WebhookEvent.CONNECTION_EXPIRED,
    WebhookEvent.CONNECTION_RESTORED,
)
# The types of the events that an endpoint may receive.
SENT_EVENTS = (*EVENTS, TEST_EVENT)
RELEASES = ("deleted", "used")
STATUSES = ("pending", "delivered", "failed")

# The default page length: a log grows without bound, so it is always paged.
USUAL_PAGE = 100

# How long a replaced secret signs too: by default a day, at most a week.
USUAL_OVERLAP = 86_400
MAX_OVERLAP = 604_800

URL = about("Where the events are sent: `https`, at a public address.", "https://example.com/hooks/almanac")
HELD = {"format": "date-time", "examples": ["2026-12-03T09:00:00.000Z"]}
WANTED = about("The events that are sent there.", ["calendar.changed"])
CONTENT = about(
    "Whether `event.created` and `event.updated` carry the event. It is then also in the log of deliveries, "
    "for 30 days.",
    False,
)
SECRET = about(
    "Signs deliveries by the Standard Webhooks scheme. It is shown only here.",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
)


class WebhookUrl(Text):
    """A URL for webhooks; only its syntax is checked here, its addresses later."""

    def __init__(self, *, metadata: Mapping[str, Any] | None = None, **options: Any) -> None:
        shape = {**URL, "format": "uri", **(metadata or {})}
        super().__init__(shortest=1, longest=2048, metadata=shape, **options)

    def parse(self, text: str) -> str:
        """The validated URL."""
        url = super().parse(text)
        try:
            parse(url, allow_private=True)
        except ForbiddenUrl as error:
            raise ValidationError(str(error)) from error
        return url


class WebhookBody(Body):
    """A new endpoint."""

    url = WebhookUrl(required=True)
    events = fields.List(
        Word(EVENTS),
        load_default=lambda: [each.value for each in USUAL_EVENTS],
        validate=validate.Length(min=1, max=len(EVENTS), error="must have {min} to {max} elements"),
        metadata={
            **WANTED,
            "description": "The events to send there. Without it those of calendars and "
            "connections; events of grants, holds and single events are sent to endpoints that name them.",
        },
    )

    content = JsonBoolean(load_default=False, metadata=CONTENT)


class WebhookChangeBody(Body):
    """A change of an endpoint; absent fields stay unchanged."""

    url = WebhookUrl(
        metadata=about("The new address, also of pending deliveries. It enables a disabled endpoint.")
    )
    events = fields.List(
        Word(EVENTS),
        validate=validate.Length(min=1, max=len(EVENTS), error="must have {min} to {max} elements"),
        metadata={**WANTED, "description": "The events to send there from now on."},
    )
    content = JsonBoolean(metadata=CONTENT)
    paused = JsonBoolean(
        metadata=about("True: events wait until it is false again. False enables a disabled endpoint too.")
    )


class RotationBody(Body):
    """How a secret is replaced."""

    overlapSeconds = JsonInteger(
        least=0,
        most=MAX_OVERLAP,
        load_default=USUAL_OVERLAP,
        metadata=about(
            "For how long deliveries carry a signature by the old secret too. 0: the old "
            "secret ends at once, as it should when it may be known to others."
        ),
    )


class WebhookSchema(Schema):
    """An endpoint that receives events."""

    id = Identifier(WEBHOOK_ID, required=True, metadata=about("The id of the endpoint."))
    url = fields.String(required=True, metadata=URL)
    events = fields.List(Word(EVENTS), required=True, metadata=WANTED)
    createdAt = given(Timestamp, "When the endpoint was registered.")
    disabledAt = Timestamp(
        metadata=about("When deliveries to it stopped, because it answered 410; absent if they did not.")
    )
    paused = given(fields.Boolean, "Whether events wait instead of being sent.")
    content = fields.Boolean(metadata=CONTENT)


class NewWebhookSchema(WebhookSchema):
    """An endpoint with the secret that signs its deliveries."""

    secret = fields.String(required=True, metadata=SECRET)


class RotatedWebhookSchema(NewWebhookSchema):
    """An endpoint with its new secret."""

    previousSecretUntil = given(
        Timestamp, "Until when the old secret signs too; null if it does not.", null=True
    )


class SentEvent(fields.Nested):
    """An event as a delivery carries it: its times are texts already."""

    def __init__(self, **options: Any) -> None:
        super().__init__(EventSchema, **options)

    def _serialize(  # type: ignore[override]
        self, nested_obj: Any, attr: str | None, obj: Any, **kwargs: Any
    ) -> Any:
        return nested_obj


class WebhookDataSchema(Schema):
    """The subject of an event, by the ids of this API."""

    userId = Identifier(USER_ID, metadata=about("The user; only of events of a calendar or a connection."))
    organization = Identifier(
        SLUG, metadata=about("Only of events of a grant: the organization that has it.")
    )
    provider = Word(
        registry.names(),
        metadata=about("The provider of the account; absent from `webhook.test` and from events of a hold."),
    )
    connectionId = Identifier(
        CONNECTION_ID, metadata=about("The connection; only of events of a calendar or a connection.")
    )
    webhookId = Identifier(WEBHOOK_ID, metadata=about("Only of `webhook.test`: the endpoint that is tested."))
    calendarId = fields.String(
        metadata=about(
            "Only of `calendar.changed` and `event.*`: the id of the calendar, as in answers.",
            "ada@example.com",
        )
    )
    eventId = fields.String(
        metadata=about("Only of `event.*`: the id of the event, or of the series.", "5k1q8e7t2b0c4d6f9a3h")
    )
    seriesId = fields.String(
        metadata=about(
            "Only of `event.*`: the id of the series of an occurrence. The same as `eventId` if the "
            "series has changed as a whole, or in several occurrences.",
            "5k1q8e7t2b0c4d6f9a3h",
        )
    )
    event = SentEvent(
        metadata={
            "description": "Only of `event.created` and `event.updated`, to endpoints with `content`: the "
            "event; of a series, its first occurrence that has changed."
        },
    )
    holdId = Identifier(HOLD_ID, metadata=about("Only of events of a hold."))
    users = fields.List(
        fields.String(),
        metadata=about(
            "Only of events of a hold: its users, or those of the endpoint's organization.", ["ada"]
        ),
    )
    start = fields.String(metadata=HELD | {"description": "Only of events of a hold: its start."})
    end = fields.String(metadata=HELD | {"description": "Only of events of a hold: its end."})
    expiresAt = fields.String(metadata=HELD | {"description": "Only of events of a hold: when it expires."})
    reason = Word(
        RELEASES, metadata=about("Only of `hold.released`: it was deleted, or an event was created by it.")
    )


class WebhookEventSchema(Schema):
    """The body of a webhook."""

    type = Word(
        SENT_EVENTS,
        required=True,
        metadata=about("The kind of event; `webhook.test` is sent on request only."),
    )
    timestamp = given(Timestamp, "When it happened, or first happened since the last event.")
    data = fields.Nested(WebhookDataSchema, required=True)


class DeliverySchema(Schema):
    """The delivery of an event to an endpoint."""

    id = Identifier(DELIVERY_ID, required=True, metadata=about("The header `webhook-id` of every attempt."))
    status = Word(STATUSES, required=True, metadata=about("`failed`: given up. `pending`: on its way."))
    payload = fields.Nested(WebhookEventSchema, required=True)
    attempts = given(fields.Integer, "How many attempts were made.", 1)
    createdAt = given(Timestamp, "When the event was recorded.")
    lastAttemptAt = given(Timestamp, "When the last attempt was made; null before the first.", null=True)
    nextAttemptAt = given(Timestamp, "When the next attempt is due; null if there is none.", null=True)
    deliveredAt = given(Timestamp, "When the endpoint answered with a 2xx; null until then.", null=True)
    lastStatus = given(fields.Integer, "The status of the last response; null if there was none.", null=True)
    lastError = given(fields.String, "Why the last attempt failed.", "no answer in time", null=True)


class DeliveriesQuery(PageQuery):
    """Paging of the log, which is always paged."""

    limit = IntegerText(
        least=1,
        most=MAX_AT_ONCE,
        load_default=USUAL_PAGE,
        metadata=about(f"The longest page, 1 to {MAX_AT_ONCE}."),
    )


def webhook_view(row: WebhookEndpoint) -> dict[str, Any]:
    """An endpoint for ``WebhookSchema``."""
    return {
        "id": row.id,
        "url": row.url,
        "events": row.events,
        "createdAt": row.created_at,
        **({} if row.disabled_at is None else {"disabledAt": row.disabled_at}),
        "paused": row.paused_at is not None,
        "content": row.content,
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
