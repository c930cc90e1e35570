"""Reads and changes what counts for a user, with the access checks of the caller."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.accounts.ownership import own_user
from app.availability import parameters, public_holidays
from app.http.errors import Invalid, NotFound, PreconditionFailed
from app.schemas.availability_profiles import profile_view
from app.schemas.error_codes import Code
from app.services import services
from providers import registry
from store.sql.queries import audit, availability_profiles, connection_rows, users
from store.sql.queries.api_keys import Caller
from store.sql.queries.availability_profiles import NOTHING, StoredProfile

AVAILABILITY = "changing what counts for a user needs an API key that is not bound to an organization"


def find(session: Session, caller: Caller, custom_id: str) -> StoredProfile:
    """The profile of a user, with the calendars of those connections that the caller may know of.

    :raise NotFound: when the caller does not reach the user
    """
    row = users.find(session, custom_id, organization_id=caller.organization_id)
    if row is None:
        raise NotFound("User not found", Code.USER_NOT_FOUND)
    return _visible(session, caller, custom_id, availability_profiles.find(session, row.id))


def etag(profile: StoredProfile) -> str:
    """The entity tag of a profile as a caller sees it (RFC 9110, 8.8.3)."""
    return f'"{hashlib.sha256(orjson.dumps(profile_view(profile))).hexdigest()[:32]}"'


def replace_profile(
    caller: Caller, custom_id: str, body: Mapping[str, Any], *, required: str | None = None
) -> StoredProfile:
    """Store a profile in the place of the one that the user had; ``body`` is a loaded ``ProfileBody``.

    ``required`` is the etag that the profile must have; None lets it have any.

    :raise ApiError: when the caller may not change the user, or the body names what does not exist
    :raise PreconditionFailed: when the profile has another etag
    """
    return _store(caller, custom_id, NOTHING, body, required)


def change(
    caller: Caller, custom_id: str, body: Mapping[str, Any], *, required: str | None = None
) -> StoredProfile:
    """Change the fields of a profile that the body has; null is not stated any more.

    :raise ApiError: as ``replace_profile``
    """
    return _store(caller, custom_id, None, body, required)


def remove(caller: Caller, custom_id: str, *, required: str | None = None) -> None:
    """Remove the profile of a user, if there is one.

    :raise ApiError: as ``replace_profile``
    """
    with services().stores.database.writing() as session:
        user = own_user(session, caller, custom_id, otherwise=AVAILABILITY)
        before = availability_profiles.find(session, user.id)
        _check(_visible(session, caller, custom_id, before), required)
        if before.is_empty:
            return
        availability_profiles.store(session, user.id, NOTHING)
        audit.record(session, actor=caller.visible, action="deleteAvailability", subject=custom_id)
    _read_again(caller, custom_id)


def _check(profile: StoredProfile, required: str | None) -> None:
    # A proxy that compresses an answer weakens its etag.
    if required is not None and required.removeprefix("W/") != etag(profile):
        raise PreconditionFailed(
            "The availability no longer has the etag in If-Match: another client has changed it",
            Code.AVAILABILITY_CHANGED,
        )


def _visible(session: Session, caller: Caller, custom_id: str, profile: StoredProfile) -> StoredProfile:
    """A profile with the calendars of those connections that the caller may know of."""
    known = _connections(session, caller, custom_id)
    shown = [each for each in profile.calendars or () if each["connectionId"] in known]
    return replace(profile, calendars=shown or None)


def _store(
    caller: Caller,
    custom_id: str,
    base: StoredProfile | None,
    body: Mapping[str, Any],
    required: str | None,
) -> StoredProfile:
    with services().stores.database.writing() as session:
        user = own_user(session, caller, custom_id, otherwise=AVAILABILITY)
        before = availability_profiles.find(session, user.id)
        _check(_visible(session, caller, custom_id, before), required)
        after = replace(before if base is None else base, **_columns(session, caller, custom_id, body))
        availability_profiles.store(session, user.id, after)
        old, new = profile_view(before), profile_view(after)
        changes = {name: (_text(old[name]), _text(new[name])) for name in new}
        if before != after:
            audit.record(
                session, actor=caller.visible, action="changeAvailability", subject=custom_id, changes=changes
            )
        shown = _visible(session, caller, custom_id, after)
    _read_again(caller, custom_id)
    return shown


def _read_again(caller: Caller, custom_id: str) -> None:
    """Let the calendars be read again: days and times without a zone may count in that of the profile."""
    with services().stores.database.reading() as session:
        refs = connection_rows.of_user(session, custom_id, organization_id=caller.organization_id)
    floating = [ref.id for ref in refs or () if registry.definition(ref.provider).floating]
    services().stores.busy.invalidate_connections(floating)


def _columns(session: Session, caller: Caller, custom_id: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The columns for the fields that a body has."""
    columns: dict[str, Any] = {}
    for name, column in (
        ("paddingBefore", "padding_before"),
        ("paddingAfter", "padding_after"),
        ("minimumNotice", "minimum_notice"),
    ):
        if name in body:
            columns[column] = body[name]
    if "timeZone" in body:
        columns["time_zone"] = None if body["timeZone"] is None else str(body["timeZone"])
    if "schedules" in body:
        weekly = body["schedules"]
        columns["schedules"] = None if weekly is None else parameters.echoed_schedules(weekly)
    if "overrides" in body:
        dated = body["overrides"]
        columns["overrides"] = None if dated is None else parameters.echoed_overrides(dated)
    if "calendars" in body:
        columns["calendars"] = _calendars(session, caller, custom_id, body["calendars"])
    if "holidays" in body:
        columns |= _holidays(body["holidays"])
    return columns


def _calendars(
    session: Session, caller: Caller, custom_id: str, wanted: list[dict[str, str]] | None
) -> list[dict[str, str]] | None:
    """The calendars, each once.

    :raise Invalid: for a connection that is not one of the user's
    """
    if wanted is None:
        return None
    known = _connections(session, caller, custom_id)
    for index, each in enumerate(wanted):
        if each["connectionId"] not in known:
            raise Invalid(
                f"calendars[{index}].connectionId must be the id of a connection of the user",
                param=f"calendars.{index}.connectionId",
            )
    pairs = dict.fromkeys((each["connectionId"], each["calendarId"]) for each in wanted)
    return [{"connectionId": connection, "calendarId": calendar} for connection, calendar in pairs]


def _holidays(wanted: Mapping[str, str] | None) -> dict[str, str | None]:
    """The columns of the country.

    :raise Invalid: for a country or a subdivision whose holidays are not known
    """
    if wanted is None:
        return {"holiday_country": None, "holiday_subdivision": None}
    country, subdivision = wanted["country"].upper(), wanted.get("subdivision")
    if not public_holidays.is_known(country):
        raise Invalid(
            "holidays.country must be the ISO 3166 code of a country whose holidays are known, like JP",
            param="holidays.country",
        )
    if subdivision is not None and not public_holidays.is_known(country, subdivision):
        raise Invalid(
            f"holidays.subdivision must be the ISO 3166 code of a subdivision of {country}",
            param="holidays.subdivision",
        )
    return {"holiday_country": country, "holiday_subdivision": subdivision}


def _connections(session: Session, caller: Caller, custom_id: str) -> set[str]:
    refs = connection_rows.of_user(session, custom_id, organization_id=caller.organization_id)
    return {ref.public_id for ref in refs or ()}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return orjson.dumps(value).decode()
