"""Schemas of busy and scheduling requests, with weekly schedules and overrides of single dates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from marshmallow import ValidationError, fields, pre_load, validates_schema

from app.schemas import timestamps
from app.schemas.fields import (
    USER_ID,
    Body,
    Clock,
    Parsed,
    PathText,
    QuerySchema,
    Reference,
    Word,
    Zone,
    about,
    at_most,
)
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
    OrderQuery,
    ParametersInQuery,
    ProfileQuery,
    ProviderQuery,
    RangeQuery,
    SlotShapeQuery,
)

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

MAX_WINDOWS = 200
MAX_OVERRIDES = 366
MAX_WINDOWS_OF_A_DATE = 10

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)

WINDOW_DAYS = about(
    "The weekdays on which the window opens. An empty array adds no time.", ["monday", "thursday"]
)
WINDOW_START = about("The local time at which the window opens.")
WINDOW_END = about(
    "The local time at which the window closes. `00:00` is the end of the day. A time before "
    "`start` lies on the next day.",
    "17:00",
)


OVERRIDE_DATE = about("The local date whose windows are replaced.")
OVERRIDE_WINDOWS = about(
    "The windows that start on the date. An empty array closes it; the end of an overnight "
    "window of the day before remains."
)


class LocalDate(Parsed[date]):
    """A date of the local calendar, as ``YYYY-MM-DD``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(shape={"format": "date", "examples": ["2026-12-24"]}, **options)

    def parse(self, text: str) -> date:
        """The date."""
        try:
            if not _DATE.fullmatch(text):
                raise ValueError(text)
            day = date.fromisoformat(text)
        except ValueError as error:
            raise ValidationError("must be a date as YYYY-MM-DD") from error
        if not timestamps.FIRST_YEAR <= day.year <= timestamps.LAST_YEAR:
            raise ValidationError(timestamps.OUT_OF_YEARS)
        return day


class DateWindowSchema(Body):
    """A window on one date, in the zone of the request."""

    start = Clock(required=True, metadata=WINDOW_START)
    end = Clock(required=True, metadata=WINDOW_END)

    @validates_schema
    def is_a_window(self, data: dict[str, Any], **_: Any) -> None:
        """Equal times mean the whole day if both are midnight; otherwise they are an error."""
        if data["start"] == data["end"] != 0:
            raise ValidationError("must differ from start", "end")


class WindowSchema(DateWindowSchema):
    """A weekly schedule window, in the zone of the request."""

    days = fields.List(Word(WEEKDAYS), required=True, metadata=WINDOW_DAYS)


class OverrideSchema(Body):
    """The windows of one date, in the zone of the request."""

    date = LocalDate(required=True, metadata=OVERRIDE_DATE)
    windows = fields.List(
        fields.Nested(DateWindowSchema),
        required=True,
        validate=at_most(MAX_WINDOWS_OF_A_DATE),
        metadata=OVERRIDE_WINDOWS,
    )


SCHEDULES = about("Weekly windows. A slot lies inside their union. An empty array means no availability.")


OVERRIDES = about(
    "Dates with windows of their own, instead of the weekly windows that start on them. "
    "Without `schedules`, all other dates are open all day."
)


class SchedulesBody(ParametersInQuery):
    """Weekly schedules, and overrides of single dates; slots may lie in the union of their windows."""

    schedules = fields.List(
        fields.Nested(WindowSchema), load_default=None, validate=at_most(MAX_WINDOWS), metadata=SCHEDULES
    )

    overrides = fields.List(
        fields.Nested(OverrideSchema), load_default=None, validate=at_most(MAX_OVERRIDES), metadata=OVERRIDES
    )

    @validates_schema
    def dates_differ(self, data: dict[str, Any], **_: Any) -> None:
        """A date has one override."""
        known: set[date] = set()
        for index, override in enumerate(data.get("overrides") or ()):
            if override["date"] in known:
                message = f"must not be repeated: {override['date']} has two overrides"
                raise ValidationError({index: {"date": [message]}}, "overrides")
            known.add(override["date"])

    @pre_load
    def one_is_a_list_of_one(self, data: Any, **_: Any) -> Any:
        """Accept a single window as an array of one."""
        if isinstance(data, dict) and isinstance(data.get("schedules"), dict):
            return data | {"schedules": [data["schedules"]]}
        return data


class RequiredSchedulesBody(SchedulesBody):
    """Weekly schedules of one user, or overrides."""

    @validates_schema
    def has_one(self, data: dict[str, Any], **_: Any) -> None:
        """The windows are what the body is for."""
        if data["schedules"] is None and data["overrides"] is None:
            raise ValidationError("is required", "schedules")


# Windows of all schedules times days of the range: enough for 1 000 users with 5 windows each and a year.
MAX_WINDOW_DAYS = 2_000_000
MAX_USERS = 1000


class ZoneQuery(QuerySchema):
    """The zone of local times in the request, from the query. It overrides the header."""

    timeZone = Zone(metadata=about("The same as the header `X-Timezone`, which it overrides."))


class ZoneHeader(QuerySchema):
    """The zone of local times in the request, from the header."""

    in_query = ZoneQuery

    zone = Zone(
        data_key="X-Timezone",
        load_default=ZoneInfo("UTC"),
        metadata=about("Time zone of the times in the request, an IANA name.", default="UTC"),
    )


# Clients share one query between busy and scheduling routes.
_OF_SLOTS = frozenset(
    name
    for each in (MarginsQuery, SlotShapeQuery, FailureQuery, ProfileQuery, OrderQuery)
    for name in each().fields
)


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


class SlotsQuery(
    RangeQuery,
    ProviderQuery,
    MainCalendarsQuery,
    MarginsQuery,
    SlotShapeQuery,
    ProfileQuery,
    ComposedQuery,
):
    """The parameters of a slot search."""


class UserSlotsQuery(CalendarIdsQuery, FailureQuery, SlotsQuery):
    """Slots of one user."""


class UsersSlotsQuery(SlotsQuery):
    """Slots of several users."""

    messages: ClassVar[Mapping[str, str]] = {"calendarIds": IN_ENTRY, "onFailure": ALWAYS_PARTIAL}


class OrganizationSlotsQuery(OrderQuery, SlotsQuery):
    """Slots of every member of an organization."""

    messages: ClassVar[Mapping[str, str]] = {"onFailure": ALWAYS_PARTIAL}


class UserCalendarsSchema(ParametersInQuery):
    """A user, and the calendars that count instead of the usual ones."""

    id = Reference(USER_ID, required=True, metadata=about("The id of the user."))
    calendarIds = fields.List(
        PathText(longest=1024), load_default=list, validate=at_most(MAX_CALENDARS), metadata=CALENDAR_IDS
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
        metadata=about("The users. The answer has an entry for each, in this order."),
    )


class OwnZone(ParametersInQuery):
    """The zone of windows, where it is not that of the request."""

    timeZone = Zone(
        load_default=None,
        metadata=about(
            "The zone of the `schedules` and the `overrides` that apply here; default: that of the request."
        ),
    )


class WantedUserSchema(UserCalendarsSchema, SchedulesBody, OwnZone):
    """One of several users; its own calendars, schedules and overrides replace those of the request."""


class UsersBody(SchedulesBody):
    """Several users."""

    messages: ClassVar[Mapping[str, str]] = {"calendarIds": IN_ENTRY}

    users = fields.List(
        fields.Nested(WantedUserSchema),
        required=True,
        validate=at_most(MAX_USERS),
        metadata=about("The users. The answer has an entry for each, in this order."),
    )
