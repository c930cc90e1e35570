"""Schemas of busy and scheduling requests."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from marshmallow import ValidationError, fields

from app.http.fast_args import QuerySchema
from app.schemas.fields import (
    USER_ID,
    Clock,
    Identifier,
    Instant,
    IntegerText,
    PathText,
    Several,
    TrueOrFalse,
    Word,
    Zone,
    at_most,
)
from app.schemas.schedules import SchedulesBody
from providers.names import ProviderName

ALIGNMENTS = ("start", "clock")
ON_FAILURE = ("fail", "partial")

MAX_MINUTES = 10_080
MAX_OVERLAPS = 1000
# Windows of all schedules times days of the range: enough for 1 000 users with 5 windows each and a year.
MAX_WINDOW_DAYS = 2_000_000
# A year.
MAX_NOTICE = 527_040
MAX_SLOTS_OF_A_USER = 1_000_000
MAX_CALENDARS = 200
MAX_USERS = 1000


PRIMARY_ONLY = {"description": "Only the main calendar of each account."}
CALENDAR_IDS = {"description": "Only these calendars; `primary` is the main one of each account."}


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


class RangeQuery(QuerySchema):
    """The time range."""

    start = Instant(required=True, metadata={"description": "ISO 8601; a bare date is its first moment."})
    end = Instant(required=True, metadata={"description": "ISO 8601, not included. After `start`."})
    provider = Several(
        Word(tuple(ProviderName)), load_default=list, metadata={"description": "Only accounts of these."}
    )


class UserBusyQuery(RangeQuery):
    """Which calendars of a user to read."""

    calendarIds = Several(
        PathText(longest=1024),
        load_default=list,
        validate=at_most(MAX_CALENDARS),
        metadata=CALENDAR_IDS,
    )
    primaryOnly = TrueOrFalse(load_default=False, metadata=PRIMARY_ONLY)


class OrganizationBusyQuery(RangeQuery):
    """Which calendars of the members to read."""

    primaryOnly = TrueOrFalse(load_default=False, metadata=PRIMARY_ONLY)


class SlotsQuery(RangeQuery):
    """The parameters of a slot search."""

    slotDuration = IntegerText(
        least=1,
        most=MAX_MINUTES,
        load_default=30,
        metadata={"description": "How long a slot is, in minutes."},
    )
    padding = IntegerText(
        least=0,
        most=MAX_MINUTES,
        load_default=0,
        metadata={"description": "Minutes kept free before and after busy periods."},
    )
    paddingBefore = IntegerText(
        least=0,
        most=MAX_MINUTES,
        metadata={"description": "Minutes kept free before busy periods; default: `padding`."},
    )
    paddingAfter = IntegerText(
        least=0,
        most=MAX_MINUTES,
        metadata={"description": "Minutes kept free after busy periods; default: `padding`."},
    )
    maxOverlaps = IntegerText(
        least=0,
        most=MAX_OVERLAPS,
        load_default=0,
        metadata={"description": "How many busy periods may overlap a free moment."},
    )
    slotStep = IntegerText(
        least=1,
        most=MAX_MINUTES,
        metadata={"description": "Minutes between the starts of slots; default: `slotDuration`."},
    )
    align = Word(
        ALIGNMENTS,
        load_default="start",
        metadata={"description": "`clock`: slots start at multiples of `slotStep` on the local clock."},
    )
    minimumNotice = IntegerText(
        least=0,
        most=MAX_NOTICE,
        metadata={"description": "No slot starts earlier than this many minutes from now."},
    )
    limit = IntegerText(
        least=1,
        most=MAX_SLOTS_OF_A_USER,
        metadata={"description": "The most slots of each user, earliest first; default: all."},
    )
    earliestTimeEachDay = Clock(
        metadata={"description": "Local time at which the daily window opens. After its end: overnight."}
    )
    latestTimeEachDay = Clock(
        metadata={
            "description": "Local time at which the daily window closes; `00:00` is the end of the day.",
            "examples": ["17:00"],
        }
    )

    def check(self, data: dict[str, Any]) -> None:
        """Equal times mean the whole day if both are midnight; otherwise they are an error."""
        earliest, latest = data.get("earliestTimeEachDay"), data.get("latestTimeEachDay")
        if earliest is not None and earliest == latest and earliest != 0:
            raise ValidationError("must differ from earliestTimeEachDay", "latestTimeEachDay")


class UserSlotsQuery(SlotsQuery):
    """Slots of one user."""

    calendarIds = Several(
        PathText(longest=1024),
        load_default=list,
        validate=at_most(MAX_CALENDARS),
        metadata=CALENDAR_IDS,
    )
    onFailure = Word(
        ON_FAILURE,
        load_default="fail",
        metadata={"description": "`partial`: answer although some calendars could not be read."},
    )


class OrganizationSlotsQuery(SlotsQuery):
    """Slots of every member of an organization."""


class WantedUserSchema(SchedulesBody):
    """One of several users; its own calendars, schedules and overrides replace those of the request."""

    id = Identifier(USER_ID, required=True, metadata={"description": "The id of the user."})
    calendarIds = fields.List(
        PathText(longest=1024),
        load_default=list,
        validate=at_most(MAX_CALENDARS),
        metadata=CALENDAR_IDS,
    )


class UsersBody(SchedulesBody):
    """Several users."""

    users = fields.List(
        fields.Nested(WantedUserSchema),
        required=True,
        validate=at_most(MAX_USERS),
        metadata={"description": "The users. The answer has an entry for each, in this order."},
    )
