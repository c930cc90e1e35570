"""Operations on organizations and their members, with the access checks of the caller."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from sqlalchemy.orm import Session

from app.accounts import disconnect
from app.accounts.ownership import require_whole_service
from app.accounts.unique_violations import conflict_on
from app.http.errors import NotFound
from app.schemas.error_codes import Code
from app.services import services
from store.coordination import shares
from store.sql.models import Organization
from store.sql.queries import audit, organization_grants, organizations, users
from store.sql.queries.api_keys import Caller


class MembershipChange(NamedTuple):
    """The users of a request to add or remove members, in its order: those it concerned, and the others."""

    changed: list[str]
    unchanged: list[str]


def find(session: Session, caller: Caller, slug: str, *, to_change: bool = False) -> Organization:
    """An organization with its members.

    :raise NotFound: for one that the caller does not reach
    """
    row = organizations.load(session, slug, organization_id=caller.organization_id, to_change=to_change)
    if row is None:
        raise NotFound("Organization not found", Code.ORGANIZATION_NOT_FOUND)
    return row


def number(session: Session, caller: Caller, slug: str, *, keep: bool = False) -> int:
    """The internal id of an organization. ``keep`` locks it against deletion until the commit.

    :raise NotFound: for one that the caller does not reach
    """
    found = organizations.ids(session, [slug], organization_id=caller.organization_id, keep=keep)
    if not found:
        raise NotFound("Organization not found", Code.ORGANIZATION_NOT_FOUND)
    return found[slug]


def create(
    session: Session,
    caller: Caller,
    slug: str,
    name: str | None,
    quotas: Mapping[str, int | None] | None = None,
) -> None:
    """Create an organization.

    :raise Conflict: when the slug is taken
    """
    require_whole_service(caller, "Creating organizations")
    row = Organization(slug=slug, name=name)
    with _slug_is_free():
        session.add(row)
        session.flush()
    changes = {"name": (None, name)}
    audit.record(session, actor=caller.visible, action="createOrganization", subject=slug, changes=changes)
    change_quotas(session, caller, row, quotas or {})


def change(session: Session, caller: Caller, slug: str, changes: Mapping[str, Any]) -> Organization:
    """Change the ``slug``, the ``name`` or the ``quotas`` of an organization, whichever is in ``changes``.

    :raise Conflict: when the slug is taken
    :raise Forbidden: when the key is bound to the organization, and would change its quotas
    """
    row = find(session, caller, slug, to_change=True)
    if quotas := changes.get("quotas"):
        change_quotas(session, caller, row, quotas)
    before = row.name
    with _slug_is_free():
        row.slug = changes.get("slug") or row.slug
        row.name = changes.get("name", row.name)
        session.flush()
    if (row.slug, row.name) != (slug, before):
        audit.record(
            session,
            actor=caller.visible,
            action="changeOrganization",
            subject=slug if slug == row.slug else f"{slug} to {row.slug}",
            changes={"slug": (slug, row.slug), "name": (before, row.name)},
        )
    return row


def change_quotas(
    session: Session, caller: Caller, row: Organization, quotas: Mapping[str, int | None]
) -> None:
    """Change the quotas that are in ``quotas``; None is the installation's. The audit log has each change.

    :raise Forbidden: when the key is bound to an organization
    """
    before = row.quotas or {}
    after = {name: value for name, value in {**before, **quotas}.items() if value is not None}
    if after != before:
        require_whole_service(caller, "Changing the quotas of an organization")
        row.quotas = after or None
        names = [name for name in shares.OWN if before.get(name) != after.get(name)]
        changes = {name.value: (before.get(name), after.get(name)) for name in names}
        audit.record(session, actor=caller.visible, action="changeQuotas", subject=row.slug, changes=changes)


def delete(caller: Caller, slug: str) -> Organization:
    """Delete an organization, with its memberships, grants and the keys bound to it; returns it as it was.

    Do not call this within a transaction, because it waits for workers that close push channels.

    :raise NotFound: for one that the caller does not reach
    """
    database = services().stores.database
    with database.reading() as session:
        organization_id = number(session, caller, slug)
        require_whole_service(caller, "Deleting an organization")
        grants = organization_grants.of_organization(session, organization_id)
    for grant in grants:
        disconnect.stop_channels_of_grant(grant.id)
    connections: list[str] = []
    with database.writing() as session:
        row = find(session, caller, slug, to_change=True)
        for grant in grants:
            connections += organization_grants.remove(session, row.id, grant.provider) or []
        organizations.remove(session, row.id)
        audit.record(session, actor=caller.visible, action="deleteOrganization", subject=slug)
    disconnect.forget_grant_tokens(grant.id for grant in grants)
    disconnect.forget_cached(connections)
    return row


def add_members(session: Session, caller: Caller, slug: str, custom_ids: Sequence[str]) -> MembershipChange:
    """Make users members; the unchanged ones were members before.

    :raise NotFound: when one of them is unknown; then no user is added
    """
    organization_id = number(session, caller, slug, keep=True)
    found = require_users(session, caller, custom_ids)
    change = _memberships(found, organizations.add_members(session, organization_id, found.values()))
    if change.changed:
        subject, changes = f"{len(change.changed)} to {slug}", {"members": (None, change.changed)}
        audit.record(session, actor=caller.visible, action="addMembers", subject=subject, changes=changes)
    return change


def remove_members(caller: Caller, slug: str, custom_ids: Sequence[str]) -> MembershipChange:
    """End memberships, and delete the users' connections by the organization's grants.

    The unchanged users were no members, which is no error. Do not call this within a transaction, because it
    waits for workers that close push channels.

    :raise NotFound: when a user is unknown; then no user is removed
    """
    database = services().stores.database
    with database.reading() as session:
        organization_id = number(session, caller, slug)
        user_ids = require_users(session, caller, custom_ids).values()
        delegated = organization_grants.connections_of(session, organization_id, user_ids)
    disconnect.stop_channels_of(delegated)
    with database.writing() as session:
        organization_id = number(session, caller, slug)
        named = require_users(session, caller, custom_ids)
        left = organizations.remove_members(session, organization_id, named.values())
        # A former member is not read by the organization's grant any more.
        connections = organization_grants.delete_connections_of(session, organization_id, left)
        change = _memberships(named, left)
        if left:
            one = len(custom_ids) == 1
            action, subject = ("removeMember", custom_ids[0]) if one else ("removeMembers", len(left))
            audit.record(session, actor=caller.visible, action=action, subject=f"{subject} from {slug}")
    disconnect.forget_cached(connections)
    return change


def _slug_is_free() -> AbstractContextManager[None]:
    return conflict_on(Organization.slug, "Organization with slug already exists", Code.ORGANIZATION_EXISTS)


def remove_member(caller: Caller, slug: str, custom_id: str) -> None:
    """End one membership, as ``remove_members``.

    :raise NotFound: when the user is unknown, or not a member
    """
    if not remove_members(caller, slug, [custom_id]).changed:
        raise NotFound(f"User is not a member of {slug}", Code.MEMBER_NOT_FOUND)


def require_users(session: Session, caller: Caller, custom_ids: Sequence[str]) -> dict[str, int]:
    """The internal id of each user, in the order given.

    :raise NotFound: when the caller does not reach all of them
    """
    found = users.ids(session, set(custom_ids), organization_id=caller.organization_id, keep=True)
    if len(found) < len(set(custom_ids)):
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    return {each: found[each] for each in custom_ids}


def _memberships(user_ids: Mapping[str, int], changed: Collection[int]) -> MembershipChange:
    return MembershipChange(
        [each for each, user_id in user_ids.items() if user_id in changed],
        [each for each, user_id in user_ids.items() if user_id not in changed],
    )
