"""Operations on users, with the access checks of the caller."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from app.accounts.disconnect import clean_up, remove_connections, stop_channels
from app.accounts.ownership import MEMBERSHIP, own_user, require_whole_service
from app.accounts.unique_violations import conflict_on
from app.http.errors import NotFound
from app.schemas.error_codes import Code
from app.services import services
from store.sql.models import User
from store.sql.queries import audit, organizations, person_data, users
from store.sql.queries.api_keys import Caller


def register(session: Session, caller: Caller, custom_id: str, slugs: Collection[str]) -> None:
    """Create a user as a member of these organizations and of the one that the caller is bound to.

    :raise NotFound: when an organization is unknown; then nothing is created
    :raise Conflict: when the identifier is taken
    """
    own = caller.organization_id
    memberships = organizations.ids(session, set(slugs), organization_id=own, keep=True)
    if set(slugs) - memberships.keys():
        raise NotFound("Organization not found", Code.ORGANIZATION_NOT_FOUND)
    user = User(custom_id=custom_id)
    with conflict_on(User.custom_id, "User already exists", Code.USER_EXISTS):
        session.add(user)
        session.flush()
    for organization_id in {*memberships.values(), *([own] if own is not None else [])}:
        organizations.add_members(session, organization_id, [user.id])
    changes = {"organization": (None, sorted(slugs) or None)}
    audit.record(session, actor=caller.visible, action="createUser", subject=custom_id, changes=changes)


def rename(session: Session, caller: Caller, custom_id: str, new_id: str) -> None:
    """Change the identifier of a user; connections and memberships stay.

    :raise Conflict: when the identifier is taken
    """
    row = own_user(session, caller, custom_id, otherwise=MEMBERSHIP)
    with conflict_on(User.custom_id, "User already exists", Code.USER_EXISTS):
        row.custom_id = new_id
        session.flush()
    changes, subject = {"identifier": (custom_id, new_id)}, f"{custom_id} to {new_id}"
    audit.record(session, actor=caller.visible, action="renameUser", subject=subject, changes=changes)


def export(session: Session, caller: Caller, custom_id: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Everything that is stored about a user, without secrets, by table.

    :raise Forbidden: for a key that is bound to an organization: the data are of others too
    :raise NotFound: for a user that does not exist
    """
    require_whole_service(caller, "An export")
    user = users.find(session, custom_id, organization_id=None)
    if user is None:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    audit.record(session, actor=caller.visible, action="exportUser", subject=custom_id)
    return person_data.export(session, user)


def delete(caller: Caller, custom_id: str, *, revoke: bool = True) -> None:
    """Delete a user with tokens and cached data.

    Without ``revoke`` the grants stay valid at the provider. Do not call this within a transaction, because
    it waits for a provider.
    """
    with services().stores.database.writing() as session:
        own_user(session, caller, custom_id, otherwise=MEMBERSHIP)
    stop_channels(custom_id)
    with services().stores.database.writing() as session:
        user = own_user(session, caller, custom_id, otherwise=MEMBERSHIP)
        # In one transaction: a consent that finishes concurrently is removed too, or finds no user.
        removed = remove_connections(session, caller, user)
        users.remove(session, user.id)
        audit.record(session, actor=caller.visible, action="deleteUser", subject=custom_id)
    clean_up(removed, revoke=revoke)
