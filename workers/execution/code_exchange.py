"""Exchanges an authorization code for tokens and stores the connection."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from providers import registry
from providers.base import Failed, IssuedTokens
from providers.definition import required
from providers.errors import GrantGone, ProviderError, Reason
from providers.oauth.identity import AccountIdentity
from store.coordination.locks import LockTimeout
from store.security.crypto import Undecipherable
from store.security.one_time_secrets import PendingConsent, PendingExchange
from store.sql.models import OAuthConnection, now
from store.sql.queries import audit, connection_rows, connections, user_invitations
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.connections import ProviderAccount, RemovedConnection, ReplacedConnection
from store.sql.queries.user_invitations import ConsentRefusal
from workers.execution.consent_gaps import Permission, missing_permissions
from workers.execution.registrations import note_registration
from workers.execution.removals import evict_and_list_revocations
from workers.execution.revocation import BUSY, revoke_unused
from workers.jobs import ExchangeCode, Refused, Reply
from workers.runtime import Runtime

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Exchanged:
    """The result of an exchange: tokens, granted scopes, the account, and the moment before the call."""

    began: float
    grant: IssuedTokens
    scopes: tuple[str, ...]
    account: AccountIdentity


def exchange(runtime: Runtime, job: ExchangeCode, deadline: float) -> Reply:
    """Exchange the code that is stored under ``job.secret_name`` for tokens, and store the connection.

    A code that the provider refuses, or that another worker has taken, is ``CODE_REFUSED``.
    """
    pending = runtime.stores.code_exchanges.take(job.secret_name)
    if pending is None:
        return _refused(Refused(ConsentRefusal.CODE_REFUSED))
    consent = pending.authorization
    try:
        exchanged = _exchange(runtime, pending, deadline)
        refused = _refusal(consent, exchanged) or _store(runtime, consent, exchanged, deadline)
    except GrantGone:
        return _refused(Refused(ConsentRefusal.CODE_REFUSED))
    except LockTimeout:
        return Reply(failed=BUSY)
    except ProviderError as error:
        log.info("authorization code not exchanged: %s", error.reason, extra={"why": error.message})
        return Reply(failed=Failed.from_error(error))
    return Reply() if refused is None else _refused(refused)


def _refused(refused: Refused) -> Reply:
    # There is no connection whose authorization is invalid: the web tier answers by ``refused``.
    return Reply(
        failed=Failed(Reason.AUTHORIZATION_INVALID, "The consent was refused"),
        refused=refused,
    )


def _exchange(runtime: Runtime, pending: PendingExchange, deadline: float) -> _Exchanged:
    """Exchange the code at the provider, and read whose account it is for."""
    consent = pending.authorization
    provider = consent.provider
    # The link was made with the registration of that moment, which may have been saved just before.
    oauth = required(runtime.registrations.current(provider).oauth, registry.title(provider))
    began = runtime.stores.account_locks.now()
    with note_registration(runtime.stores, oauth):
        consented = oauth.redeem(pending.code, consent.verifier, consent.redirect_uri, deadline=deadline)
    scopes = consent.scopes if consented.grant.scope is None else consented.grant.scope
    account = oauth.account(consented, deadline=deadline)
    return _Exchanged(began, consented.grant, tuple(scopes), account)


def _refusal(consent: PendingConsent, exchanged: _Exchanged) -> Refused | None:
    """Why a grant is not stored, whatever the user has connected so far; None when it may be."""
    if consent.expected_email is not None and not exchanged.account.is_verified_as(consent.expected_email):
        verified = exchanged.account.verified
        return Refused(ConsentRefusal.OTHER_ACCOUNT if verified else ConsentRefusal.UNNAMED_ACCOUNT)
    scopes = registry.scopes(consent.provider)
    if not scopes.reaches_calendars(exchanged.scopes):
        return Refused(ConsentRefusal.NO_CALENDARS)
    # A client may request less on purpose, such as only the list of calendars.
    if scopes.shows_times(consent.scopes) and not scopes.shows_times(exchanged.scopes):
        return Refused(ConsentRefusal.NO_CALENDARS)
    return None


def _store(
    runtime: Runtime, consent: PendingConsent, exchanged: _Exchanged, deadline: float
) -> Refused | None:
    """Store the connection, and clean up after the one that it replaces; returns why it was refused."""
    stores, account = runtime.stores, exchanged.account
    opened = ProviderAccount(consent.provider, account.id, account.email)
    with stores.account_locks.exclusive(opened, deadline=deadline):
        if stores.account_locks.revoked_since(opened, exchanged.began):
            return Refused(ConsentRefusal.REVOKED_MEANWHILE)
        with stores.database.writing() as session:
            user = user_invitations.check_consent(session, consent)
            if isinstance(user, ConsentRefusal):
                return Refused(user)
            older = connections.to_replace(session, user.id, consent.provider, consent.account, opened)
            if refusal := _other_account(consent, exchanged, older):
                return Refused(refusal)
            if missing := _missing(consent, exchanged, older):
                return Refused(ConsentRefusal.INCOMPLETE, missing)
            replaced = _replace(runtime, session, consent, exchanged)
            subject = f"{user.custom_id}/{consent.provider}"
            audit.record(session, actor=consent.asked_by, action="connect", subject=subject)
            _use_invitation(session, consent, exchanged)
    _revoke_replaced(runtime, replaced, deadline)
    return None


def _other_account(
    consent: PendingConsent, exchanged: _Exchanged, older: OAuthConnection | None
) -> ConsentRefusal | None:
    """Why a consent for the connection ``older`` is refused: only its account may be connected again."""
    if consent.account in list(ReplacedConnection):
        return None
    if older is None:
        return ConsentRefusal.CONNECTION_GONE
    account = exchanged.account
    if older.account_id is not None and account.id is not None:
        return None if older.account_id == account.id else ConsentRefusal.OTHER_ACCOUNT
    if any(account.is_verified_as(each) for each in connections.addresses(older)):
        return None
    return ConsentRefusal.OTHER_ACCOUNT if account.verified else ConsentRefusal.UNNAMED_ACCOUNT


def _use_invitation(session: Session, consent: PendingConsent, exchanged: _Exchanged) -> None:
    """Use up the invitation of a consent, unless a requested permission is missing: it can be repeated."""
    permitted = registry.scopes(consent.provider).permitted
    complete = not missing_permissions(permitted(consent.scopes), permitted(exchanged.scopes))
    if consent.invitation_id is not None and complete:
        user_invitations.use(session, consent.invitation_id)


def _missing(
    consent: PendingConsent, exchanged: _Exchanged, row: OAuthConnection | None
) -> tuple[Permission, ...]:
    """The requested access that a working connection has and this grant lacks.

    It is empty if the grant may replace the connection, if there is one.
    """
    if row is None or not row.usable:
        return ()
    if row.sealed_refresh_token is None and row.expires_at is not None and row.expires_at <= now():
        return ()
    permitted = registry.scopes(consent.provider).permitted
    wanted = permitted(consent.scopes) & permitted(row.scope)
    return missing_permissions(wanted, permitted(exchanged.scopes))


def _replace(
    runtime: Runtime, session: Session, consent: PendingConsent, exchanged: _Exchanged
) -> list[RemovedConnection]:
    """Put the connection in the place of older ones; returns those."""
    grant, account = exchanged.grant, exchanged.account
    refresh, obtained = grant.refresh_token.reveal if grant.refresh_token else None, True
    if refresh is None and consent.offline:
        refresh, obtained = _refresh_token_so_far(runtime, session, consent, account)
    _, replaced = connections.replace(
        session,
        runtime.stores.keyring,
        user_id=consent.user_id,
        provider=consent.provider,
        email=account.email,
        scope=exchanged.scopes,
        tokens=Tokens(grant.access_token.reveal, refresh, grant.expires_at),
        account_id=account.id,
        obtained=obtained,
        account=consent.account,
    )
    return replaced


def _revoke_replaced(runtime: Runtime, replaced: Sequence[RemovedConnection], deadline: float) -> None:
    """Clean up after replaced connections. A failure here does not fail the stored consent."""
    for revocation in evict_and_list_revocations(runtime.stores, replaced):
        # Half of the remaining time, so that the reply does not miss the deadline.
        now = time.monotonic()
        try:
            revoke_unused(runtime, revocation, now + (deadline - now) / 2)
        except (LockTimeout, ProviderError, RedisError, SQLAlchemyError) as error:
            log.warning("grant of a replaced connection not revoked: %s", type(error).__name__)


def _refresh_token_so_far(
    runtime: Runtime, session: Session, consent: PendingConsent, account: AccountIdentity
) -> tuple[str | None, bool]:
    """The refresh token of the same account, which stays valid when Google sends no other.

    Also whether the service obtained it.
    """
    rows = connections.with_provider(session, consent.user_id, consent.provider)
    row = next((row for row in rows if _is_living_one(row, account)), None)
    if row is None:
        return None, True
    try:
        tokens = connection_rows.open_credentials(row, runtime.stores.keyring).tokens
    except Undecipherable:
        log.warning("a stored refresh token cannot be decrypted", extra={"connection": row.id})
        return None, True
    kept = None if tokens is None else tokens.refresh_token
    return kept, kept is None or row.obtained


def _is_living_one(row: OAuthConnection, account: AccountIdentity) -> bool:
    """Whether a connection is a living one of the account, as far as both names of the account are known."""
    if not row.alive or row.grant_id is not None or not account.email or not row.email:
        return False
    if row.account_id is not None and account.id is not None and row.account_id != account.id:
        return False
    return row.email.lower() == account.email.lower()
