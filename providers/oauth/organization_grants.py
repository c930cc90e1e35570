"""What access tokens from organization grants have in common at all providers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from providers.base import IssuedTokens
from providers.errors import ProviderError, RateLimited, Unavailable
from providers.http.calls import FORM, Call, ErrorReader, HttpReply
from providers.http.send import send
from providers.oauth.client import token_grant
from providers.oauth.token_errors import LOOP, LOOP_PAUSE, PASSING, error_codes

OPERATION = "oauth.token.delegated"


def request(
    title: str, url: str, form: Mapping[str, str], read_error: ErrorReader, deadline: float
) -> IssuedTokens:
    """The tokens that a token endpoint issues for a form."""
    call = Call(title, OPERATION, "POST", url, urlencode(form).encode(), content_type=FORM)
    return token_grant(title, send(call, read_error, deadline=deadline), OPERATION)


def passing(reply: HttpReply, word: object) -> ProviderError | None:
    """The error when the same request may succeed later, whatever the grant is."""
    call = {"operation": reply.operation}
    if LOOP in error_codes(reply):
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=LOOP_PAUSE)
    if reply.status == 429:
        return RateLimited(f"{reply.provider} asks us to slow down", **call, retry_after=reply.retry_after)
    if word in PASSING or reply.status >= 500 or reply.status == 408 or not isinstance(word, str):
        return Unavailable(
            f"{reply.provider} is not available just now", **call, retry_after=reply.retry_after
        )
    return None


def refused(reply: HttpReply) -> ProviderError:
    """The error for an answer that is not understood."""
    return ProviderError(f"{reply.provider} refused the request", operation=reply.operation)
