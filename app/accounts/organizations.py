"""Operations on organizations and their members, with the access checks of the caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy.orm import Session

from app.accounts.ownership import require_whole_service
from app.accounts.unique_violations import conflict_on
from app.http.errors import NotFound
from store.sql.models import Organization
from store.sql.queries import audit, organizations, users
from store.sql.queries.api_keys import Caller


def find(session: Session, caller: Caller, slug: str, *, to_change: bool = False) -> Organization:
    """An organization with its members.

    :raise NotFound: for one that the caller does not reach
    """
    row = organizations.load(session, slug, within=caller.organization_id, to_change=to_change)
    if row is None:
        raise NotFound("Organization not found")
    return row


def number(session: Session, caller: Caller, slug: str, *, keep: bool = False) -> int:
    """The internal id of an organization. ``keep`` locks it against deletion until the commit.

    :raise NotFound: for one that the caller does not reach
    """
    found = organizations.ids(session, [slug], within=caller.organization_id, keep=keep)
    if not found:
        raise NotFound("Organization not found")
    return found[slug]


def create(session: Session, caller: Caller, slug: str, name: str | None) -> None:
    """Create an organization.

    :raise Conflict: when the slug is taken
    """
    require_whole_service(caller, "Creating organizations")
    with conflict_on(Organization.slug, "Organization with slug already exists"):
        session.add(Organization(slug=slug, name=name))
        session.flush()


def change(session: Session, caller: Caller, slug: str, changes: Mapping[str, str | None]) -> Organization:
    """Change the ``slug`` or the ``name`` of an organization, whichever is in ``changes``.

    :raise Conflict: when the slug is taken
    """
    row = find(session, caller, slug, to_change=True)
    with conflict_on(Organization.slug, "Organization with slug already exists"):
        row.slug = changes.get("slug") or row.slug
        row.name = changes.get("name", row.name)
        session.flush()
    return row


def delete(session: Session, caller: Caller, slug: str) -> Organization:
    """Delete an organization, with its memberships and the keys bound to it; returns it as it was."""
    row = find(session, caller, slug, to_change=True)
    require_whole_service(caller, "Deleting an organization")
    organizations.remove(session, row.id)
    audit.record(session, actor=caller.visible, action="deleteOrganization", subject=slug)
    return row


def add_members(session: Session, caller: Caller, slug: str, custom_ids: Sequence[str]) -> int:
    """Make users members; returns how many were not members before.

    :raise NotFound: when one of them is unknown; then no user is added
    """
    return organizations.add_members(
        session, number(session, caller, slug, keep=True), require_users(session, caller, custom_ids)
    )


def remove_members(session: Session, caller: Caller, slug: str, custom_ids: Sequence[str]) -> None:
    """End memberships; a user who is not a member is no error.

    :raise NotFound: when a user is unknown; then no user is removed
    """
    organizations.remove_members(
        session, number(session, caller, slug), require_users(session, caller, custom_ids)
    )


def require_users(session: Session, caller: Caller, custom_ids: Sequence[str]) -> list[int]:
    """The internal ids of users that the caller reaches.

    :raise NotFound: when it does not reach all of them
    """
    found = users.ids(session, set(custom_ids), within=caller.organization_id, keep=True)
    if len(found) < len(set(custom_ids)):
        raise NotFound("User not found")
    return list(found.values())
