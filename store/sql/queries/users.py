"""Users with their connections and organizations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, case, delete, func, or_, select
from sqlalchemy.orm import Session, subqueryload

from store.sql.database import insert_or_update
from store.sql.keyset import Order, Position, Rows, fetch
from store.sql.models import Membership, OAuthConnection, Organization, User
from store.sql.queries import organizations, person_data
from store.sql.queries.connection_rows import ALIVE, BY_PROVIDER, known_to, with_grant
from store.sql.queries.organizations import Preview

RELATIONS = ("oauthConnections", "organizations")


# The orders of lists of users, by the name of their column.
ORDERS: Mapping[str, Order] = {
    "id": Order(User.custom_id, attrgetter("custom_id")),
    "registered": Order(
        User.custom_id,
        attrgetter("custom_id"),
        value=User.created_at,
        value_of=attrgetter("created_at"),
        parse_value=datetime.fromisoformat,
    ),
}


class ListedConnection(NamedTuple):
    """A connection in a list of users. ``usable``: see ``OAuthConnection``."""

    provider: str
    email: str | None
    usable: bool
    expires_at: datetime | None
    scope: Sequence[str]
    grant_id: str | None


class ListedUser(NamedTuple):
    """A user in a list; ``connections`` is empty if the list does not include them."""

    id: int
    custom_id: str
    created_at: datetime
    connections: Sequence[ListedConnection]


class Page(NamedTuple):
    """Users in a list, and their organizations, each loaded once.

    ``memberships`` has the ids of each user's organizations by the user's id, ``organizations`` their
    previews by their own id.
    """

    users: Sequence[ListedUser]
    memberships: Mapping[int, Sequence[int]]
    organizations: Mapping[int, Preview]


def load(
    session: Session, custom_id: str, *, organization_id: int | None, include: Collection[str] = RELATIONS
) -> User | None:
    """One user with relations, or None.

    ``organization_id`` limits to one organization's members, and to connections that its keys may know of.
    """
    return session.scalars(_users(organization_id, include).where(User.custom_id == custom_id)).one_or_none()


def find(
    session: Session, custom_id: str, *, organization_id: int | None, to_change: bool = False
) -> User | None:
    """One user without relations. ``to_change`` locks the user's row against other writers."""
    query = _users(organization_id, ()).where(User.custom_id == custom_id)
    return session.scalars(query.with_for_update(of=User) if to_change else query).one_or_none()


def by_number(
    session: Session, user_id: int, *, organization_id: int | None, to_change: bool = False
) -> User | None:
    """As ``find``, by the internal id, which a rename does not change."""
    query = _users(organization_id, ()).where(User.id == user_id)
    return session.scalars(query.with_for_update(of=User) if to_change else query).one_or_none()


def page(
    session: Session,
    *,
    organization_id: int | None,
    include: Collection[str] = RELATIONS,
    after: str | None = None,
    limit: int | None = None,
    shown_organization_id: int | None = None,
) -> Page:
    """Users ordered by identifier, beginning after ``after``, in a constant number of statements.

    ``shown_organization_id`` limits the organizations of each user to that one, and the connections to those
    that its keys may know of.
    """
    listed = _users(organization_id, ()).order_by(User.custom_id).limit(limit)
    if after is not None:
        listed = listed.where(User.custom_id > after)
    rows = session.execute(listed.with_only_columns(User.id, User.custom_id, User.created_at)).all()
    # A subquery instead of ids: the number of a statement's parameters is limited.
    listed_ids = listed.with_only_columns(User.id)
    connections = {}
    if "oauthConnections" in include:
        connections = _listed_connections(session, listed_ids, known_to(shown_organization_id))
    users = [ListedUser(*row, connections.get(row.id, ())) for row in rows]
    if "organizations" not in include:
        return Page(users, {}, {})
    memberships = organizations.memberships(session, listed_ids, only_organization_id=shown_organization_id)
    return Page(
        users,
        memberships,
        organizations.previews(session, listed_ids, only_organization_id=shown_organization_id),
    )


def _listed_connections(
    session: Session, user_ids: Select[int], shown: ColumnElement[bool]
) -> dict[int, list[ListedConnection]]:
    columns = (OAuthConnection.provider, OAuthConnection.email, ALIVE, OAuthConnection.expires_at)
    query = (
        with_grant(select(OAuthConnection.user_id, *columns, OAuthConnection.scope, OAuthConnection.grant_id))
        .where(OAuthConnection.user_id.in_(user_ids), shown)
        .order_by(*BY_PROVIDER)
    )
    found: dict[int, list[ListedConnection]] = defaultdict(list)
    for user_id, *row in session.execute(query):
        found[user_id].append(ListedConnection._make(row))
    return found


def search(
    session: Session,
    text: str = "",
    *,
    organization_id: int | None = None,
    condition: ColumnElement[bool] | None = None,
    order: Order = ORDERS["id"],
    descending: bool = False,
    position: Position | None = None,
    limit: int | None = None,
) -> Rows[User]:
    """A page of users with their connections and organizations.

    ``text`` is a part of the identifier or of a connection's address. Case is ignored, at least for ASCII
    letters. ``organization_id`` limits to one organization's members, ``condition`` to users that meet it.
    """
    relations = (subqueryload(User.connections), subqueryload(User.organizations))
    query = select(User).where(*found_by(text, organization_id))
    if condition is not None:
        query = query.where(condition)
    return fetch(
        session,
        query,
        order,
        descending=descending,
        position=position,
        limit=limit,
        options=relations,
    )


def exported(
    session: Session,
    text: str = "",
    *,
    organization_id: int | None = None,
    condition: ColumnElement[bool] | None = None,
) -> Sequence[User]:
    """All users that a search finds, with connections and organizations, ordered by identifier."""
    relations = (subqueryload(User.connections), subqueryload(User.organizations))
    query = select(User).where(*found_by(text, organization_id)).options(*relations).order_by(User.custom_id)
    return session.scalars(query if condition is None else query.where(condition)).all()


def suggested(session: Session, text: str, *, limit: int) -> list[tuple[str, str | None]]:
    """Identifier and address of users that a search finds; those beginning with the text come first."""
    address = select(func.min(OAuthConnection.email)).where(OAuthConnection.user_id == User.id)
    later = case((User.custom_id.istartswith(text, autoescape=True), 0), else_=1)
    query = select(User.custom_id, address.scalar_subquery()).where(*found_by(text, None))
    rows = session.execute(query.order_by(later, User.custom_id).limit(limit))
    return [(custom_id, email) for custom_id, email in rows]


def count(session: Session, text: str = "", *, organization_id: int | None = None) -> int:
    """The number of users that a search finds."""
    query = select(func.count()).select_from(User).where(*found_by(text, organization_id))
    return session.scalars(query).one()


def ids(
    session: Session, custom_ids: Collection[str], *, organization_id: int | None, keep: bool = False
) -> dict[str, int]:
    """The internal id of each of ``custom_ids`` that exists. ``keep`` locks the rows against deletion."""
    query = select(User.custom_id, User.id).where(User.custom_id.in_(custom_ids))
    if keep:
        query = query.with_for_update(read=True, key_share=True, of=User)
    if organization_id is not None:
        query = query.join(Membership, Membership.user_id == User.id).where(
            Membership.organization_id == organization_id
        )
    return {row.custom_id: row.id for row in session.execute(query)}


def add_missing(session: Session, custom_ids: Collection[str]) -> tuple[dict[str, int], set[int]]:
    """The internal id of each user, and the ids of users who did not exist before; they are created.

    The users are locked until the commit.
    """
    rows = [{"custom_id": each} for each in sorted(set(custom_ids))]
    added: set[int] = set()
    if rows:
        insert = insert_or_update(session, User).on_conflict_do_nothing()
        added = set(session.scalars(insert.returning(User.id), rows))
    # By id: concurrent imports lock them in one order.
    locked = select(User.custom_id, User.id).where(User.custom_id.in_(custom_ids)).order_by(User.id)
    found = {row.custom_id: row.id for row in session.execute(locked.with_for_update(of=User))}
    return found, added


def organization_ids(session: Session, user_id: int) -> set[int]:
    """The organizations that a user is a member of."""
    query = select(Membership.organization_id).where(Membership.user_id == user_id)
    return set(session.scalars(query))


def remove(session: Session, user_id: int) -> None:
    """Delete a user, with its memberships, remaining connections and mentions in events of several users."""
    person_data.forget_in_deliveries(session, user_id)
    session.execute(delete(User).where(User.id == user_id))


def found_by(text: str, organization_id: int | None = None) -> Iterator[ColumnElement[bool]]:
    """The conditions of a search; see ``search``."""
    if text:
        # Wildcards of LIKE are escaped.
        address = OAuthConnection.email.icontains(text, autoescape=True)
        yield or_(User.custom_id.icontains(text, autoescape=True), User.connections.any(address))
    if organization_id is not None:
        yield User.id.in_(select(Membership.user_id).where(Membership.organization_id == organization_id))


def _users(organization_id: int | None, include: Collection[str]) -> Select[User]:
    query = select(User)
    if organization_id is not None:
        query = query.where(User.organizations.any(Organization.id == organization_id))
    if "oauthConnections" in include:
        query = query.options(subqueryload(User.connections.and_(known_to(organization_id))))
    if "organizations" in include:
        query = query.options(subqueryload(User.organizations).subqueryload(Organization.members))
    return query
