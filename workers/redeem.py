"""Trades an authorization code for a connection: the second half of a consent."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from providers.base import Failed
from providers.errors import GrantGone, NotFound, ProviderError, Reason
from providers.names import ProviderName
from providers.oauth import Consented
from store.authorizations import Authorization, Redemption
from store.crypto import Undecipherable
from store.queries import audit, connections, users
from store.queries.connections import Tokens
from workers.jobs import Redeem, Reply
from workers.registration import minding_the_registration
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# Of a code, never of a connection: nothing is connected yet.
CODE_REFUSED = Failed(Reason.AUTHORIZATION_INVALID, "The code is no longer valid; start again")


def redeem(runtime: Runtime, job: Redeem, deadline: float) -> Reply:
    """Redeem the code that waits under the job's id, and store the connection.

    A code that the provider refuses, or that another has taken, is ``CODE_REFUSED``.
    """
    waiting = runtime.stores.authorizations.receive(job.authorization)
    if waiting is None:
        return Reply(failed=CODE_REFUSED)
    try:
        consented, email = _ask_the_provider(runtime, waiting, deadline)
        replaced = _store(runtime, waiting.authorization, consented, email)
    except GrantGone:
        return Reply(failed=CODE_REFUSED)
    except ProviderError as error:
        log.info("a code could not be redeemed: %s", error.reason, extra={"why": error.message})
        return Reply(failed=Failed.because(error))
    if replaced is not None:
        _forget_cached(runtime, replaced)
    return Reply()


def _ask_the_provider(runtime: Runtime, waiting: Redemption, deadline: float) -> tuple[Consented, str | None]:
    """The grant that the code is worth, and the address of the account."""
    asked = waiting.authorization
    provider = ProviderName(asked.provider)
    # The link was made with the registration of that moment, which may have been saved just before.
    oauth = runtime.registered.current()[provider].oauth
    with minding_the_registration(provider):
        consented = oauth.redeem(waiting.code, asked.verifier, asked.redirect_uri, deadline=deadline)
    return consented, oauth.email(consented, deadline=deadline)


def _store(runtime: Runtime, asked: Authorization, consented: Consented, email: str | None) -> str | None:
    """Store the connection; returns the id of the one that it replaces.

    :raise NotFound: when the user is no longer there, or no longer whom the key that asked could reach
    """
    grant = consented.grant
    stores = runtime.stores
    with stores.database.writing() as session:
        user = users.by_number(session, asked.user_id, within=asked.within, to_change=True)
        if user is None:
            raise NotFound("User not found")
        refresh = grant.refresh_token.reveal if grant.refresh_token else None
        if refresh is None and asked.offline:
            refresh = _refresh_token_so_far(runtime, session, asked, email)
        _, replaced = connections.replace(
            session,
            stores.keyring,
            user_id=asked.user_id,
            provider=asked.provider,
            email=email,
            scope=asked.scopes if grant.scope is None else grant.scope,
            tokens=Tokens(grant.access_token.reveal, refresh, grant.expires_at),
        )
        subject = f"{user.custom_id}/{asked.provider}"
        audit.record(session, actor=asked.asked_by, action="connect", subject=subject)
    return replaced


def _refresh_token_so_far(
    runtime: Runtime, session: Session, asked: Authorization, email: str | None
) -> str | None:
    """The refresh token of the same account, which stays good when Google sends no other."""
    row = connections.find(session, asked.user_id, asked.provider)
    if row is None or not row.alive or not email or (row.email or "").lower() != email.lower():
        return None
    try:
        return connections.open_credentials(row, runtime.stores.keyring).tokens.refresh_token
    except Undecipherable:
        log.warning("a stored refresh token cannot be opened", extra={"connection": row.id})
        return None


def _forget_cached(runtime: Runtime, connection_id: str) -> None:
    """Drop what was read with a connection that is gone; its id is never used again."""
    try:
        runtime.stores.busy.forget([connection_id])
        runtime.stores.calendar_lists.forget([connection_id])
    except RedisError as error:
        log.warning("cached data waits for its time to live: %s", type(error).__name__)
