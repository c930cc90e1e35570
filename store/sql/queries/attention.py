"""Problems that an operator resolves: users, grants, keys, webhooks, in a constant number of statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, String, and_, case, cast, exists, false, func, or_, select
from sqlalchemy.orm import Session, subqueryload

from store.sql.models import (
    ApiKey,
    Membership,
    OAuthConnection,
    OrganizationGrant,
    User,
    WebhookDelivery,
    WebhookEndpoint,
    now,
)

# An access without refresh token is reported this long before it expires, an API key that long.
ACCESS_NOTICE = timedelta(days=7)
KEY_NOTICE = timedelta(days=14)

# The scopes of connections that reach no calendar, as stored, by provider.
ScopesWithoutCalendars = Mapping[str, Collection[str]]


class UserKind(StrEnum):
    """What may be wrong with a user's connections."""

    ENDED = "ended"
    NO_CALENDARS = "no-calendars"
    EXPIRING = "expiring"
    NEVER = "unconnected"


class UserCounts(NamedTuple):
    """How many users of each kind there are, cannot be booked, are of any kind, and in all."""

    ended: int
    no_calendars: int
    expiring: int
    unbookable: int
    any: int
    never: int
    total: int

    def of(self, kind: UserKind) -> int:
        """The number of users of a kind."""
        return int(getattr(self, kind.name.lower()))


class OtherCounts(NamedTuple):
    """How many ended grants, keys about to expire and failing webhooks there are."""

    grants: int
    keys: int
    webhooks: int


class FailingWebhook(NamedTuple):
    """An endpoint that is disabled, or whose last attempt failed."""

    id: str
    url: str
    disabled_at: datetime | None
    attempted_at: datetime | None
    status: int | None
    error: str | None


class ScopeText(NamedTuple):
    """Scopes as they are stored, and how many living connections have them."""

    provider: str
    scope: list[str]
    text: str
    connections: int


def scope_texts(session: Session) -> list[ScopeText]:
    """The different scopes of living connections. There are few, however many connections there are."""
    stored = cast(OAuthConnection.scope, String)
    query = (
        select(OAuthConnection.provider, func.min(OAuthConnection.id), stored, func.count())
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)
        .where(_usable())
        .group_by(OAuthConnection.provider, stored)
    )
    found = list(session.execute(query))
    # The column's own type parses the text.
    examples = select(OAuthConnection.id, OAuthConnection.scope).where(
        OAuthConnection.id.in_([example for _, example, _, _ in found])
    )
    scopes = {row.id: row.scope for row in session.execute(examples)}
    return [
        ScopeText(provider, scopes.get(example, []), text, count) for provider, example, text, count in found
    ]


def has_problem(kind: UserKind, scopes_without_calendars: ScopesWithoutCalendars) -> ColumnElement[bool]:
    """The condition that a user is of a kind."""
    if kind is UserKind.NEVER:
        return ~exists().where(OAuthConnection.user_id == User.id)
    return exists().where(OAuthConnection.user_id == User.id, _conditions(scopes_without_calendars)[kind])


def of_any_kind(
    scopes_without_calendars: ScopesWithoutCalendars, failed: Collection[str]
) -> ColumnElement[bool]:
    """The condition that anything is wrong with a user. ``failed`` is as for ``cannot_be_booked``."""
    conditions = _conditions(scopes_without_calendars).values()
    wrong = or_(*conditions, OAuthConnection.id.in_(failed))
    return or_(
        exists().where(OAuthConnection.user_id == User.id, wrong),
        has_problem(UserKind.NEVER, scopes_without_calendars),
    )


def cannot_be_booked(failed: Collection[str]) -> ColumnElement[bool]:
    """The condition that an account of a user has ended, or could not be read at the last attempt.

    ``failed`` has the ids of the connections whose last read failed.
    """
    return exists().where(OAuthConnection.user_id == User.id, _unbookable(failed))


def unbookable_members(
    session: Session, failed: Collection[str], organization_ids: Collection[int]
) -> dict[int, int]:
    """How many members of each organization cannot be booked; those without any are left out."""
    query = (
        select(Membership.organization_id, func.count(Membership.user_id.distinct()))
        .join(OAuthConnection, OAuthConnection.user_id == Membership.user_id)
        .where(Membership.organization_id.in_(organization_ids), _unbookable(failed))
        .group_by(Membership.organization_id)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def living(session: Session, connection_ids: Collection[str]) -> set[str]:
    """Those of some connections that have not ended, nor has their organization's grant."""
    query = select(OAuthConnection.id).where(OAuthConnection.id.in_(connection_ids), ~_ended())
    return set(session.scalars(query))


def can_be_helped_by_invitation(scopes_without_calendars: ScopesWithoutCalendars) -> ColumnElement[bool]:
    """The condition that a consent of their own helps a user.

    No account of the user is connected, or one that was connected by consent fails. A consent does not help
    if an organization's grant has ended, because the grant is entered again for all its members.
    """
    by_consent = and_(
        OAuthConnection.grant_id.is_(None), or_(*_conditions(scopes_without_calendars).values())
    )
    return or_(
        has_problem(UserKind.NEVER, scopes_without_calendars),
        exists().where(OAuthConnection.user_id == User.id, by_consent),
    )


def any_to_invite(
    session: Session, condition: ColumnElement[bool], scopes_without_calendars: ScopesWithoutCalendars
) -> bool:
    """Whether a consent of their own helps any user who meets a condition."""
    found = select(User.id).where(condition, can_be_helped_by_invitation(scopes_without_calendars)).limit(1)
    return session.scalar(found) is not None


def expiring() -> ColumnElement[bool]:
    """The condition that a connection cannot be refreshed, and expires soon or has expired."""
    return and_(
        OAuthConnection.grant_id.is_(None),
        OAuthConnection.sealed_refresh_token.is_(None),
        OAuthConnection.expires_at <= now() + ACCESS_NOTICE,
    )


def user_counts(
    session: Session,
    scopes_without_calendars: ScopesWithoutCalendars,
    failed: Collection[str],
    conditions_of_users: Collection[ColumnElement[bool]] = (),
) -> UserCounts:
    """The numbers of users that need attention, in one pass over the connections.

    ``failed`` is as for ``cannot_be_booked``. Users count who meet all conditions of ``conditions_of_users``.
    """

    def flag(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.max(case((condition, 1), else_=0))

    conditions = _conditions(scopes_without_calendars)
    kinds = {kind.name: flag(each).label(kind.name) for kind, each in conditions.items()}
    kinds["UNBOOKABLE"] = flag(_unbookable(failed)).label("UNBOOKABLE")
    wrong = flag(or_(*conditions.values(), OAuthConnection.id.in_(failed))).label("wrong")
    query = select(*kinds.values(), wrong).group_by(OAuthConnection.user_id)
    if conditions_of_users:
        query = query.where(OAuthConnection.user_id.in_(select(User.id).where(*conditions_of_users)))
    connected = query.subquery()
    every = select(func.count()).select_from(User).where(*conditions_of_users).scalar_subquery()
    row = session.execute(
        select(
            *(func.coalesce(func.sum(connected.c[name]), 0) for name in kinds),
            func.coalesce(func.sum(connected.c.wrong), 0),
            every - func.count(),
            every,
        ).select_from(connected)
    ).one()
    *found, any_kind, never, total = map(int, row)
    return UserCounts._make([*found, any_kind + never, never, total])


def other_counts(session: Session) -> OtherCounts:
    """The numbers of everything else that needs attention, in one statement."""
    grants = _count(select(OrganizationGrant.id).where(OrganizationGrant.alive.is_(False)))
    keys = _count(select(ApiKey.id).where(_expiring_key()))
    webhooks = _count(_failing().with_only_columns(WebhookEndpoint.id))
    return OtherCounts._make(session.execute(select(grants, keys, webhooks)).one())


def users(
    session: Session, kind: UserKind, scopes_without_calendars: ScopesWithoutCalendars, *, limit: int
) -> Sequence[User]:
    """The first users of a kind by identifier, with their connections."""
    query = (
        select(User)
        .where(has_problem(kind, scopes_without_calendars))
        .options(subqueryload(User.connections))
    )
    return session.scalars(query.order_by(User.custom_id).limit(limit)).all()


def keys(session: Session, *, limit: int) -> Sequence[ApiKey]:
    """The API keys in force that expire soon, the next first."""
    query = select(ApiKey).where(_expiring_key()).order_by(ApiKey.expires_at, ApiKey.id)
    return session.scalars(query.limit(limit)).all()


def webhooks(session: Session, *, limit: int | None = None) -> list[FailingWebhook]:
    """The endpoints that are disabled or fail, by URL."""
    query = _failing().order_by(WebhookEndpoint.url, WebhookEndpoint.id).limit(limit)
    return [FailingWebhook(*row) for row in session.execute(query)]


def _usable() -> ColumnElement[bool]:
    """Whether a connection is alive, and its organization's grant if it has one. Needs a join with it."""
    return and_(OAuthConnection.alive, func.coalesce(OrganizationGrant.alive, OAuthConnection.alive))


def _conditions(scopes_without_calendars: ScopesWithoutCalendars) -> dict[UserKind, ColumnElement[bool]]:
    """The problems of a connection as conditions without a join, so that each user appears once."""
    ended = _ended()
    return {
        UserKind.ENDED: ended,
        UserKind.NO_CALENDARS: and_(~ended, _reaches_nothing(scopes_without_calendars)),
        UserKind.EXPIRING: and_(~ended, expiring()),
    }


def _ended() -> ColumnElement[bool]:
    """Whether a connection has ended, or the organization's grant by which it is read."""
    grant_ended = select(OrganizationGrant.id).where(OrganizationGrant.alive.is_(False))
    by_ended_grant = and_(OAuthConnection.grant_id.is_not(None), OAuthConnection.grant_id.in_(grant_ended))
    return or_(OAuthConnection.alive.is_(False), by_ended_grant)


def _unbookable(failed: Collection[str]) -> ColumnElement[bool]:
    return or_(_ended(), OAuthConnection.id.in_(failed))


def _reaches_nothing(scopes_without_calendars: ScopesWithoutCalendars) -> ColumnElement[bool]:
    stored = cast(OAuthConnection.scope, String)
    parts = [
        and_(OAuthConnection.provider == provider, stored.in_(list(texts)))
        for provider, texts in scopes_without_calendars.items()
        if texts
    ]
    return or_(*parts) if parts else false()


def _expiring_key() -> ColumnElement[bool]:
    moment = now()
    return and_(
        ApiKey.revoked_at.is_(None), ApiKey.expires_at > moment, ApiKey.expires_at <= moment + KEY_NOTICE
    )


def _failing() -> Select[str, str, datetime | None, datetime | None, int | None, str | None]:
    """The endpoints whose last finished attempt failed, unless they are paused; and the disabled ones."""
    finished = or_(WebhookDelivery.delivered_at.is_not(None), WebhookDelivery.last_error.is_not(None))
    last = (
        select(WebhookDelivery.id)
        .where(
            WebhookDelivery.endpoint_id == WebhookEndpoint.id,
            WebhookDelivery.last_attempt_at.is_not(None),
            finished,
        )
        .order_by(WebhookDelivery.last_attempt_at.desc())
        .limit(1)
        .correlate(WebhookEndpoint)
        .scalar_subquery()
    )
    fails = and_(WebhookDelivery.delivered_at.is_(None), WebhookDelivery.id.is_not(None))
    return (
        select(
            WebhookEndpoint.id,
            WebhookEndpoint.url,
            WebhookEndpoint.disabled_at,
            WebhookDelivery.last_attempt_at,
            WebhookDelivery.last_status,
            WebhookDelivery.last_error,
        )
        .join(WebhookDelivery, WebhookDelivery.id == last, isouter=True)
        .where(
            or_(WebhookEndpoint.disabled_at.is_not(None), and_(WebhookEndpoint.paused_at.is_(None), fails))
        )
    )


def _count(query: Select[str] | Select[int]) -> ColumnElement[int]:
    return select(func.count()).select_from(query.subquery()).scalar_subquery()
