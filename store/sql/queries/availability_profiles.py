"""What counts for people on the routes of scheduling: their stored availability profiles."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, delete, select
from sqlalchemy.orm import Session

from store.sql.models import AvailabilityProfile, Membership, User

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """A profile as it is stored, see ``AvailabilityProfile``; None: not stated."""

    time_zone: str | None = None
    schedules: list[dict[str, Any]] | None = None
    overrides: list[dict[str, Any]] | None = None
    calendars: list[dict[str, str]] | None = None
    padding_before: int | None = None
    padding_after: int | None = None
    minimum_notice: int | None = None
    holiday_country: str | None = None
    holiday_subdivision: str | None = None

    @property
    def has_dates(self) -> bool:
        """Whether it states anything that counts in a time zone."""
        return any((self.schedules is not None, self.overrides, self.holiday_country))

    @property
    def is_empty(self) -> bool:
        """Whether it states nothing."""
        return self == NOTHING


NOTHING = StoredProfile()
_COLUMNS = [getattr(AvailabilityProfile, name) for name in StoredProfile.__slots__]


def find(session: Session, user_id: int) -> StoredProfile:
    """The profile of a user, by the internal id; without one, a profile that states nothing."""
    row = session.execute(select(*_COLUMNS).where(AvailabilityProfile.user_id == user_id)).one_or_none()
    return NOTHING if row is None else StoredProfile(*row)


def store(session: Session, user_id: int, profile: StoredProfile) -> None:
    """Replace the profile of a user; one that states nothing is removed.

    The caller has locked the row of the user.
    """
    row = session.get(AvailabilityProfile, user_id)
    if profile.is_empty:
        if row is not None:
            session.delete(row)
        return
    if row is None:
        row = AvailabilityProfile(user_id=user_id)
        session.add(row)
    for name in StoredProfile.__slots__:
        setattr(row, name, getattr(profile, name))


def of_users(
    session: Session, custom_ids: Collection[str], *, organization_id: int | None
) -> dict[str, StoredProfile]:
    """The profiles of those users that have one.

    ``organization_id`` limits to members of one organization.
    """
    query = _profiles().where(User.custom_id.in_(custom_ids))
    if organization_id is not None:
        query = query.join(Membership, Membership.user_id == User.id).where(
            Membership.organization_id == organization_id
        )
    return _by_user(session, query)


def of_members(session: Session, organization_id: int) -> dict[str, StoredProfile]:
    """The profiles of those members of an organization that have one."""
    query = _profiles().join(Membership, Membership.user_id == User.id)
    return _by_user(session, query.where(Membership.organization_id == organization_id))


def remove(session: Session, user_id: int) -> None:
    """Remove the profile of a user, if there is one."""
    session.execute(delete(AvailabilityProfile).where(AvailabilityProfile.user_id == user_id))


def _profiles() -> Select[*tuple[Any, ...]]:
    return select(User.custom_id, *_COLUMNS).join(AvailabilityProfile, AvailabilityProfile.user_id == User.id)


def _by_user(session: Session, query: Select[*tuple[Any, ...]]) -> dict[str, StoredProfile]:
    return {user: StoredProfile(*columns) for user, *columns in session.execute(query)}
