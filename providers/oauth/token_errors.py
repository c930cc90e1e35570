"""Errors of a token endpoint (RFC 6749, 5.2), the same for all providers."""

from __future__ import annotations

from providers.errors import (
    AuthorizationInvalid,
    GrantGone,
    Misconfigured,
    ProviderError,
    RateLimited,
    Unavailable,
    connection_ended,
)
from providers.http.calls import HttpReply

# The user has to consent again.
GONE = frozenset({"invalid_grant", "interaction_required", "consent_required", "login_required"})
# The operator's fault: the connection remains valid.
MISCONFIGURED = frozenset({"invalid_client", "unauthorized_client"})
PASSING = frozenset({"temporarily_unavailable", "internal_failure", "server_error"})

# https://learn.microsoft.com/en-us/entra/identity-platform/reference-error-codes#aadsts-error-codes
# AADSTS50196: "the server terminated an operation because it encountered a client request loop".
LOOP = 50196
# Seconds to wait before the account is called again after this error.
LOOP_PAUSE = 60.0


def error_for(reply: HttpReply) -> ProviderError:
    """The exception for an error answer, by its ``error`` word, then by its status."""
    word = (reply.body or {}).get("error")
    if not isinstance(word, str):
        word = ""
    call = {"operation": reply.operation}
    if word in GONE and LOOP in error_codes(reply):
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=LOOP_PAUSE)
    if word in GONE:
        return GrantGone(connection_ended(reply.provider), **call)
    if word == "invalid_token":
        return AuthorizationInvalid(f"{reply.provider} does not know this token", **call)
    if word in MISCONFIGURED:
        return Misconfigured(f"{reply.provider} refuses the registration of this installation", **call)
    if reply.status == 429:
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=reply.retry_after)
    if word in PASSING or reply.status >= 500 or reply.status == 408 or not word:
        return Unavailable(
            f"{reply.provider} is not available just now", **call, retry_after=reply.retry_after
        )
    return ProviderError(f"{reply.provider} refused the request", **call)


def error_codes(reply: HttpReply) -> list[object]:
    """Microsoft's numeric error codes (AADSTS in its messages)."""
    codes = (reply.body or {}).get("error_codes")
    return codes if isinstance(codes, list) else []
