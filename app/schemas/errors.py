"""Schemas of error bodies, and of lists of failed calendars and users."""

from __future__ import annotations

from marshmallow import Schema, fields

from app.schemas.error_codes import Code
from app.schemas.fields import Timestamp, Word, about, given, list_of
from providers import registry
from providers.errors import Reason
from store.coordination.shares import Quota

REASON = about("Why it could not be read; the set is closed.", enum=[str(r) for r in Reason])
MESSAGE = about(
    "The same for people: it names no token, address or internal.",
    f"{registry.title(registry.names()[0])} says that this connection has ended",
)

CONNECTION_ID = about("The id of the connection.", "5f0c3e9a7b1d4e2f8a6c9d0b1e3f5a7c")

CODE = about(
    "What went wrong; the set is closed, and a code is never renamed.", enum=[str(code) for code in Code]
)

# By status, as in the OpenAPI document.
STATUS_DESCRIPTIONS: dict[int | str, str] = {
    400: "The request cannot be understood; `error` names the field.",
    401: "The API key is missing or not valid; or the provider rejected the account's tokens.",
    403: "The API key does not allow this; or the provider denies access, or granted scopes do not suffice.",
    404: "The resource does not exist, or this API key does not reach it.",
    409: "The identifier is taken, or a limit is reached; or the first request with this `Idempotency-Key` "
    "is still being processed.",
    410: "A provider no longer knows what has changed since the `cursor`: begin again without it.",
    412: "What is written no longer has the etag in `If-Match`: another client has changed it.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not `application/json`.",
    422: "The `Idempotency-Key` was used with another request; or the provider wrote an event and returned "
    "one that cannot be read.",
    429: "The API key has used up its requests of this minute, or its organization its share; or the "
    "provider limits requests. `retryAfter` is the number of seconds to wait, if it is known.",
    502: "The provider could not be reached, or gave an unreadable answer.",
    503: "The service is temporarily unavailable.",
    "default": "Any other error.",
}

# Requests over these are refused. Webhooks wait for their turn.
REFUSED_QUOTAS = tuple(each.value for each in Quota if each is not Quota.WEBHOOK_TURNS)


class ErrorSchema(Schema):
    """The body of every error response."""

    data = given(fields.Raw, "Always null.", type="null")
    error = given(fields.String, "One sentence that names what is wrong.", "start must be before end")
    reason = fields.String(metadata={**REASON, "description": "Why the provider failed; the set is closed."})
    code = fields.String(required=True, metadata=CODE)
    param = fields.String(
        metadata=about(
            "With `validationFailed` and `rangeTooLarge`: the path of the parameter or field.",
            "slotDuration",
            "schedules.0.start",
        )
    )
    operation = fields.String(metadata=about("Insufficient scope or access denied: the operation."))
    validScopes = fields.List(fields.String(), metadata=about("Scopes of which any suffices."))
    quota = fields.String(
        metadata=about(
            "With `quotaExceeded`: what the organization uses as much of as it may.",
            enum=list(REFUSED_QUOTAS),
        )
    )
    retryAfter = fields.Integer(
        metadata=about("Seconds to wait before the request is repeated, as in `Retry-After`.")
    )
    conflicts = fields.List(
        fields.Nested(lambda: ConflictSchema()),
        metadata=about("With `slotTaken`: the parts of the time that are taken."),
    )
    failedUsers = fields.List(
        fields.Nested(lambda: FailedUserSchema()), metadata=about("Holds: the users who could not be read.")
    )
    metaId = fields.String(metadata=about("Unified events: what to repeat the creation with."))
    failedCalendars = fields.List(
        fields.Nested(lambda: FailedCalendarSchema()),
        metadata=about(
            "The calendars that could not be read or written. Unified events: the accounts that failed."
        ),
    )


class ConflictSchema(Schema):
    """A part of the time that is taken, for one user. It does not say by which event."""

    userId = given(fields.String, "The id of the user.", "ada")
    start = given(Timestamp, "Where it begins, padding included.")
    end = given(Timestamp, "Where it ends, padding included.")
    calendars = fields.List(
        fields.Nested(lambda: BusyCalendarSchema()),
        metadata=about(
            "The calendars that are busy then; only where the request or the stored availability names those "
            "of the user, and absent where the time is held."
        ),
    )
    reason = fields.String(
        metadata=about(
            "`outsideWindow` or `tooSoon`, where the hours or the notice of the stored availability are the "
            "reason.",
            "outsideWindow",
        )
    )


class BusyCalendarSchema(Schema):
    """A calendar that is busy."""

    connectionId = given(fields.String, "The id of the connection.", "5b0a3c9d1e7f4a2b8c6d0e1f2a3b4c5d")
    calendarId = given(fields.String, "The id of the calendar.", "ada@example.com")


class FailedCalendarSchema(Schema):
    """A calendar that could not be read."""

    calendarId = given(
        fields.String,
        "The id at the provider. An account whose calendars are not known is named by its main calendar.",
        "ada@example.com",
    )
    provider = Word(registry.names(), required=True, metadata=about("The provider of the account."))
    connectionId = fields.String(required=True, metadata=CONNECTION_ID)
    code = fields.String(required=True, metadata=CODE)
    reason = fields.String(required=True, metadata=REASON)
    message = fields.String(required=True, metadata=MESSAGE)


class FailedUserSchema(Schema):
    """A member with at least one calendar that could not be read."""

    customId = given(fields.String, "The id of the user.", "ada")
    userId = given(fields.String, "The same as `customId`.", "ada")
    code = fields.String(required=True, metadata=CODE)
    reason = fields.String(required=True, metadata=REASON)
    message = fields.String(required=True, metadata=MESSAGE)
    failedCalendars = list_of(FailedCalendarSchema, about("Empty when nothing of this member could be read."))
