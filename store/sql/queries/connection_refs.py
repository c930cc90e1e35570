"""Connections without tokens: the accounts that a request reads, and whether they are alive."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeVarTuple

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select, true
from sqlalchemy.orm import Session

from store.cache.cache_tags import PRIMARY, UserNames, booked_names, user_name
from store.sql.models import Membership, OAuthConnection, OrganizationGrant, User

_Ts = TypeVarTuple("_Ts")


@dataclass(frozen=True, slots=True)
class ConnectionRef:
    """A connection without its tokens: enough to choose what to read and to report failures.

    ``grant`` is the id of the organization's grant by which a delegated connection is read. Such a connection
    is alive only while the grant is. ``time_zone`` is that of the main calendar, None while it is not known.
    ``user_id`` is the internal id of the user. ``main_names`` are those of ``booked_names`` for the main
    calendar, ``held_names`` the names under which the user is held if it is the only calendar of a request:
    most requests need them.
    """

    id: str
    user: str
    provider: str
    email: str | None
    scope: frozenset[str]
    alive: bool
    account_id: str | None = None
    main_calendar_id: str | None = None
    mailbox: str | None = None
    grant: str | None = None
    time_zone: str | None = None
    user_id: int = 0
    main_names: tuple[str, ...] = ()
    held_names: UserNames | None = None


def of_user(session: Session, custom_id: str, *, organization_id: int | None) -> list[ConnectionRef] | None:
    """The connections of one user; None when there is no such user."""
    return of_users(session, [custom_id], organization_id=organization_id).get(custom_id)


def of_users(
    session: Session, custom_ids: Collection[str], *, organization_id: int | None
) -> dict[str, list[ConnectionRef]]:
    """The connections of each user that exists, in one statement.

    ``organization_id`` limits to members of one organization. A connection by the grant of another one is
    then absent.
    """
    query = _refs(organization_id).where(User.custom_id.in_(custom_ids))
    if organization_id is not None:
        query = query.join(Membership, Membership.user_id == User.id).where(
            Membership.organization_id == organization_id
        )
    return _by_user(session, query)


def of_members(
    session: Session, organization_id: int, *, only_organization_id: int | None = None
) -> dict[str, list[ConnectionRef]]:
    """The connections of every member, in one statement; a member without any has an empty list."""
    query = (
        _refs(only_organization_id)
        .join(Membership, Membership.user_id == User.id)
        .where(Membership.organization_id == organization_id)
    )
    return _by_user(session, query)


def by_id(session: Session, connection_ids: Collection[str]) -> dict[str, ConnectionRef]:
    """Connections by their ids."""
    query = _refs(None).where(OAuthConnection.id.in_(connection_ids))
    return {row.id: _ref(row) for row in session.execute(query)}


def main_names(session: Session, user_ids: Collection[int]) -> set[str]:
    """The names of the main calendars of users, in all of their connections."""
    query = _refs(None).where(User.id.in_(user_ids))
    return {name for row in session.execute(query) if row.id is not None for name in _ref(row).main_names}


def known_to(organization_id: int | None) -> ColumnElement[bool]:
    """Whether keys of an organization may know of a connection: not if it is by the grant of another one.

    None is a key of all organizations.
    """
    if organization_id is None:
        return true()
    own = select(OrganizationGrant.id).where(OrganizationGrant.organization_id == organization_id)
    return or_(OAuthConnection.grant_id.is_(None), OAuthConnection.grant_id.in_(own))


# Whether a connection is alive, and its organization's grant if it has one. Needs ``with_grant``.
ALIVE = and_(OAuthConnection.alive, func.coalesce(OrganizationGrant.alive, true()))


def with_grant(query: Select[*_Ts]) -> Select[*_Ts]:
    """The query, joined with the organization's grant of each connection that has one."""
    return query.join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)


_Text = str | None

_Refs = Select[str, str, str, _Text, list[str], bool, _Text, _Text, _Text, _Text, _Text, int]

_RefRow = Row[str, str, str, _Text, list[str], bool, _Text, _Text, _Text, _Text, _Text, int]


def _refs(only_organization_id: int | None) -> _Refs:
    """Users with their connections that keys of ``only_organization_id`` may know of."""
    of_user = and_(OAuthConnection.user_id == User.id, known_to(only_organization_id))
    return (
        select(
            User.custom_id,
            OAuthConnection.id,
            OAuthConnection.provider,
            OAuthConnection.email,
            OAuthConnection.scope,
            ALIVE.label("alive"),
            OAuthConnection.account_id,
            OAuthConnection.main_calendar_id,
            OAuthConnection.mailbox,
            OAuthConnection.grant_id,
            OAuthConnection.time_zone,
            User.id.label("user_id"),
        )
        .join(OAuthConnection, of_user, isouter=True)
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)
        .order_by(User.custom_id, OAuthConnection.provider)
    )


def _by_user(session: Session, query: _Refs) -> dict[str, list[ConnectionRef]]:
    users: dict[str, list[ConnectionRef]] = {}
    for row in session.execute(query):
        mine = users.setdefault(row.custom_id, [])
        if row.id is not None:
            mine.append(_ref(row))
    return users


def _ref(row: _RefRow) -> ConnectionRef:
    names = booked_names(row, PRIMARY)
    user = (user_name(row.user_id),)
    return ConnectionRef(
        row.id,
        row.custom_id,
        row.provider,
        row.email,
        frozenset(row.scope),
        row.alive,
        row.account_id,
        row.main_calendar_id,
        row.mailbox,
        row.grant_id,
        row.time_zone,
        row.user_id,
        names,
        UserNames((*user, *names[:1]), names[:1] or user),
    )
