"""Connections by their state: counts, ended ones, and those whose access token expires soon."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import and_, func, literal, or_, select
from sqlalchemy.orm import Session

from store.sql.models import Membership, OAuthConnection, User, UtcDateTime
from store.sql.queries.connection_refs import ALIVE, with_grant

# For connections that ended before the time was recorded: they sort behind all others.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ConnectionCounts(NamedTuple):
    """The numbers of live and ended connections of a provider."""

    alive: int = 0
    dead: int = 0


class EndedConnection(NamedTuple):
    """A connection whose grant is gone; time and reason are None when they were not recorded."""

    id: str
    user: str
    provider: str
    email: str | None
    created_at: datetime
    ended_at: datetime | None
    ended_because: str | None


def expiring(
    session: Session, *, after: datetime, before: datetime, providers: Collection[str], limit: int
) -> Sequence[OAuthConnection]:
    """Live connections with a refresh token whose access token expires between two times.

    The latest come first, so that connections whose refresh fails repeatedly do not delay the others.
    """
    query = (
        select(OAuthConnection)
        .where(
            OAuthConnection.alive,
            OAuthConnection.sealed_refresh_token.is_not(None),
            OAuthConnection.expires_at > after,
            OAuthConnection.expires_at < before,
            OAuthConnection.provider.in_(providers),
        )
        .order_by(OAuthConnection.expires_at.desc(), OAuthConnection.id)
        .limit(limit)
    )
    return session.scalars(query).all()


def counts(session: Session) -> dict[str, ConnectionCounts]:
    """The connections of each provider that has any. A delegated one is alive while its grant is, too."""
    query = with_grant(select(OAuthConnection.provider, ALIVE, func.count())).group_by(
        OAuthConnection.provider, ALIVE
    )
    found: dict[str, ConnectionCounts] = {}
    for provider, alive, count in session.execute(query):
        so_far = found.get(provider, ConnectionCounts())
        found[provider] = so_far._replace(**{"alive" if alive else "dead": count})
    return found


def dead(
    session: Session,
    *,
    organization_id: int | None = None,
    after: tuple[datetime | None, str] | None = None,
    limit: int | None = None,
) -> list[EndedConnection]:
    """Ended connections, the latest first, beginning after ``after``: ``(ended_at, id)`` of the previous one.

    ``organization_id`` limits to one organization's members. Delegated connections whose grant has ended are
    absent: the organization's grant has to be replaced, and not each of them.
    """
    query = (
        select(
            OAuthConnection.id,
            User.custom_id,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.created_at,
            OAuthConnection.ended_at,
            OAuthConnection.ended_because,
        )
        .join(User, User.id == OAuthConnection.user_id)
        .where(OAuthConnection.alive.is_(False))
        .order_by(_ENDED_AT.desc(), OAuthConnection.id)
    )
    if organization_id is not None:
        members = select(Membership.user_id).where(Membership.organization_id == organization_id)
        query = query.where(OAuthConnection.user_id.in_(members))
    if after is not None:
        ended_at, last = after
        moment = literal(ended_at or LONG_AGO, UtcDateTime())
        same = and_(moment == _ENDED_AT, OAuthConnection.id > last)
        query = query.where(or_(moment > _ENDED_AT, same))
    return [EndedConnection(*row) for row in session.execute(query.limit(limit))]


_ENDED_AT = func.coalesce(OAuthConnection.ended_at, literal(LONG_AGO, UtcDateTime()))
