"""HTTP error statuses of all providers; each provider checks its own error codes first."""

from __future__ import annotations

from providers.errors import (
    AccessDenied,
    AuthorizationInvalid,
    NotFound,
    ProviderError,
    RateLimited,
    Unavailable,
)
from providers.http.calls import HttpReply

# The exception class, and the end of a sentence that begins with the provider's name.
Refusal = tuple[type[ProviderError], str]

_BY_STATUS: dict[int, Refusal] = {
    401: (AuthorizationInvalid, "no longer accepts this connection"),
    403: (AccessDenied, "denies access"),
    404: (NotFound, "does not know this calendar, or not for this account"),
    408: (Unavailable, "did not answer in time"),
    410: (NotFound, "says that this has been deleted"),
    429: (RateLimited, "asks us to slow down"),
}


def by_status(status: int) -> Refusal:
    """The meaning of a status that is not 2xx, without a known error code."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500:
        return Unavailable, f"is not available just now, status {status}"
    return ProviderError, f"refused the request, status {status}"


def by_reply(reply: HttpReply) -> Refusal:
    """The meaning of an answer without a known error code.

    A 403 that is no JSON comes from a front end, which says nothing about the account's rights.
    """
    if reply.status == 403 and reply.body is None:
        return Unavailable, "refused the request before it was read"
    return by_status(reply.status)


def error(
    provider: str, refusal: Refusal, *, operation: str, retry_after: float | None = None
) -> ProviderError:
    """The exception, with a message for people."""
    kind, words = refusal
    message = f"{provider} {words}"
    if issubclass(kind, Unavailable):
        return kind(message, operation=operation, retry_after=retry_after)
    return kind(message, operation=operation)
