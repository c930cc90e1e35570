"""Organizations and their members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from sqlalchemy import ColumnElement, ScalarSelect, Select, case, delete, func, or_, select
from sqlalchemy.orm import Session, subqueryload

from store.coordination.shares import NO_OWN, OwnQuotas
from store.sql.database import insert_or_update
from store.sql.keyset import Order, Position, Rows, fetch
from store.sql.models import Membership, OAuthConnection, Organization, OrganizationGrant, User

# The number of members that a preview lists.
PREVIEWED_MEMBERS = 100


class ListedMember(NamedTuple):
    """A member as a preview lists it."""

    custom_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Preview:
    """An organization with its first members; ``member_count`` is the number of all."""

    slug: str
    name: str | None
    created_at: datetime
    member_count: int
    members: list[ListedMember] = field(default_factory=list)


class Summary(NamedTuple):
    """An organization in a list.

    ``dead`` is the number of its members' connections that have ended, ``ended_grants`` that of its grants.
    """

    id: int
    slug: str
    name: str | None
    created_at: datetime
    members: int
    dead: int
    ended_grants: int


def load(
    session: Session, slug: str, *, organization_id: int | None, to_change: bool = False
) -> Organization | None:
    """One organization with its members, or None. ``to_change`` locks its row."""
    query = select(Organization).where(Organization.slug == slug).options(subqueryload(Organization.members))
    if to_change:
        query = query.with_for_update(of=Organization)
    if organization_id is not None:
        query = query.where(Organization.id == organization_id)
    return session.scalars(query).one_or_none()


def page(
    session: Session, *, organization_id: int | None, after: str | None = None, limit: int | None = None
) -> Sequence[Organization]:
    """Organizations with their members, ordered by slug, beginning after ``after``."""
    query = select(Organization).options(subqueryload(Organization.members)).order_by(Organization.slug)
    if organization_id is not None:
        query = query.where(Organization.id == organization_id)
    if after is not None:
        query = query.where(Organization.slug > after)
    return session.scalars(query.limit(limit)).all()


def memberships(
    session: Session, user_ids: Select[int], *, only_organization_id: int | None
) -> dict[int, list[int]]:
    """The ids of each user's organizations, ordered by slug; only ``only_organization_id``, if given."""
    query = (
        select(Membership.user_id, Membership.organization_id)
        .join(Organization, Organization.id == Membership.organization_id)
        .where(*_of_users(user_ids, only_organization_id))
        .order_by(Organization.slug)
    )
    found: dict[int, list[int]] = defaultdict(list)
    for user_id, organization_id in session.execute(query):
        found[user_id].append(organization_id)
    return found


def previews(
    session: Session, user_ids: Select[int], *, only_organization_id: int | None
) -> dict[int, Preview]:
    """The organizations of some users, by id, in one statement; only ``only_organization_id``, if given.

    The rows fetched are at most ``PREVIEWED_MEMBERS`` for each organization, whatever its size.
    """
    concerned = select(Membership.organization_id).where(*_of_users(user_ids, only_organization_id))
    each = Membership.organization_id
    ranked = (
        select(
            Membership.organization_id,
            User.custom_id,
            User.created_at,
            func.row_number().over(partition_by=each, order_by=User.custom_id).label("rank"),
            func.count().over(partition_by=each).label("member_count"),
        )
        .join(User, User.id == Membership.user_id)
        .where(Membership.organization_id.in_(concerned))
        .subquery()
    )
    query = (
        select(Organization.id, Organization.slug, Organization.name, Organization.created_at)
        .add_columns(ranked.c.member_count, ranked.c.custom_id, ranked.c.created_at)
        .join(ranked, ranked.c.organization_id == Organization.id)
        .where(ranked.c.rank <= PREVIEWED_MEMBERS)
        .order_by(Organization.id, ranked.c.rank)
    )
    found: dict[int, Preview] = {}
    for organization_id, slug, name, created_at, member_count, custom_id, joined in session.execute(query):
        preview = found.setdefault(organization_id, Preview(slug, name, created_at, member_count))
        preview.members.append(ListedMember(custom_id, joined))
    return found


def search(
    session: Session,
    text: str = "",
    *,
    ended_grants: bool = False,
    order: str = "slug",
    descending: bool = False,
    position: Position | None = None,
    limit: int | None = None,
) -> Rows[Summary]:
    """A page of organizations. ``text`` is a part of slug or name.

    ``ended_grants`` limits to organizations with a grant that has ended. Members are not loaded;
    ``users.search`` finds those of one organization.
    """
    query = _summaries().where(*_found(text))
    if ended_grants:
        query = query.where(Organization.id.in_(_with_ended_grants()))
    found = fetch(session, query, ORDERS[order], descending=descending, position=position, limit=limit)
    return Rows([Summary(*row) for row in found.rows], found.offset, found.total)


def summary(session: Session, slug: str) -> Summary | None:
    """One organization as a search shows it."""
    row = session.execute(_summaries().where(Organization.slug == slug)).one_or_none()
    return None if row is None else Summary(*row)


def suggested(session: Session, text: str, *, limit: int) -> list[tuple[str, str | None]]:
    """Slug and name of organizations that a search finds; names that begin with the text come first."""
    later = case((Organization.slug.istartswith(text, autoescape=True), 0), else_=1)
    query = select(Organization.slug, Organization.name).where(*_found(text))
    return [
        (slug, name) for slug, name in session.execute(query.order_by(later, Organization.slug).limit(limit))
    ]


def count(session: Session, text: str = "") -> int:
    """The number of organizations that a search finds."""
    query = select(func.count()).select_from(Organization).where(*_found(text))
    return session.scalars(query).one()


def ids(
    session: Session, slugs: Collection[str], *, organization_id: int | None, keep: bool = False
) -> dict[str, int]:
    """The internal id of each of ``slugs`` that exists. ``keep`` locks the rows against deletion."""
    query = select(Organization.slug, Organization.id).where(Organization.slug.in_(slugs))
    if keep:
        query = query.with_for_update(read=True, key_share=True)
    if organization_id is not None:
        query = query.where(Organization.id == organization_id)
    return {row.slug: row.id for row in session.execute(query)}


def slug_of(session: Session, organization_id: int) -> str | None:
    """The slug of one organization."""
    return session.scalars(select(Organization.slug).where(Organization.id == organization_id)).one_or_none()


def quotas(session: Session, organization_id: int) -> OwnQuotas:
    """The quotas that an organization has of its own."""
    query = select(Organization.quotas).where(Organization.id == organization_id)
    return session.scalars(query).one_or_none() or NO_OWN


def slugs(session: Session, *, limit: int) -> Sequence[str]:
    """The first slugs in alphabetical order."""
    return session.scalars(select(Organization.slug).order_by(Organization.slug).limit(limit)).all()


def of_user(session: Session, user_id: int) -> Sequence[Organization]:
    """The organizations that a user is a member of, without relations."""
    query = select(Organization).join(Membership, Membership.organization_id == Organization.id)
    return session.scalars(query.where(Membership.user_id == user_id).order_by(Organization.slug)).all()


def add_members(session: Session, organization_id: int, user_ids: Collection[int]) -> set[int]:
    """Add members; returns those who were not members before."""
    if not user_ids:
        return set()
    # In one order, so that concurrent calls do not deadlock.
    rows = [{"organization_id": organization_id, "user_id": user_id} for user_id in sorted(set(user_ids))]
    insert = insert_or_update(session, Membership)
    added = session.scalars(insert.on_conflict_do_nothing().returning(Membership.user_id), rows)
    return set(added)


def of_users(session: Session, user_ids: Collection[int]) -> dict[int, set[int]]:
    """The ids of the organizations that each of these users is a member of; users without any are absent."""
    query = select(Membership.user_id, Membership.organization_id).where(Membership.user_id.in_(user_ids))
    found: dict[int, set[int]] = defaultdict(set)
    for user_id, organization_id in session.execute(query):
        found[user_id].add(organization_id)
    return found


def remove_members(session: Session, organization_id: int, user_ids: Collection[int]) -> set[int]:
    """Remove members; returns those who were members before."""
    removed = delete(Membership).where(
        Membership.organization_id == organization_id, Membership.user_id.in_(user_ids)
    )
    return set(session.scalars(removed.returning(Membership.user_id)))


def remove(session: Session, organization_id: int) -> None:
    """Delete an organization, with its memberships and keys."""
    session.execute(delete(Organization).where(Organization.id == organization_id))


def _of_users(user_ids: Select[int], only_organization_id: int | None) -> Iterator[ColumnElement[bool]]:
    yield Membership.user_id.in_(user_ids)
    if only_organization_id is not None:
        yield Membership.organization_id == only_organization_id


def _members() -> ScalarSelect[int]:
    return select(func.count()).where(Membership.organization_id == Organization.id).scalar_subquery()


def _dead() -> ScalarSelect[int]:
    ended = (
        select(func.count())
        .select_from(Membership)
        .join(OAuthConnection, OAuthConnection.user_id == Membership.user_id)
        .join(OrganizationGrant, OrganizationGrant.id == OAuthConnection.grant_id, isouter=True)
        .where(
            Membership.organization_id == Organization.id,
            or_(OAuthConnection.alive.is_(False), OrganizationGrant.alive.is_(False)),
        )
    )
    return ended.scalar_subquery()


def _ended_grants() -> ScalarSelect[int]:
    ended = select(func.count()).select_from(OrganizationGrant)
    return ended.where(
        OrganizationGrant.organization_id == Organization.id, OrganizationGrant.alive.is_(False)
    ).scalar_subquery()


def _with_ended_grants() -> Select[int]:
    return select(OrganizationGrant.organization_id).where(OrganizationGrant.alive.is_(False))


def _summaries() -> Select[int, str, str | None, datetime, int, int, int]:
    return select(
        Organization.id,
        Organization.slug,
        Organization.name,
        Organization.created_at,
        _members(),
        _dead(),
        _ended_grants(),
    )


def _found(text: str) -> Iterator[ColumnElement[bool]]:
    if text:
        # Wildcards of LIKE are escaped.
        parts = (column.icontains(text, autoescape=True) for column in (Organization.slug, Organization.name))
        yield or_(*parts)


_SLUG = attrgetter("slug")
# The orders of lists of organizations, by the name of their column.
ORDERS: Mapping[str, Order] = {
    "slug": Order(Organization.slug, _SLUG),
    "name": Order(
        Organization.slug,
        _SLUG,
        value=func.coalesce(Organization.name, ""),
        value_of=lambda row: row.name or "",
    ),
    "members": Order(
        Organization.slug, _SLUG, value=_members(), value_of=attrgetter("members"), parse_value=int
    ),
    "ended": Order(Organization.slug, _SLUG, value=_dead(), value_of=attrgetter("dead"), parse_value=int),
    "created": Order(
        Organization.slug,
        _SLUG,
        value=Organization.created_at,
        value_of=attrgetter("created_at"),
        parse_value=datetime.fromisoformat,
    ),
}
