"""The section ``webhooks`` of the OpenAPI document: the requests that this service sends to endpoints."""

from __future__ import annotations

from typing import Any

from providers import registry
from store.sql.queries.webhook_events import OF_EVENTS, TEST_EVENT, WebhookEvent

# The summary and the description of each event.
TEXTS: dict[str, tuple[str, str]] = {
    WebhookEvent.CALENDAR_CHANGED.value: (
        "A calendar has changed",
        "Read the calendar again: its events or its busy periods may differ. Changes that follow shortly "
        "after each other are one event.",
    ),
    WebhookEvent.EVENT_CREATED.value: (
        "An event was created",
        "In a watched calendar, by any client, from a day ago to a year ahead. What happens to an event is "
        "sent in its order, and once.",
    ),
    WebhookEvent.EVENT_UPDATED.value: (
        "An event was changed",
        "In a watched calendar. If several occurrences of a series have changed, it is one event, and "
        "`eventId` is that of the series.",
    ),
    WebhookEvent.EVENT_DELETED.value: (
        "An event was deleted",
        "From a watched calendar, or was moved out of the time that is followed. If all occurrences of a "
        "series are gone, it is one event.",
    ),
    WebhookEvent.CONNECTION_EXPIRED.value: (
        "A connection has expired",
        "The provider says that the grant is gone. The person has to connect the account again.",
    ),
    WebhookEvent.CONNECTION_RESTORED.value: (
        "A connection works again",
        "An account that had expired is connected again.",
    ),
    WebhookEvent.GRANT_EXPIRED.value: (
        "The grant of an organization has expired",
        "The provider refuses the grant: its members cannot be read until the administrator acts and the "
        "grant is stored again. It is one event, whatever the number of members.",
    ),
    WebhookEvent.GRANT_RESTORED.value: (
        "The grant of an organization works again",
        "A grant that had expired is stored again.",
    ),
    WebhookEvent.HOLD_CREATED.value: (
        "Time is held",
        "The time of the users counts as busy until the hold expires, is deleted or used.",
    ),
    WebhookEvent.HOLD_EXPIRED.value: (
        "A hold has expired",
        "Its time is free again, since `expiresAt`. The event may come a minute later.",
    ),
    WebhookEvent.HOLD_RELEASED.value: (
        "A hold was released",
        "It was deleted, or an event was created by it; `reason` says which.",
    ),
    TEST_EVENT: (
        "A test of the endpoint",
        "Sent on request only, by `POST /v1/webhooks/{webhookId}/test`. Its data name no user.",
    ),
}
SIGNED = (
    "The request is signed by the [Standard Webhooks](https://www.standardwebhooks.com) scheme with the "
    "secret of the endpoint. Answer within five seconds, and do longer work afterwards."
)

_ID = "msg_019a5e0b7c3d1f0c7e5d9a3b4c2e8d6f"
_SUBJECT = {
    "userId": "ada",
    "provider": registry.names()[0],
    "connectionId": "5f0c3e9a7b1d4e2f8a6c9d0b1e3f5a7c",
}
_HELD = {
    "holdId": "hold_5d9a3b4c2e8d6f7a901f0c7e",
    "users": ["ada"],
    "start": "2026-12-03T09:00:00.000Z",
    "end": "2026-12-03T09:30:00.000Z",
    "expiresAt": "2026-11-20T09:05:00.000Z",
}

PARAMETERS = [
    {"name": name, "in": "header", "required": True, "description": description, "schema": schema}
    for name, description, schema in (
        (
            "webhook-id",
            "The id of the delivery, the same for every attempt. An event may arrive more than once.",
            {"type": "string", "examples": [_ID]},
        ),
        (
            "webhook-timestamp",
            "When this attempt was made, in seconds since 1970.",
            {"type": "string", "examples": ["1795160400"]},
        ),
        (
            "webhook-signature",
            "The signature of id, timestamp and body.",
            {"type": "string", "examples": ["v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="]},
        ),
    )
]
RESPONSES = {
    "2XX": {"description": "The event was received."},
    "410": {"description": "The endpoint is disabled, and pending deliveries to it are given up."},
    "default": {"description": "The delivery is tried again, up to ten times within two days."},
}


def webhooks() -> dict[str, Any]:
    """The section: an entry for each event."""
    return {event: {"post": _operation(event)} for event in TEXTS}


def _operation(event: str) -> dict[str, Any]:
    summary, description = TEXTS[event]
    this = {"properties": {"type": {"const": event, "description": "The event."}}}
    schema = {"allOf": [{"$ref": "#/components/schemas/WebhookEvent"}, this]}
    first, *others = event.split(".")
    return {
        "operationId": first + "".join(map(str.capitalize, others)),
        "tags": ["webhooks"],
        "summary": summary,
        "description": f"{description} {SIGNED}",
        "security": [],
        "parameters": PARAMETERS,
        "requestBody": {
            "required": True,
            "description": "The event.",
            "content": {"application/json": {"schema": schema, "example": _example(event)}},
        },
        "responses": RESPONSES,
    }


def _example(event: str) -> dict[str, Any]:
    subject: dict[str, Any] = _SUBJECT | (
        {"calendarId": "ada@example.com"} if event == WebhookEvent.CALENDAR_CHANGED else {}
    )
    if event in OF_EVENTS:
        subject = _SUBJECT | {"calendarId": "ada@example.com", "eventId": "5k1q8e7t2b0c4d6f9a3h"}
    if event in (WebhookEvent.GRANT_EXPIRED, WebhookEvent.GRANT_RESTORED):
        subject = {"organization": "acme", "provider": registry.names()[0]}
    if event.startswith("hold."):
        subject = _HELD | ({"reason": "used"} if event == WebhookEvent.HOLD_RELEASED else {})
    if event == TEST_EVENT:
        subject = {"webhookId": "wh_1f0c7e5d9a3b4c2e8d6f7a90"}
    return {"type": event, "timestamp": "2026-11-20T09:00:00.000Z", "data": subject}
