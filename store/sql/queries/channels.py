"""Notification channels of providers: their secrets, calendars and lifetimes."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, exists, or_, select, update
from sqlalchemy.orm import Session, aliased

from store.cache.busy_cache import CalendarKey
from store.security.crypto import digest
from store.sql.models import Channel, OAuthConnection, now

# A channel is renewed when a quarter of its life is left.
RENEWED_FOR_THE_LAST = 0.25
# A watch ends this much before its channel, or an eighth of the channel's life if that is less: clocks may
# differ, and notifications may be late.
MARGIN = timedelta(seconds=60)
MARGIN_OF_LIFE = 0.125
# A channel that was not opened or confirmed in this time is deleted.
UNCONFIRMED_LIFETIME = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ChannelWithAccount:
    """A channel that may report changes of a calendar, and the account of its connection."""

    channel: str
    provider: str
    key: CalendarKey
    secret_digest: str = field(repr=False)
    email: str | None = field(default=None, repr=False)
    account_id: str | None = None
    main_calendar_id: str | None = field(default=None, repr=False)
    mailbox: str | None = field(default=None, repr=False)

    def has_secret(self, secret: str) -> bool:
        """Whether a secret is that of the channel, compared in constant time."""
        return hmac.compare_digest(self.secret_digest, digest(secret))


def calendar_of(row: Channel) -> CalendarKey:
    """The calendar that a channel watches."""
    return CalendarKey(row.connection_id, row.calendar)


def watches_for(row: Channel) -> float:
    """The seconds for which a channel still watches; 0 or less if it does not, or not yet."""
    if row.confirmed_at is None or row.watch_until is None:
        return 0.0
    return (row.watch_until - now()).total_seconds()


def add(session: Session, channel: str, key: CalendarKey, secret: str) -> bool:
    """Store a channel that is about to be opened; False when its connection was deleted."""
    # The lock makes a concurrent deletion of the connection wait for this transaction.
    found = select(OAuthConnection.id).where(OAuthConnection.id == key.connection)
    if session.scalars(found.with_for_update(key_share=True, read=True)).one_or_none() is None:
        return False
    session.add(
        Channel(id=channel, connection_id=key.connection, calendar=key.calendar, secret_digest=digest(secret))
    )
    return True


def opened(
    session: Session, channel: str, *, provider_id: str, resource: str, expires_at: datetime
) -> Channel | None:
    """Store the provider's answer to the opening; None when the channel was deleted."""
    return _set(
        session,
        channel,
        provider_id=provider_id,
        resource=resource,
        **_life(expires_at),
    )


def confirmed(session: Session, channel: str) -> Channel | None:
    """Record that a notification arrived; None when that is recorded already, or the channel was deleted."""
    first = update(Channel).where(Channel.id == channel, Channel.confirmed_at.is_(None))
    return session.scalars(first.values(confirmed_at=now()).returning(Channel)).one_or_none()


def extended(session: Session, channel: str, expires_at: datetime) -> Channel | None:
    """Store a channel's new expiry; None when the channel was deleted."""
    return _set(session, channel, **_life(expires_at))


def make_due(session: Session, channel: str) -> None:
    """Make a channel due for renewal in the next round of upkeep."""
    opened = update(Channel).where(Channel.id == channel, Channel.expires_at.is_not(None))
    session.execute(opened.values(renew_at=now()))


def postpone(session: Session, channel: str, seconds: float) -> None:
    """Postpone a channel's renewal by ``seconds``."""
    session.execute(
        update(Channel).where(Channel.id == channel).values(renew_at=now() + timedelta(seconds=seconds))
    )


def with_accounts(session: Session, ids: Collection[str]) -> dict[str, ChannelWithAccount]:
    """The channels with these ids that exist, each with its account, by id."""
    query = (
        select(
            Channel,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.account_id,
            OAuthConnection.main_calendar_id,
            OAuthConnection.mailbox,
        )
        .join(OAuthConnection, OAuthConnection.id == Channel.connection_id)
        .where(Channel.id.in_(ids))
    )
    return {
        row.id: ChannelWithAccount(row.id, provider, calendar_of(row), row.secret_digest, *identity)
        for row, provider, *identity in session.execute(query)
    }


def of_connections(session: Session, connection_ids: Collection[str]) -> Sequence[Channel]:
    """The channels of some connections."""
    return session.scalars(select(Channel).where(Channel.connection_id.in_(connection_ids))).all()


def of_grant(session: Session, grant_id: str) -> Sequence[str]:
    """The delegated connections of an organization's grant that have channels."""
    query = select(Channel.connection_id).join(OAuthConnection, OAuthConnection.id == Channel.connection_id)
    return session.scalars(query.where(OAuthConnection.grant_id == grant_id).distinct()).all()


def due(session: Session, *, limit: int) -> Sequence[Channel]:
    """Channels that watch and are due for renewal, the most urgent first."""
    query = select(Channel).where(Channel.renew_at <= now(), Channel.confirmed_at.is_not(None))
    return session.scalars(query.order_by(Channel.expires_at, Channel.id).limit(limit)).all()


def successor(session: Session, row: Channel) -> Channel | None:
    """The newest channel of the same calendar, if it was opened after this one."""
    query = select(Channel).where(
        Channel.connection_id == row.connection_id,
        Channel.calendar == row.calendar,
        Channel.created_at > row.created_at,
    )
    return session.scalars(query.order_by(Channel.created_at.desc()).limit(1)).one_or_none()


def existing_ids(session: Session, ids: Collection[str]) -> set[str]:
    """The ids of these channels that exist."""
    return set(session.scalars(select(Channel.id).where(Channel.id.in_(ids)))) if ids else set()


def watching_channels(session: Session, *, after: str, limit: int) -> Sequence[Channel]:
    """Channels that watch, the newest of each calendar, ordered by id, beginning after ``after``."""
    newer = aliased(Channel)
    replaced = exists().where(
        newer.connection_id == Channel.connection_id,
        newer.calendar == Channel.calendar,
        newer.created_at > Channel.created_at,
        *_watches(newer),
    )
    query = select(Channel).where(Channel.id > after, *_watches(Channel), ~replaced)
    return session.scalars(query.order_by(Channel.id).limit(limit)).all()


def _watches(channel: type[Channel]) -> tuple[ColumnElement[bool], ...]:
    return channel.confirmed_at.is_not(None), channel.watch_until > now()


def expired_or_unconfirmed(session: Session, *, limit: int) -> Sequence[Channel]:
    """Channels that have expired, or were never opened or confirmed."""
    long_ago = now() - UNCONFIRMED_LIFETIME
    never = or_(Channel.confirmed_at.is_(None), Channel.expires_at.is_(None))
    query = select(Channel).where(or_(Channel.expires_at <= now(), never & (Channel.created_at <= long_ago)))
    return session.scalars(query.limit(limit)).all()


def remove(session: Session, ids: Collection[str]) -> None:
    """Delete channels. Their notifications are refused from now on, or as soon as caches have expired."""
    session.execute(delete(Channel).where(Channel.id.in_(ids)))


def _life(expires_at: datetime) -> dict[str, datetime]:
    """The columns with the times of a channel's renewal and expiry."""
    left = expires_at - now()
    return {
        "renew_at": expires_at - left * RENEWED_FOR_THE_LAST,
        "watch_until": expires_at - min(MARGIN, left * MARGIN_OF_LIFE),
        "expires_at": expires_at,
    }


def _set(session: Session, channel: str, **values: object) -> Channel | None:
    statement = update(Channel).where(Channel.id == channel).values(**values).returning(Channel)
    return session.scalars(statement, execution_options={"populate_existing": True}).one_or_none()
