"""Schemas of busy and scheduling requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar
from zoneinfo import ZoneInfo

from marshmallow import fields

from app.http.fast_args import QuerySchema
from app.schemas.fields import USER_ID, PathText, Reference, Zone, at_most
from app.schemas.parameters import (
    ALWAYS_PARTIAL,
    CALENDAR_IDS,
    IN_ENTRY,
    MAX_CALENDARS,
    AllCalendarsQuery,
    CalendarIdsQuery,
    ComposedQuery,
    FailureQuery,
    MainCalendarsQuery,
    MarginsQuery,
    ParametersInQuery,
    ProviderQuery,
    RangeQuery,
    SlotShapeQuery,
)
from app.schemas.schedules import SchedulesBody

# Windows of all schedules times days of the range: enough for 1 000 users with 5 windows each and a year.
MAX_WINDOW_DAYS = 2_000_000
MAX_USERS = 1000


class ZoneQuery(QuerySchema):
    """The zone of local times in the request, from the query. It overrides the header."""

    timeZone = Zone(metadata={"description": "The same as the header `X-Timezone`, which it overrides."})


class ZoneHeader(QuerySchema):
    """The zone of local times in the request, from the header."""

    in_query = ZoneQuery

    zone = Zone(
        data_key="X-Timezone",
        load_default=ZoneInfo("UTC"),
        metadata={"description": "Time zone of the times in the request, an IANA name.", "default": "UTC"},
    )


# Clients share one query between busy and scheduling routes.
_OF_SLOTS = frozenset(name for each in (MarginsQuery, SlotShapeQuery, FailureQuery) for name in each().fields)


class BusyQuery(RangeQuery, ProviderQuery, AllCalendarsQuery, ComposedQuery):
    """What to read for busy periods."""

    ignored = _OF_SLOTS


class UserBusyQuery(CalendarIdsQuery, BusyQuery):
    """Which calendars of a user to read."""


class UsersBusyQuery(BusyQuery):
    """Which calendars of several users to read."""

    messages: ClassVar[Mapping[str, str]] = {"calendarIds": IN_ENTRY}


class OrganizationBusyQuery(BusyQuery):
    """Which calendars of the members to read."""


class SlotsQuery(RangeQuery, ProviderQuery, MainCalendarsQuery, MarginsQuery, SlotShapeQuery, ComposedQuery):
    """The parameters of a slot search."""


class UserSlotsQuery(CalendarIdsQuery, FailureQuery, SlotsQuery):
    """Slots of one user."""


class UsersSlotsQuery(SlotsQuery):
    """Slots of several users."""

    messages: ClassVar[Mapping[str, str]] = {"calendarIds": IN_ENTRY, "onFailure": ALWAYS_PARTIAL}


class OrganizationSlotsQuery(SlotsQuery):
    """Slots of every member of an organization."""

    messages: ClassVar[Mapping[str, str]] = {"onFailure": ALWAYS_PARTIAL}


class UserCalendarsSchema(ParametersInQuery):
    """A user, and the calendars that count instead of the usual ones."""

    id = Reference(USER_ID, required=True, metadata={"description": "The id of the user."})
    calendarIds = fields.List(
        PathText(longest=1024),
        load_default=list,
        validate=at_most(MAX_CALENDARS),
        metadata=CALENDAR_IDS,
    )


class BusyUsersBody(ParametersInQuery):
    """Several users."""

    # Clients share one body and one query between busy and scheduling routes.
    ignored = BusyQuery.ignored
    messages: ClassVar[Mapping[str, str]] = {"calendarIds": IN_ENTRY}

    users = fields.List(
        fields.Nested(UserCalendarsSchema),
        required=True,
        validate=at_most(MAX_USERS),
        metadata={"description": "The users. The answer has an entry for each, in this order."},
    )


class WantedUserSchema(SchedulesBody):
    """One of several users; its own calendars, schedules and overrides replace those of the request."""

    id = Reference(USER_ID, required=True, metadata={"description": "The id of the user."})
    calendarIds = fields.List(
        PathText(longest=1024),
        load_default=list,
        validate=at_most(MAX_CALENDARS),
        metadata=CALENDAR_IDS,
    )


class UsersBody(SchedulesBody):
    """Several users."""

    messages: ClassVar[Mapping[str, str]] = {"calendarIds": IN_ENTRY}

    users = fields.List(
        fields.Nested(WantedUserSchema),
        required=True,
        validate=at_most(MAX_USERS),
        metadata={"description": "The users. The answer has an entry for each, in this order."},
    )
