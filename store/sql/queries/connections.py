"""OAuth connections: storing, renewing, marking as ended and removing them; their numbers and states."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Delete,
    Select,
    and_,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased

from store.cache.cache_tags import has_global_ids
from store.security.crypto import Keyring
from store.sql.database import UNCACHED, changed_rows
from store.sql.models import Membership, OAuthConnection, User, UtcDateTime, now
from store.sql.queries import webhook_events
from store.sql.queries.connection_rows import (
    ALIVE,
    BY_PROVIDER,
    Tokens,
    associated_data,
    known_to,
    token_columns,
    with_grant,
)
from store.sql.queries.webhook_events import WebhookEvent

# Length of the column for the reason why a grant ended.
BECAUSE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """The account of a grant: the provider's id and the e-mail address, as far as known."""

    provider: str
    id: str | None
    email: str | None


class RemovedConnection(NamedTuple):
    """The data of a deleted connection that is needed to revoke its grant."""

    id: str
    user_id: int
    provider: str
    email: str | None
    account_id: str | None
    alive: bool
    obtained: bool
    is_default: bool
    sealed_access_token: bytes | None
    sealed_refresh_token: bytes | None

    @property
    def account(self) -> ProviderAccount:
        """The account of the connection."""
        return ProviderAccount(self.provider, self.account_id, self.email)


class ReplacedConnection(StrEnum):
    """Which connection of the provider new tokens replace; any other text is the id of one.

    ``DEFAULT``: the default one. ``ADD``: the one of the same account, or none.
    """

    DEFAULT = "default"
    ADD = "add"


def find(
    session: Session, user_id: int, provider: str, *, organization_id: int | None = None
) -> OAuthConnection | None:
    """A user's default connection with a provider, if keys of ``organization_id`` may know of it."""
    query = _of_user(user_id, organization_id).where(OAuthConnection.provider == provider)
    return session.scalars(query.limit(1)).first()


def find_one(
    session: Session, user_id: int, public_id: str, *, organization_id: int | None = None
) -> OAuthConnection | None:
    """A user's connection with this id, if keys of ``organization_id`` may know of it."""
    query = _of_user(user_id, organization_id).where(_PUBLIC_ID == public_id)  # noqa: SIM300
    return session.scalars(query.limit(1)).first()


def newest(session: Session, user_id: int, provider: str) -> OAuthConnection | None:
    """A user's connection with one provider that was made last."""
    rows = with_provider(session, user_id, provider)
    return max(rows, key=lambda row: row.created_at, default=None)


def to_replace(
    session: Session, user_id: int, provider: str, account: str, new: ProviderAccount
) -> OAuthConnection | None:
    """The connection that tokens of the account ``new`` replace; None if there is none."""
    rows = with_provider(session, user_id, provider)
    if account == ReplacedConnection.DEFAULT:
        return rows[0] if rows else None
    if account == ReplacedConnection.ADD:
        return next((row for row in rows if row.grant_id is None and is_same_account(row, new)), None)
    return next((row for row in rows if row.public_id == account), None)


def is_same_account(row: OAuthConnection, new: ProviderAccount) -> bool | None:
    """Whether a connection is with this account: by the ids, or by the addresses if an id is unknown.

    None if neither is known.
    """
    if row.account_id is not None and new.id is not None:
        return row.account_id == new.id
    known = addresses(row)
    if new.email is None or not known:
        return None
    return new.email.lower() in known


def addresses(row: OAuthConnection) -> set[str]:
    """The known addresses of the account of a connection, in lower case."""
    known = [row.email, row.mailbox]
    if has_global_ids(row.provider):
        # The id of the main calendar is its address.
        known.append(row.main_calendar_id)
    return {each.lower() for each in known if each}


def _of_user(user_id: int, organization_id: int | None) -> Select[OAuthConnection]:
    query = select(OAuthConnection).where(OAuthConnection.user_id == user_id, known_to(organization_id))
    return query.order_by(*BY_PROVIDER)


def with_provider(session: Session, user_id: int, provider: str) -> Sequence[OAuthConnection]:
    """A user's connections with one provider, the default one first."""
    return session.scalars(_of_user(user_id, None).where(OAuthConnection.provider == provider)).all()


def revocable_token(removed: RemovedConnection, keyring: Keyring) -> str:
    """The token that revokes the grant of a removed connection.

    :raise Undecipherable: when its key is no longer on the ring
    """
    # Either token revokes the grant; a refresh token is still valid when the access token has expired.
    if removed.sealed_refresh_token is not None:
        return keyring.decrypt(removed.sealed_refresh_token, associated_data(removed.id, "refresh"))
    if removed.sealed_access_token is None:
        raise ValueError("a delegated connection has no token of its own")
    return keyring.decrypt(removed.sealed_access_token, associated_data(removed.id, "access"))


def replace(
    session: Session,
    keyring: Keyring,
    *,
    user_id: int,
    provider: str,
    email: str | None,
    scope: Sequence[str],
    tokens: Tokens,
    account_id: str | None = None,
    obtained: bool = False,
    account: str = ReplacedConnection.DEFAULT,
    label: str | None = None,
) -> tuple[OAuthConnection, list[RemovedConnection]]:
    """Store a connection; returns it, and the connections that it replaces.

    It replaces the one that ``account`` names (see ``ReplacedConnection``), and any other one of the same
    account. It has the id and the label of the one that is named by its id, else of the one of the same
    account, unless a ``label`` is given.

    ``obtained``: the service got the grant by its own consent flow. A connection that replaces a dead one is
    recorded as restored.
    """
    # A concurrent replacement waits here, then replaces this one.
    session.execute(select(User.id).where(User.id == user_id).with_for_update())
    opened = ProviderAccount(provider, account_id, email)
    rows = with_provider(session, user_id, provider)
    target = to_replace(session, user_id, provider, account, opened)
    same = [row for row in rows if row.grant_id is None and is_same_account(row, opened)]
    if target is not None and account not in list(ReplacedConnection):
        # The caller knows that it is the same account, perhaps at another address.
        same = [target, *same]
    elif not same and target is not None and is_same_account(target, opened) is not False:
        # Nothing says that it is another account.
        same = [target]
    replaced = {row.id: row for row in [target, *same] if row is not None}
    kept = [row for row in rows if row.id not in replaced]
    older = _removed(session, delete(OAuthConnection).where(OAuthConnection.id.in_(replaced)))
    new_id = secrets.token_hex(16)
    row = OAuthConnection(
        id=new_id,
        first_id=same[0].public_id if same else None,
        label=label if label is not None or not same else same[0].label,
        is_default=not kept or rows[0].id in replaced,
        user_id=user_id,
        provider=provider,
        email=email,
        scope=list(scope),
        account_id=account_id,
        obtained=obtained,
        alive=True,
        **token_columns(new_id, keyring, tokens),
    )
    session.add(row)
    session.flush()
    if any(not each.alive for each in older):
        webhook_events.record(session, WebhookEvent.CONNECTION_RESTORED, new_id)
    return row, older


def make_default(session: Session, row: OAuthConnection) -> None:
    """Make a connection the default one of its user and provider. The caller has locked the user."""
    others = update(OAuthConnection).where(
        OAuthConnection.user_id == row.user_id,
        OAuthConnection.provider == row.provider,
        OAuthConnection.id != row.id,
        OAuthConnection.is_default,
    )
    session.execute(others.values(is_default=False))
    row.is_default = True
    session.flush()


def promote(session: Session, removed: Iterable[tuple[int, str]]) -> None:
    """Make the oldest connection the default one, for users and providers whose default one was removed."""
    if not (gone := set(removed)):
        return
    same = and_(_OTHER.user_id == OAuthConnection.user_id, _OTHER.provider == OAuthConnection.provider)
    oldest = select(_OTHER.id).where(same).order_by(_OTHER.created_at, _OTHER.id).limit(1)
    has_default = select(_OTHER.id).where(same, _OTHER.is_default)
    # One list of users for each provider: a statement has a limited number of parameters.
    for provider in {provider for _, provider in gone}:
        users = [user_id for user_id, name in gone if name == provider]
        session.execute(
            update(OAuthConnection)
            .where(
                OAuthConnection.provider == provider,
                OAuthConnection.user_id.in_(users),
                OAuthConnection.id == oldest.correlate(OAuthConnection).scalar_subquery(),
                ~has_default.correlate(OAuthConnection).exists(),
            )
            .values(is_default=True)
            .execution_options(synchronize_session=False)
        )


def renew(session: Session, keyring: Keyring, connection_id: str, tokens: Tokens) -> None:
    """Store refreshed tokens and mark the connection alive; a deleted connection stays deleted."""
    connection = update(OAuthConnection).where(OAuthConnection.id == connection_id)
    # Tokens are not cached in processes, and they change often.
    session.execute(
        connection.values(**token_columns(connection_id, keyring, tokens)).execution_options(
            **{UNCACHED: True}
        )
    )
    alive = {"alive": True, "ended_at": None, "ended_because": None}
    if changed_rows(session, connection.where(OAuthConnection.alive.is_(False)).values(alive)):
        webhook_events.record(session, WebhookEvent.CONNECTION_RESTORED, connection_id)


def identify(
    session: Session,
    connection_id: str,
    *,
    main_calendar_id: str,
    mailbox: str | None,
    time_zone: str | None = None,
    invalidate: bool = True,
) -> None:
    """Store the provider's id of the main calendar of a connection, its owner's address and its zone.

    Without ``invalidate``, other processes use their cached row of the connection until it expires.
    """
    values = {"main_calendar_id": main_calendar_id, "mailbox": mailbox, "time_zone": time_zone}
    statement = update(OAuthConnection).where(OAuthConnection.id == connection_id).values(values)
    session.execute(statement.execution_options(**{UNCACHED: not invalidate}))


def main_calendars(session: Session, ids: Collection[str]) -> dict[str, str]:
    """The ids of the main calendars of these connections, as far as known."""
    query = select(OAuthConnection.id, OAuthConnection.main_calendar_id).where(
        OAuthConnection.id.in_(ids), OAuthConnection.main_calendar_id.is_not(None)
    )
    return {row.id: row.main_calendar_id for row in session.execute(query) if row.main_calendar_id}


def mark_dead(session: Session, connection_id: str, because: str) -> None:
    """Mark a connection whose grant is gone. The event is recorded once, until the connection is alive again.

    A delegated connection is not marked: it ends with the grant of its organization.

    ``because`` is shown to people: a sentence without tokens or addresses, truncated to 300 characters.
    """
    living = update(OAuthConnection).where(
        OAuthConnection.id == connection_id, OAuthConnection.alive, OAuthConnection.grant_id.is_(None)
    )
    dead = {"alive": False, "ended_at": now(), "ended_because": because[:BECAUSE_LENGTH]}
    if changed_rows(session, living.values(dead)):
        webhook_events.record(session, WebhookEvent.CONNECTION_EXPIRED, connection_id)


def remove(session: Session, ids: Collection[str]) -> list[RemovedConnection]:
    """Delete connections and their tokens; returns the data to revoke their grants.

    The oldest other connection of the provider takes the place of a default one.
    """
    removed = remove_replaced(session, ids)
    promote(session, ((each.user_id, each.provider) for each in removed if each.is_default))
    return removed


def remove_replaced(session: Session, ids: Collection[str]) -> list[RemovedConnection]:
    """Delete connections as ``remove`` does, of which the caller replaces each default one."""
    return _removed(session, delete(OAuthConnection).where(OAuthConnection.id.in_(ids)))


def remove_of_user(session: Session, user_id: int) -> list[RemovedConnection]:
    """Delete all connections of a user; returns the data to revoke their grants."""
    return _removed(session, delete(OAuthConnection).where(OAuthConnection.user_id == user_id))


def _removed(session: Session, gone: Delete) -> list[RemovedConnection]:
    columns = (getattr(OAuthConnection, name) for name in RemovedConnection._fields)
    return [RemovedConnection(*row) for row in session.execute(gone.returning(*columns))]


def uses_account(session: Session, account: ProviderAccount, *, or_user: int) -> bool:
    """Whether a live connection uses the grant of a provider account. Delegated connections use another one.

    Accounts are compared by id, or by address if one id is unknown. A connection of ``or_user`` with neither
    counts as using it.
    """
    email, calendar = func.lower(OAuthConnection.email), func.lower(OAuthConnection.main_calendar_id)
    nameless = and_(OAuthConnection.account_id.is_(None), OAuthConnection.email.is_(None))
    same: list[ColumnElement[bool]] = [and_(OAuthConnection.user_id == or_user, nameless)]
    if account.id is not None:
        same.append(OAuthConnection.account_id == account.id)
    if account.email is not None:
        # The id of the main calendar of a Google account is its address.
        by_address = or_(email == account.email.lower(), calendar == account.email.lower())
        unknown = OAuthConnection.account_id.is_(None)
        same.append(by_address if account.id is None else and_(unknown, by_address))
    query = select(OAuthConnection.id).where(
        OAuthConnection.provider == account.provider,
        OAuthConnection.alive,
        OAuthConnection.grant_id.is_(None),
        or_(*same),
    )
    return session.scalars(query.limit(1)).first() is not None


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


def living(session: Session) -> Sequence[str]:
    """The ids of all living connections. A delegated one is alive while its grant is, too."""
    return session.scalars(with_grant(select(OAuthConnection.id)).where(ALIVE)).all()


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


_OTHER = aliased(OAuthConnection)
_PUBLIC_ID = func.coalesce(OAuthConnection.first_id, OAuthConnection.id)

_ENDED_AT = func.coalesce(OAuthConnection.ended_at, literal(LONG_AGO, UtcDateTime()))
