"""Operations on users, with the access checks of the caller."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from app.accounts.disconnect import clean_up, remove_connections, stop_channels
from app.accounts.unique_violations import conflict_on
from app.http.auth import caller, own_user, within
from app.http.errors import NotFound
from app.services import services
from store.sql.models import User
from store.sql.queries import audit, organizations, users

# What to do instead of changing a user who belongs to other organizations too.
MEMBERSHIP = "remove the membership instead"


def register(session: Session, custom_id: str, slugs: Collection[str]) -> None:
    """Create a user as a member of these organizations and of the one that the caller is bound to.

    :raise NotFound: when an organization is unknown; then nothing is created
    :raise Conflict: when the identifier is taken
    """
    memberships = organizations.ids(session, set(slugs), within=within(), keep=True)
    if set(slugs) - memberships.keys():
        raise NotFound("Organization not found")
    own = within()
    user = User(custom_id=custom_id)
    with conflict_on(User.custom_id, "User already exists"):
        session.add(user)
        session.flush()
    for organization_id in {*memberships.values(), *([own] if own is not None else [])}:
        organizations.add_members(session, organization_id, [user.id])


def rename(session: Session, custom_id: str, new_id: str) -> None:
    """Change the identifier of a user; connections and memberships stay.

    :raise Conflict: when the identifier is taken
    """
    row = own_user(session, custom_id, otherwise=MEMBERSHIP)
    with conflict_on(User.custom_id, "User already exists"):
        row.custom_id = new_id
        session.flush()


def delete(custom_id: str) -> None:
    """Delete a user with tokens and cached data; revoke grants where the provider supports it.

    Do not call this within a transaction, because it waits for a provider.
    """
    with services().stores.database.writing() as session:
        own_user(session, custom_id, otherwise=MEMBERSHIP)
    stop_channels(custom_id)
    actor = caller().visible
    with services().stores.database.writing() as session:
        user = own_user(session, custom_id, otherwise=MEMBERSHIP)
        # In one transaction: a consent that finishes concurrently is removed too, or finds no user.
        removed = remove_connections(session, user, actor=actor)
        users.remove(session, user.id)
        audit.record(session, actor=actor, action="deleteUser", subject=custom_id)
    clean_up(removed)
