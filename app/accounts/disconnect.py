"""Deletes connections, and revokes their grants at the provider if no other connection uses them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError
from sqlalchemy.orm import Session

from app.accounts.ownership import CONNECTION, own_user
from app.services import services
from store.sql.models import OAuthConnection, User
from store.sql.queries import audit, channels, connection_rows, connections
from store.sql.queries.api_keys import Caller
from store.sql.queries.connections import RemovedConnection
from workers.execution import removals
from workers.jobs import Revoke, StopChannels
from workers.queues import Queue

log = logging.getLogger(__name__)

# Deleting must not fail because a provider does not respond.
REVOKE_SECONDS = 5.0


Find = Callable[[Session, int], OAuthConnection | None]
"""A query for a connection of the user with an internal id."""


def forget_default(caller: Caller, custom_id: str, provider: str, *, revoke: bool = True) -> bool:
    """Delete a user's default connection with a provider; see ``_forget``."""
    return _forget(
        caller,
        custom_id,
        lambda session, user_id: connections.find(
            session, user_id, provider, organization_id=caller.organization_id
        ),
        revoke=revoke,
    )


def forget_one(caller: Caller, custom_id: str, public_id: str, *, revoke: bool = True) -> bool:
    """Delete a user's connection with an id; see ``_forget``."""
    return _forget(
        caller,
        custom_id,
        lambda session, user_id: connections.find_one(
            session, user_id, public_id, organization_id=caller.organization_id
        ),
        revoke=revoke,
    )


def _forget(caller: Caller, custom_id: str, find: Find, *, revoke: bool) -> bool:
    """Delete a user's connection; returns whether there was one.

    The audit log names the caller. Without ``revoke`` the grant stays valid at the provider. Do not call this
    within a transaction, because it waits for a provider.

    :raise ApiError: for a user that the caller does not reach, or may not change
    """
    database = services().stores.database
    with database.writing() as session:
        found = find(session, own_user(session, caller, custom_id, otherwise=CONNECTION).id)
    if found is None:
        return False
    public_id = found.public_id
    if found.usable:
        stop_channels_of([found.id])
    with database.writing() as session:
        user = own_user(session, caller, custom_id, otherwise=CONNECTION)
        # By its id, which it keeps when it is replaced: meanwhile another connection may be the default one.
        found = connections.find_one(session, user.id, public_id, organization_id=caller.organization_id)
        removed = [] if found is None else connections.remove(session, [found.id])
        _record(session, caller, user, removed)
    clean_up(removed, revoke=revoke)
    return bool(removed)


def stop_channels(custom_id: str) -> None:
    """Close the channels of a user's connections, while their grants are still valid."""
    with services().stores.database.reading() as session:
        refs = connection_rows.of_user(session, custom_id, organization_id=None) or []
    stop_channels_of([ref.id for ref in refs if ref.alive])


def stop_channels_of_grant(grant_id: str) -> None:
    """Close the channels of a grant's delegated connections, while the grant is still valid."""
    with services().stores.database.reading() as session:
        connection_ids = channels.of_grant(session, grant_id)
    _gather([StopChannels(each) for each in connection_ids], "channels")


def stop_channels_of(connection_ids: Collection[str]) -> None:
    """Close the channels of these connections, while their grants are still valid."""
    if not connection_ids:
        return
    with services().stores.database.reading() as session:
        rows = channels.of_connections(session, connection_ids)
    _gather([StopChannels(each) for each in {row.connection_id for row in rows}], "channels")


def forget_cached(connection_ids: Sequence[str]) -> None:
    """Drop everything that is cached for removed connections, whose grants stay as they are."""
    removals.forget_cached(services().stores, connection_ids)


def forget_grant_tokens(grant_ids: Iterable[str]) -> None:
    """Drop the cached tokens of removed organization grants."""
    try:
        for each in grant_ids:
            services().stores.grant_tokens.forget(each)
    except RedisError as error:
        log.warning("tokens of removed grants stay until they expire: %s", type(error).__name__)


def remove_connections(session: Session, caller: Caller, user: User) -> list[RemovedConnection]:
    """Remove the rows of a user's connections; call ``clean_up`` after the transaction has committed."""
    removed = connections.remove_of_user(session, user.id)
    _record(session, caller, user, removed)
    return removed


def _record(session: Session, caller: Caller, user: User, removed: Iterable[RemovedConnection]) -> None:
    for each in removed:
        subject = f"{user.custom_id}/{each.provider}"
        audit.record(session, actor=caller.visible, action="deleteConnection", subject=subject)


def clean_up(removed: Sequence[RemovedConnection], *, revoke: bool = True) -> None:
    """Evict the cached data of removed connections, and revoke grants that no other connection uses."""
    stores = services().stores
    revocations = removals.evict_and_list_revocations(stores, removed, revoke=revoke)
    try:
        jobs = [Revoke(stores.revocations.put(each)) for each in revocations]
    except RedisError as error:
        log.warning("grants not revoked: %s", type(error).__name__)
        return
    _gather(jobs, "grants")


def _gather(jobs: Sequence[Revoke | StopChannels], what: str) -> None:
    """Have workers revoke grants or stop channels at the provider; failures are only logged."""
    if not jobs:
        return
    try:
        # No later request retries this: a grant that is not revoked stays valid, and an open channel sends
        # until it expires.
        replies = services().fanout.gather(
            jobs, queue=Queue.WRITES, deadline=time.monotonic() + REVOKE_SECONDS, bypass_admission=True
        )
    except (RedisError, BrokerError) as error:
        log.warning("%s not ended at the provider, not retried: %s", what, type(error).__name__)
        return
    for reply in replies:
        if reply.failed is not None:
            log.warning("%s could not be ended: %s", what, reply.failed.reason)
