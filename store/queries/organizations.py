"""Organizations and their members."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session, subqueryload

from store.models import Membership, Organization

# "Insert, unless it is there" is a dialect's own; both of ours spell it alike.
_INSERT: dict[str, Any] = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}


def load(session: Session, slug: str, *, within: int | None, to_change: bool = False) -> Organization | None:
    """One organization with its members, or None. ``to_change`` keeps other writers away from it."""
    query = select(Organization).where(Organization.slug == slug).options(subqueryload(Organization.members))
    if to_change:
        query = query.with_for_update(of=Organization)
    if within is not None:
        query = query.where(Organization.id == within)
    return session.scalars(query).one_or_none()


def page(
    session: Session, *, within: int | None, after: str | None = None, limit: int | None = None
) -> Sequence[Organization]:
    """Organizations with their members, ordered by slug, those after ``after``."""
    query = select(Organization).options(subqueryload(Organization.members)).order_by(Organization.slug)
    if within is not None:
        query = query.where(Organization.id == within)
    if after is not None:
        query = query.where(Organization.slug > after)
    return session.scalars(query.limit(limit)).all()


def ids(
    session: Session, slugs: Collection[str], *, within: int | None, keep: bool = False
) -> dict[str, int]:
    """The internal id of each of ``slugs`` that exists. ``keep``: none is deleted before we commit."""
    query = select(Organization.slug, Organization.id).where(Organization.slug.in_(slugs))
    if keep:
        query = query.with_for_update(read=True, key_share=True)
    if within is not None:
        query = query.where(Organization.id == within)
    return {row.slug: row.id for row in session.execute(query)}


def add_members(session: Session, organization_id: int, user_ids: Collection[int]) -> int:
    """Make users members; returns how many were not members before."""
    if not user_ids:
        return 0
    rows = [{"organization_id": organization_id, "user_id": user_id} for user_id in set(user_ids)]
    insert = _INSERT[session.get_bind().dialect.name](Membership)
    added = session.scalars(insert.on_conflict_do_nothing().returning(Membership.user_id), rows)
    return len(added.all())


def remove_members(session: Session, organization_id: int, user_ids: Collection[int]) -> None:
    """End memberships; those that do not exist are no error."""
    session.execute(
        delete(Membership).where(
            Membership.organization_id == organization_id, Membership.user_id.in_(user_ids)
        )
    )


def remove(session: Session, organization_id: int) -> None:
    """Delete an organization, with its memberships and keys."""
    session.execute(delete(Organization).where(Organization.id == organization_id))
