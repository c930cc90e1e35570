"""Schemas of busy and scheduling responses."""

from __future__ import annotations

from marshmallow import Schema, fields

from app.schemas.availability import (
    OVERRIDE_DATE,
    OVERRIDE_WINDOWS,
    WEEKDAYS,
    WINDOW_DAYS,
    WINDOW_END,
    WINDOW_START,
    LocalDate,
)
from app.schemas.errors import CODE, REASON, FailedCalendarSchema, FailedUserSchema
from app.schemas.fields import OneOf, Timestamp, WholeBody, Word, about, given, list_of
from app.schemas.parameters import ALIGNMENTS

USER = about("The id of the user.", "ada")
BUSY = about("The busy periods, merged, clipped to the range, and by `start`.")
SLOTS = about("The available slots, by `start`.")
OPTIONS = about("The parameters that the slots were computed with.")
FAILED_USERS = about(
    "The members with a calendar that could not be read. They never appear as free. Empty "
    "when everything was read."
)
FAILED_CALENDARS = about(
    "The calendars that could not be read. They never appear as free. Empty when everything was read."
)


class BusyPeriodSchema(Schema):
    """A period of time, with an exclusive end."""

    start = given(Timestamp, "The first moment of the period.")
    end = given(Timestamp, "The end of the period, which is not a part of it.", "2026-11-20T09:30:00.000Z")


class SlotSchema(BusyPeriodSchema):
    """A free interval of exactly ``slotDuration``."""


class MemberSlotSchema(SlotSchema):
    """A slot of one member."""

    userId = fields.String(required=True, metadata=USER)


class DateWindowAnswerSchema(Schema):
    """A window on one date, as in the request."""

    start = fields.String(required=True, metadata=WINDOW_START | {"examples": ["09:00"]})
    end = fields.String(required=True, metadata=WINDOW_END)


class OverrideAnswerSchema(Schema):
    """The windows of one date, as in the request."""

    date = LocalDate(required=True, metadata=OVERRIDE_DATE)
    windows = list_of(DateWindowAnswerSchema, OVERRIDE_WINDOWS)


class OptionsSchema(Schema):
    """The parameters that the slots were computed with."""

    start = given(Timestamp, "The first moment of the range.")
    end = given(Timestamp, "The end of the range, which is not a part of it.", "2026-11-21T09:00:00.000Z")
    maxOverlaps = given(fields.Integer, "How many busy periods may overlap a free moment.")
    padding = given(fields.Integer, "Minutes kept free before and after busy periods.")
    slotDuration = given(fields.Integer, "How long a slot is, in minutes.", 30)
    timeZone = given(
        fields.String,
        "The zone in which local times of the request were read, an IANA name.",
        "Europe/Berlin",
    )
    earliestTimeEachDay = fields.String(
        metadata=about(
            "Local time at which the daily window opens, `HH:MM`; only when it was given.", "09:00"
        )
    )
    latestTimeEachDay = fields.String(
        metadata=about(
            "Local time at which the daily window closes, `HH:MM`; only when it was given.", "17:00"
        )
    )
    slotStep = fields.Integer(metadata=about("Minutes between the starts of slots; only when it was given."))
    align = Word(ALIGNMENTS, metadata=about("Only when it was given as `clock`."))
    paddingBefore = fields.Integer(
        metadata=about("Minutes kept free before busy periods; only when it was given.")
    )
    paddingAfter = fields.Integer(
        metadata=about("Minutes kept free after busy periods; only when it was given.")
    )
    minimumNotice = fields.Integer(
        metadata=about("Minutes from now before which no slot starts; only when it was given.")
    )
    limit = fields.Integer(metadata=about("The most slots of each user; only when it was given.", 5))
    overrides = fields.List(
        fields.Nested(OverrideAnswerSchema),
        metadata=about("The overrides of dates that applied; only when they were given."),
    )
    profile = fields.Boolean(
        metadata=about("True where the stored availability of a user applied; absent otherwise.", True)
    )


class UserSlotsSchema(Schema):
    """Slots of one user."""

    availableSlots = list_of(SlotSchema, SLOTS)
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)


class UserSlotsAnswer(WholeBody):
    """Slots of one user, and the calendars that could not be read."""

    data = fields.Nested(UserSlotsSchema, required=True)
    failedCalendars = list_of(
        FailedCalendarSchema,
        about("Empty, unless `onFailure=partial` lets the request succeed without them."),
    )


class OrganizationSlotsSchema(Schema):
    """Slots of all members."""

    availableSlots = list_of(
        MemberSlotSchema, about("The available slots of every member, by `start`, then by `userId`.")
    )
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)


class OrganizationSlotsAnswer(WholeBody):
    """Slots of all members who could be read, and those who could not."""

    data = fields.Nested(OrganizationSlotsSchema, required=True)
    failedUsers = list_of(FailedUserSchema, FAILED_USERS)


class WindowAnswerSchema(DateWindowAnswerSchema):
    """A weekly schedule window, as in the request."""

    days = fields.List(Word(WEEKDAYS), required=True, metadata=WINDOW_DAYS)


class SlotsEntrySchema(Schema):
    """One of several users, with slots."""

    userId = fields.String(required=True, metadata=USER)
    status = given(fields.String, "Always `ok`.", const="ok")
    availableSlots = list_of(SlotSchema, SLOTS)
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)
    calendarIds = fields.List(
        fields.String(),
        required=True,
        metadata=about("The calendars that the slots were computed from.", ["ada@example.com"]),
    )
    schedules = list_of(
        WindowAnswerSchema, about("The schedules that applied to this user; empty when none did.")
    )
    failedCalendars = list_of(FailedCalendarSchema, about("Empty: all calendars of this user were read."))


class FailedEntrySchema(Schema):
    """One of several users, with the reason why there are no slots."""

    userId = fields.String(required=True, metadata=USER)
    status = given(fields.String, "Always `error`.", const="error")
    error = given(fields.String, "One sentence that names what is wrong.", "User has no connected calendars")
    code = fields.String(required=True, metadata=CODE)
    reason = fields.String(metadata=REASON)
    failedCalendars = list_of(
        FailedCalendarSchema, about("The calendars that could not be read; empty when the user has none.")
    )


class UsersSlotsAnswer(WholeBody):
    """An entry for each user asked for, in the order of the request."""

    data = fields.List(
        OneOf(
            "UserEntry",
            "status",
            {"ok": SlotsEntrySchema, "error": FailedEntrySchema},
            meaning="One of several users: slots (`ok`), or why there are none (`error`).",
        ),
        required=True,
        metadata=about("An entry for each user of the request, in the same order."),
    )


class BusyEntrySchema(Schema):
    """One of several users, with busy periods."""

    userId = fields.String(required=True, metadata=USER)
    status = given(fields.String, "Always `ok`.", const="ok")
    busy = list_of(BusyPeriodSchema, BUSY)
    calendarIds = fields.List(
        fields.String(), required=True, metadata=about("The calendars of the user.", ["ada@example.com"])
    )
    failedCalendars = list_of(FailedCalendarSchema, FAILED_CALENDARS)


class UsersBusyAnswer(WholeBody):
    """An entry for each user asked for, in the order of the request."""

    data = fields.List(
        OneOf(
            "UserBusyEntry",
            "status",
            {"ok": BusyEntrySchema, "error": FailedEntrySchema},
            meaning="One of several users: busy periods (`ok`), or why there are none (`error`).",
        ),
        required=True,
        metadata=about("An entry for each user of the request, in the same order."),
    )


class UserBusyAnswer(WholeBody):
    """Busy periods of one user, and the calendars that could not be read."""

    data = list_of(BusyPeriodSchema, BUSY)
    failedCalendars = list_of(FailedCalendarSchema, FAILED_CALENDARS)


class OrganizationBusyAnswer(WholeBody):
    """Busy periods of all members, and the members with a calendar that could not be read."""

    data = list_of(
        BusyPeriodSchema, about("The periods in which at least one member is busy, merged and by `start`.")
    )
    failedUsers = list_of(FailedUserSchema, FAILED_USERS)
