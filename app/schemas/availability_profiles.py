"""Schemas of what counts for a person: the stored availability of a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from marshmallow import RAISE, Schema, ValidationError, fields, validates_schema

from app.schemas.availability import (
    MAX_OVERRIDES,
    MAX_WINDOWS,
    OVERRIDES,
    SCHEDULES,
    OverrideSchema,
    SchedulesBody,
    WindowSchema,
)
from app.schemas.availability_answers import OverrideAnswerSchema, WindowAnswerSchema
from app.schemas.fields import Body, JsonInteger, PathText, Text, Zone, about, at_most
from app.schemas.parameters import (
    MAX_CALENDARS,
    MAX_MINUTES,
    MAX_NOTICE,
    NOT_HERE,
    NOTICE,
    PARAMETERS,
)
from store.sql.queries.availability_profiles import StoredProfile

ZONE = about(
    "The zone of `schedules`, `overrides` and holidays; default: that of the main calendar.", "Asia/Tokyo"
)
CALENDARS = about(
    "The calendars that count on every route of scheduling, by holds and by `ifFree`, instead of the main "
    "calendar of each account."
)
CONNECTION = about("The id of a connection of the user.", "5b0a3c9d1e7f4a2b8c6d0e1f2a3b4c5d")
CALENDAR = about("The id of a calendar of that connection; `primary` is its main one.", "primary")
BEFORE = about("Minutes kept free before busy periods.", 10)
AFTER = about("Minutes kept free after busy periods.", 10)
HOLIDAYS = about(
    "A holiday of this country closes its day, unless an override has the date. The country is never guessed."
)
COUNTRY = about("ISO 3166 code of the country.", "JP")
SUBDIVISION = about("ISO 3166 code of a subdivision of the country, without the country.", "BY")


class CountingCalendarSchema(Body):
    """A calendar that counts."""

    connectionId = Text(shortest=1, longest=64, required=True, metadata=CONNECTION)
    calendarId = PathText(longest=1024, required=True, metadata=CALENDAR)


class HolidaysSchema(Body):
    """Whose public holidays close days."""

    country = Text(shortest=2, longest=2, required=True, metadata=COUNTRY)
    subdivision = Text(shortest=1, longest=64, metadata=SUBDIVISION)


class ProfileBody(SchedulesBody):
    """What counts for a user; null is the same as not stated. An unknown field would leave hours unstated."""

    error_messages = {"unknown": "is no field of an availability"}  # noqa: RUF012 - never changed

    class Meta:
        unknown = RAISE

    messages: ClassVar[Mapping[str, str]] = dict.fromkeys(PARAMETERS, NOT_HERE)

    timeZone = Zone(allow_none=True, metadata=ZONE)
    schedules = fields.List(
        fields.Nested(WindowSchema), allow_none=True, validate=at_most(MAX_WINDOWS), metadata=SCHEDULES
    )
    overrides = fields.List(
        fields.Nested(OverrideSchema), allow_none=True, validate=at_most(MAX_OVERRIDES), metadata=OVERRIDES
    )
    calendars = fields.List(
        fields.Nested(CountingCalendarSchema),
        allow_none=True,
        validate=at_most(MAX_CALENDARS),
        metadata=CALENDARS,
    )
    paddingBefore = JsonInteger(least=0, most=MAX_MINUTES, allow_none=True, metadata=BEFORE)
    paddingAfter = JsonInteger(least=0, most=MAX_MINUTES, allow_none=True, metadata=AFTER)
    minimumNotice = JsonInteger(least=0, most=MAX_NOTICE, allow_none=True, metadata=NOTICE)
    holidays = fields.Nested(HolidaysSchema, allow_none=True, metadata=HOLIDAYS)

    @validates_schema
    def has_no_gaps(self, data: dict[str, Any], **_: Any) -> None:
        """``calendars`` would leave nothing to read if it were empty."""
        if data.get("calendars") == []:
            raise ValidationError("must have at least one element, or be null", "calendars")


class CountingCalendarAnswerSchema(Schema):
    """A calendar that counts."""

    connectionId = fields.String(required=True, metadata=CONNECTION)
    calendarId = fields.String(required=True, metadata=CALENDAR)


class HolidaysAnswerSchema(Schema):
    """Whose public holidays close days."""

    country = fields.String(required=True, metadata=COUNTRY)
    subdivision = fields.String(metadata=SUBDIVISION)


class ProfileSchema(Schema):
    """What counts for a user on every route of scheduling; null: not stated."""

    timeZone = fields.String(required=True, allow_none=True, metadata=ZONE)
    schedules = fields.List(
        fields.Nested(WindowAnswerSchema), required=True, allow_none=True, metadata=SCHEDULES
    )
    overrides = fields.List(
        fields.Nested(OverrideAnswerSchema), required=True, allow_none=True, metadata=OVERRIDES
    )
    calendars = fields.List(
        fields.Nested(CountingCalendarAnswerSchema), required=True, allow_none=True, metadata=CALENDARS
    )
    paddingBefore = fields.Integer(required=True, allow_none=True, metadata=BEFORE)
    paddingAfter = fields.Integer(required=True, allow_none=True, metadata=AFTER)
    minimumNotice = fields.Integer(required=True, allow_none=True, metadata=NOTICE)
    holidays = fields.Nested(HolidaysAnswerSchema, required=True, allow_none=True, metadata=HOLIDAYS)


def profile_view(profile: StoredProfile) -> dict[str, Any]:
    """A profile for ``ProfileSchema``."""
    country, subdivision = profile.holiday_country, profile.holiday_subdivision
    of_country = country and {"country": country, **({"subdivision": subdivision} if subdivision else {})}
    return {
        "timeZone": profile.time_zone,
        "schedules": profile.schedules,
        "overrides": profile.overrides,
        "calendars": profile.calendars,
        "paddingBefore": profile.padding_before,
        "paddingAfter": profile.padding_after,
        "minimumNotice": profile.minimum_notice,
        "holidays": of_country,
    }
