"""Users and what hangs on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session, subqueryload

from store.models import Membership, Organization, User

RELATIONS = ("oauthConnections", "organizations")


def load(
    session: Session, custom_id: str, *, within: int | None, include: Collection[str] = RELATIONS
) -> User | None:
    """One user with relations, or None. ``within`` limits to one organization's members."""
    return session.scalars(_users(within, include).where(User.custom_id == custom_id)).one_or_none()


def find(session: Session, custom_id: str, *, within: int | None, to_change: bool = False) -> User | None:
    """One user, bare. ``to_change`` keeps other writers away from the user and its connections."""
    query = _users(within, ()).where(User.custom_id == custom_id)
    return session.scalars(query.with_for_update(of=User) if to_change else query).one_or_none()


def by_number(session: Session, user_id: int, *, within: int | None, to_change: bool = False) -> User | None:
    """As ``find``, by the internal id, which a rename does not change."""
    query = _users(within, ()).where(User.id == user_id)
    return session.scalars(query.with_for_update(of=User) if to_change else query).one_or_none()


def page(
    session: Session,
    *,
    within: int | None,
    include: Collection[str] = RELATIONS,
    after: str | None = None,
    limit: int | None = None,
) -> Sequence[User]:
    """Users ordered by identifier, those after ``after``; a constant number of statements."""
    query = _users(within, include).order_by(User.custom_id)
    if after is not None:
        query = query.where(User.custom_id > after)
    return session.scalars(query.limit(limit)).all()


def ids(
    session: Session, custom_ids: Collection[str], *, within: int | None, keep: bool = False
) -> dict[str, int]:
    """The internal id of each of ``custom_ids`` that exists. ``keep``: none is deleted before we commit."""
    query = select(User.custom_id, User.id).where(User.custom_id.in_(custom_ids))
    if keep:
        query = query.with_for_update(read=True, key_share=True, of=User)
    if within is not None:
        query = query.join(Membership, Membership.user_id == User.id).where(
            Membership.organization_id == within
        )
    return {row.custom_id: row.id for row in session.execute(query)}


def organization_ids(session: Session, user_id: int) -> set[int]:
    """The organizations that a user is a member of."""
    query = select(Membership.organization_id).where(Membership.user_id == user_id)
    return set(session.scalars(query))


def remove(session: Session, user_id: int) -> None:
    """Delete a user, with its memberships and whatever connections it still has."""
    session.execute(delete(User).where(User.id == user_id))


def _users(within: int | None, include: Collection[str]) -> Select[User]:
    query = select(User)
    if within is not None:
        query = query.where(User.organizations.any(Organization.id == within))
    if "oauthConnections" in include:
        query = query.options(subqueryload(User.connections))
    if "organizations" in include:
        query = query.options(subqueryload(User.organizations).subqueryload(Organization.members))
    return query
