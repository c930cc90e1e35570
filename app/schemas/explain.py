"""Schemas of requests and responses that explain why a moment is, or is not, offered."""

from __future__ import annotations

from marshmallow import Schema, fields

from app.availability.explanation import REASONS
from app.http.fast_args import QuerySchema
from app.http.responses import WholeBody
from app.schemas.availability import (
    BusyPeriodSchema,
    OptionsSchema,
    OrganizationSlotsQuery,
    SlotSchema,
    UserSlotsQuery,
)
from app.schemas.errors import FailedCalendarSchema, FailedUserSchema
from app.schemas.fields import Instant, Timestamp, Word
from providers.names import ProviderName


class MomentQuery(QuerySchema):
    """The moment to explain."""

    at = Instant(
        required=True,
        metadata={"description": "The moment to explain, ISO 8601. It may lie outside the range."},
    )


class UserMomentQuery(MomentQuery, UserSlotsQuery):
    """A moment of one user."""


class OrganizationMomentQuery(MomentQuery, OrganizationSlotsQuery):
    """A moment of every member of an organization."""


class BlockingSchema(BusyPeriodSchema):
    """A busy period that covers the moment when padding is added."""

    calendarId = fields.String(required=True)
    provider = Word(tuple(ProviderName), required=True)
    email = fields.String(
        required=True, allow_none=True, metadata={"description": "The address of the account."}
    )
    paddedStart = Timestamp(required=True)
    paddedEnd = Timestamp(required=True)


class ExplainedSchema(Schema):
    """Why the moment is, or is not, offered."""

    offered = fields.Boolean(
        required=True, metadata={"description": "Whether some slot holds the moment, its end not included."}
    )
    reason = Word(REASONS, required=True, metadata={"description": "The verdict; the set is closed."})
    sentence = fields.String(
        required=True,
        metadata={
            "description": "The same for people, in the zone of the request.",
            "examples": [
                "10:35 on Thursday 3 December (Europe/Berlin) is not offered: ada@example.com is busy from "
                "10:00 to 10:30, and 10 minutes of padding keep it blocked until 10:40."
            ],
        },
    )
    slot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata={"description": "The slot that holds the moment; of several, the one that starts first."},
    )
    startsSlot = fields.Boolean(
        required=True, metadata={"description": "Whether a slot starts at the moment."}
    )
    free = fields.Nested(
        BusyPeriodSchema,
        required=True,
        allow_none=True,
        metadata={"description": "The whole stretch of free time around the moment."},
    )
    window = fields.Nested(
        BusyPeriodSchema,
        required=True,
        allow_none=True,
        metadata={"description": "The window around the moment, within the range; the range without one."},
    )
    nextSlot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata={"description": "The first slot that starts after the moment."},
    )
    previousSlot = fields.Nested(
        SlotSchema,
        required=True,
        allow_none=True,
        metadata={"description": "The last slot that starts before the moment; it may hold it."},
    )
    blockedBy = fields.List(
        fields.Nested(BlockingSchema),
        required=True,
        metadata={
            "description": "The busy periods that cover the moment once they are padded; up to `maxOverlaps` "
            "of them block nothing. Each is clipped to the range extended by `padding` on both sides."
        },
    )


class UserExplainedSchema(ExplainedSchema):
    """Why the moment of a user is, or is not, offered."""

    at = Timestamp(required=True)
    options = fields.Nested(OptionsSchema, required=True)


class MemberExplainedSchema(ExplainedSchema):
    """Why the moment of a member is, or is not, offered."""

    userId = fields.String(required=True)


class OrganizationExplainedSchema(Schema):
    """The members whose slots hold the moment, and an explanation for every member."""

    at = Timestamp(required=True)
    offeredBy = fields.List(fields.String(), required=True, metadata={"description": "By user id."})
    members = fields.List(fields.Nested(MemberExplainedSchema), required=True)
    options = fields.Nested(OptionsSchema, required=True)


class UserExplainedAnswer(WholeBody):
    """The explanation for one user, and the calendars that could not be read."""

    data = fields.Nested(UserExplainedSchema, required=True)
    failedCalendars = fields.List(fields.Nested(FailedCalendarSchema), required=True)


class OrganizationExplainedAnswer(WholeBody):
    """The explanations for all members, and the members with a calendar that could not be read."""

    data = fields.Nested(OrganizationExplainedSchema, required=True)
    failedUsers = fields.List(fields.Nested(FailedUserSchema), required=True)
