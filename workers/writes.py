"""What a worker changes at a provider."""

from __future__ import annotations

from providers.base import Failed, ProviderName, Token
from providers.errors import ProviderError
from store.queries.connections import Credentials
from workers.jobs import Job, Reply, Revoke
from workers.runtime import Runtime


def perform(runtime: Runtime, job: Job, credentials: Credentials, deadline: float) -> Reply:
    """Do one job of the writes queue. An expected failure is in the reply, never raised."""
    if not isinstance(job, Revoke):
        raise TypeError(f"{job!r} is not a write")
    tokens = credentials.tokens
    try:
        # Either token ends the whole grant; the refresh token is the one that is still good.
        runtime.providers[ProviderName(credentials.provider)].oauth.revoke(
            Token(tokens.refresh_token or tokens.access_token), deadline=deadline
        )
    except ProviderError as error:
        return Reply(failed=Failed.because(error))
    return Reply()
