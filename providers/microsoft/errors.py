"""What Microsoft Graph's refusals mean to us: by ``error.code`` and status, never by message.

https://learn.microsoft.com/en-us/graph/errors
"""

from __future__ import annotations

from typing import Any

from providers import refusals
from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    InvalidCalendarId,
    MailboxUnavailable,
    NotFound,
    ProviderError,
    RateLimited,
)
from providers.http import Reply
from providers.refusals import Refusal

PROVIDER = "Microsoft 365"

BY_CODE: dict[str, Refusal] = {
    "InvalidAuthenticationToken": (AuthorizationInvalid, "no longer accepts this connection"),
    # Graph does not say whether a scope or a share is missing; the scopes were compared before the call.
    "ErrorAccessDenied": (AccessDenied, "denies access"),
    "Authorization_RequestDenied": (AccessDenied, "denies access"),
    "ErrorItemNotFound": (NotFound, "does not know this calendar, or not for this account"),
    "ErrorInvalidIdMalformed": (InvalidCalendarId, "cannot read this calendar id"),
    "MailboxNotEnabledForRESTAPI": (MailboxUnavailable, "has no mailbox for this account"),
    "MailboxNotSupportedForRESTAPI": (MailboxUnavailable, "has no mailbox for this account"),
    "ErrorInvalidUser": (MailboxUnavailable, "has no mailbox for this account"),
    "ErrorNonExistentMailbox": (MailboxUnavailable, "has no mailbox for this account"),
    "ApplicationThrottled": (RateLimited, "asks us to slow down"),
    "TooManyRequests": (RateLimited, "asks us to slow down"),
}


def error_for(reply: Reply) -> ProviderError:
    """The exception for an answer, or a part of a batch, that is not 2xx."""
    known = (BY_CODE[code] for code in _codes(reply.body) if code in BY_CODE)
    refusal = next(known, None) or refusals.by_status(reply.status)
    return refusals.error(PROVIDER, refusal, operation=reply.operation, retry_after=reply.retry_after)


def _codes(body: Any) -> list[str]:
    """``error.code`` and those of the inner errors; clients are told to walk down to one they know."""
    codes: list[str] = []
    error = body.get("error") if isinstance(body, dict) else None
    while isinstance(error, dict):
        if isinstance(code := error.get("code"), str):
            codes.append(code)
        error = error.get("innerError") or error.get("innererror")
    return codes
