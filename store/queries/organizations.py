"""Organizations and their members."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session, selectinload

from store.models import Membership, Organization


def load(session: Session, slug: str, *, within: int | None) -> Organization | None:
    """One organization with its members, or None."""
    query = select(Organization).where(Organization.slug == slug).options(selectinload(Organization.members))
    if within is not None:
        query = query.where(Organization.id == within)
    return session.scalars(query).one_or_none()


def page(
    session: Session, *, within: int | None, after: str | None = None, limit: int | None = None
) -> Sequence[Organization]:
    """Organizations with their members, ordered by slug, those after ``after``."""
    query = select(Organization).options(selectinload(Organization.members)).order_by(Organization.slug)
    if within is not None:
        query = query.where(Organization.id == within)
    if after is not None:
        query = query.where(Organization.slug > after)
    return session.scalars(query.limit(limit)).all()


def ids(session: Session, slugs: Collection[str], *, within: int | None) -> dict[str, int]:
    """The internal id of each of ``slugs`` that exists."""
    query = select(Organization.slug, Organization.id).where(Organization.slug.in_(slugs))
    if within is not None:
        query = query.where(Organization.id == within)
    return {row.slug: row.id for row in session.execute(query)}


def add_members(session: Session, organization_id: int, user_ids: Collection[int]) -> int:
    """Make users members; returns how many were not members before."""
    query = select(Membership.user_id).where(
        Membership.organization_id == organization_id, Membership.user_id.in_(user_ids)
    )
    fresh = set(user_ids) - set(session.scalars(query))
    session.add_all(Membership(organization_id=organization_id, user_id=user_id) for user_id in fresh)
    session.flush()
    return len(fresh)


def remove_members(session: Session, organization_id: int, user_ids: Collection[int]) -> None:
    """End memberships; those that do not exist are no error."""
    session.execute(
        delete(Membership).where(
            Membership.organization_id == organization_id, Membership.user_id.in_(user_ids)
        )
    )
