"""Schemas of requests and responses that explain why a moment is, or is not, offered."""

from __future__ import annotations

from marshmallow import Schema, fields

from app.schemas.availability import OrganizationSlotsQuery, UserSlotsQuery, UsersSlotsQuery
from app.schemas.availability_answers import (
    FAILED_CALENDARS,
    FAILED_USERS,
    OPTIONS,
    USER,
    BusyPeriodSchema,
    FailedEntrySchema,
    OptionsSchema,
    SlotSchema,
)
from app.schemas.calendars import CALENDAR_ID, PROVIDER
from app.schemas.errors import CONNECTION_ID, FailedCalendarSchema, FailedUserSchema
from app.schemas.fields import Instant, OneOf, QuerySchema, Timestamp, WholeBody, Word, about, given, list_of
from providers import registry
from scheduling.explain import Verdict

# Reasons for users whose busy periods the engine does not get.
CALENDAR_UNREAD = "calendarUnread"
NO_CALENDARS = "noCalendars"
# In the dashboard only: for an unknown user the API answers 404.
NO_USER = "noUser"
REASONS = (*Verdict, CALENDAR_UNREAD, NO_CALENDARS)

AT = about("The moment that is explained.", "2026-11-20T09:05:00.000Z")


class MomentQuery(QuerySchema):
    """The moment to explain."""

    at = given(Instant, "The moment to explain, ISO 8601. It may lie outside the range.")


class UserMomentQuery(MomentQuery, UserSlotsQuery):
    """A moment of one user."""


class UsersMomentQuery(MomentQuery, UsersSlotsQuery):
    """A moment of several users."""


class OrganizationMomentQuery(MomentQuery, OrganizationSlotsQuery):
    """A moment of every member of an organization."""


class BlockingSchema(BusyPeriodSchema):
    """A busy period that covers the moment when padding is added."""

    calendarId = fields.String(required=True, metadata=CALENDAR_ID)
    provider = Word(registry.names(), required=True, metadata=PROVIDER)
    connectionId = fields.String(required=True, metadata=CONNECTION_ID)
    email = given(
        fields.String, "The address of the account; null if it is not known.", "ada@example.com", null=True
    )
    paddedStart = given(Timestamp, "`start`, and the padding before it.")
    paddedEnd = given(Timestamp, "`end`, and the padding after it.")


class HeldBlockingSchema(BusyPeriodSchema):
    """Held time that covers the moment when padding is added."""

    paddedStart = given(Timestamp, "`start`, and the padding before it.")
    paddedEnd = given(Timestamp, "`end`, and the padding after it.")
    expiresAt = given(Timestamp, "When the hold expires.")


class ExplainedSchema(Schema):
    """Why the moment is, or is not, offered."""

    offered = given(fields.Boolean, "Whether some slot holds the moment, its end not included.")
    reason = Word(REASONS, required=True, metadata=about("The verdict; the set is closed."))
    sentence = given(
        fields.String,
        "The same for people, in the zone of the request.",
        "10:35 on Thursday 3 December 2026 (Europe/Berlin) is not offered: ada@example.com is busy "
        "from 10:00 to 10:30, and 10 minutes of padding keep it blocked until 10:40.",
    )
    slot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata=about("The slot that holds the moment; of several, the one that starts first."),
    )
    startsSlot = given(fields.Boolean, "Whether a slot starts at the moment.")
    free = fields.Nested(
        BusyPeriodSchema,
        required=True,
        allow_none=True,
        metadata=about("The whole stretch of free time around the moment."),
    )
    window = fields.Nested(
        BusyPeriodSchema,
        required=True,
        allow_none=True,
        metadata=about("The window around the moment, within the range; the range without one."),
    )
    nextSlot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata=about("The first slot that starts after the moment."),
    )
    previousSlot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata=about("The last slot that starts before the moment; it may hold it."),
    )
    blockedBy = list_of(
        BlockingSchema,
        about(
            "The busy periods that cover the moment once they are padded; up to `maxOverlaps` "
            "of them block nothing. Each is clipped to the range extended by `padding` on both sides."
        ),
    )
    heldBy = fields.List(
        fields.Nested(HeldBlockingSchema),
        metadata=about("The held time that covers the moment; absent if there is none."),
    )


class UserExplainedSchema(ExplainedSchema):
    """Why the moment of a user is, or is not, offered."""

    at = Timestamp(required=True, metadata=AT)
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)


class MemberExplainedSchema(ExplainedSchema):
    """Why the moment of a member is, or is not, offered."""

    userId = fields.String(required=True, metadata=USER)


class OrganizationExplainedSchema(Schema):
    """The members whose slots hold the moment, and an explanation for every member."""

    at = Timestamp(required=True, metadata=AT)
    offeredBy = fields.List(
        fields.String(),
        required=True,
        metadata=about("The ids of the members whose slots hold the moment.", ["ada"]),
    )
    members = list_of(MemberExplainedSchema, about("An explanation for every member, by user id."))
    options = fields.Nested(OptionsSchema, required=True, metadata=OPTIONS)


class UserExplainedAnswer(WholeBody):
    """The explanation for one user, and the calendars that could not be read."""

    data = fields.Nested(UserExplainedSchema, required=True)
    failedCalendars = list_of(FailedCalendarSchema, FAILED_CALENDARS)


class ExplainedEntrySchema(UserExplainedSchema):
    """One of several users, with the explanation."""

    userId = fields.String(required=True, metadata=USER)
    status = given(fields.String, "Always `ok`.", const="ok")
    failedCalendars = list_of(FailedCalendarSchema, FAILED_CALENDARS)


class UsersExplainedAnswer(WholeBody):
    """An entry for each user asked for, in the order of the request."""

    data = fields.List(
        OneOf(
            "UserExplainedEntry",
            "status",
            {"ok": ExplainedEntrySchema, "error": FailedEntrySchema},
            meaning="One of several users: the explanation (`ok`), or why there is none (`error`).",
        ),
        required=True,
        metadata=about("An entry for each user of the request, in the same order."),
    )


class OrganizationExplainedAnswer(WholeBody):
    """The explanations for all members, and the members with a calendar that could not be read."""

    data = fields.Nested(OrganizationExplainedSchema, required=True)
    failedUsers = list_of(FailedUserSchema, FAILED_USERS)
