"""Maps Microsoft Graph's errors to exceptions, by ``error.code`` and status, never by message.

https://learn.microsoft.com/en-us/graph/errors
"""

from __future__ import annotations

from typing import Any

from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    EventRefused,
    InvalidCalendarId,
    MailboxUnavailable,
    NotFound,
    ProviderError,
    RateLimited,
    SyncTokenExpired,
    ZoneRefused,
)
from providers.http import errors
from providers.http.calls import HttpReply
from providers.http.errors import Refusal

PROVIDER = "Microsoft 365"

BY_CODE: dict[str, Refusal] = {
    "InvalidAuthenticationToken": (AuthorizationInvalid, "no longer accepts this connection"),
    # Graph does not say whether a scope or a share is missing; scopes were checked before the call.
    "ErrorAccessDenied": (AccessDenied, "denies access"),
    "Authorization_RequestDenied": (AccessDenied, "denies access"),
    "ErrorItemNotFound": (NotFound, "does not know this calendar, or not for this account"),
    "ErrorInvalidIdMalformed": (InvalidCalendarId, "cannot read this calendar id"),
    "MailboxNotEnabledForRESTAPI": (MailboxUnavailable, "has no mailbox for this account"),
    "MailboxNotSupportedForRESTAPI": (MailboxUnavailable, "has no mailbox for this account"),
    "ErrorInvalidUser": (MailboxUnavailable, "has no mailbox for this account"),
    "ErrorNonExistentMailbox": (MailboxUnavailable, "has no mailbox for this account"),
    # https://learn.microsoft.com/en-us/graph/delta-query-overview (resource representation, synchronization
    # reset), in either spelling.
    "syncStateNotFound": (SyncTokenExpired, "no longer knows what has changed since"),
    "SyncStateNotFound": (SyncTokenExpired, "no longer knows what has changed since"),
    "resyncRequired": (SyncTokenExpired, "no longer knows what has changed since"),
    "ApplicationThrottled": (RateLimited, "asks us to slow down"),
    "TooManyRequests": (RateLimited, "asks us to slow down"),
}

# Statuses of rejected content. The error code may give the reason.
_FAULTY = frozenset({400, 413, 422})
_FAULTS = {
    "ErrorPropertyValidationFailure": "finds that a value of the event is not valid",
    "ErrorOccurrenceCrossingBoundary": "does not let an occurrence pass another of its series",
    "ErrorInvalidRecipients": "cannot invite one of the attendees",
    "RequestBodyRead": "cannot read the event like this",
}


class EventOutdated(ProviderError):
    """The event has changed since it was read."""


class DuplicateTransaction(ProviderError):
    """The transactionId was used for another event: ``event_id``, None where Graph does not say."""

    def __init__(self, message: str, *, operation: str, event_id: str | None) -> None:
        super().__init__(message, operation=operation)
        self.event_id = event_id


def error_for(reply: HttpReply) -> ProviderError:
    """The exception for an answer, or a part of a batch, that is not 2xx."""
    known = (BY_CODE[code] for code in _codes(reply.body) if code in BY_CODE)
    refusal = next(known, None) or errors.by_reply(reply)
    return errors.error(PROVIDER, refusal, operation=reply.operation, retry_after=reply.retry_after)


def write_error_for(reply: HttpReply) -> ProviderError:
    """As :func:`error_for`, for an answer to a write of an event."""
    codes = _codes(reply.body)
    if "ErrorDuplicateTransactionId" in codes:
        return _duplicate(reply)
    if reply.status == 412 or "ErrorIrresolvableConflict" in codes:
        return EventOutdated(f"{PROVIDER} has changed the event since", operation=reply.operation)
    # "TimeZoneNotSupportedException", and Exchange's "ErrorTimeZone".
    if any("timezone" in code.lower() for code in codes):
        return ZoneRefused(f"{PROVIDER} does not know the time zone of the event", operation=reply.operation)
    error = error_for(reply)
    if type(error) is not ProviderError or reply.status not in _FAULTY:
        return error
    fault = next((_FAULTS[code] for code in codes if code in _FAULTS), "refuses to write the event like this")
    return EventRefused(f"{PROVIDER} {fault}", operation=reply.operation)


def _duplicate(reply: HttpReply) -> DuplicateTransaction:
    """With status 400 or 409: https://learn.microsoft.com/en-us/graph/api/resources/event (transactionId)"""
    event_id = (reply.body or {})["error"].get("@event.existingEventId")
    return DuplicateTransaction(
        f"{PROVIDER} has created another event for this request",
        operation=reply.operation,
        event_id=event_id if isinstance(event_id, str) else None,
    )


def _codes(body: Any) -> list[str]:
    """``error.code`` and the inner errors' codes; Graph's clients should use the innermost known one."""
    codes: list[str] = []
    error = body.get("error") if isinstance(body, dict) else None
    while isinstance(error, dict):
        if isinstance(code := error.get("code"), str):
            codes.append(code)
        error = error.get("innerError") or error.get("innererror")
    return codes
