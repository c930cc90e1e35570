"""Schemas of the changes in calendars."""

from __future__ import annotations

from marshmallow import Schema, fields

from app.schemas.availability_answers import FAILED_CALENDARS
from app.schemas.calendars import CALENDAR_ID
from app.schemas.errors import CONNECTION_ID, FailedCalendarSchema
from app.schemas.event_answers import EventSchema
from app.schemas.fields import (
    Instant,
    PathText,
    Several,
    Text,
    WholeBody,
    Word,
    about,
    at_most,
    given,
    list_of,
)
from app.schemas.parameters import CALENDAR_IDS, ProviderQuery

# Each calendar has a token of its provider in the cursor, and is one read.
MAX_CALENDARS_OF_CHANGES = 10
# A request with it fits into what the server reads as the head of a request.
MAX_CURSOR = 65_536

CHANGE_TYPES = UPDATED, DELETED = "updated", "deleted"


class ChangesQuery(ProviderQuery):
    """A range, and calendars; or the cursor of an earlier answer, which has both."""

    start = Instant(metadata=about("ISO 8601; a bare date is its first moment. Required without `cursor`."))
    end = Instant(
        metadata=about("ISO 8601, not included. Without it, the range is as long as the installation allows.")
    )
    calendarIds = Several(
        PathText(longest=1024),
        load_default=list,
        validate=at_most(MAX_CALENDARS_OF_CHANGES),
        metadata=CALENDAR_IDS,
    )
    cursor = Text(longest=MAX_CURSOR, metadata=about("`cursor` of the answer before."))


class ChangeSchema(Schema):
    """An event as it is now, or the id of an event or series that is gone."""

    type = Word(CHANGE_TYPES, required=True, metadata=about("How the event has changed."))
    event = fields.Nested(EventSchema, metadata=about("The event, if `type` is `updated`."))
    id = fields.String(
        metadata=about(
            "If `type` is `deleted`: the id of an event that is gone from the range, or of a series whose "
            "occurrences are all gone, or follow in this answer.",
            "5k0q7ja3hrfgt8e1u6p2m9c4db",
        )
    )
    calendarId = fields.String(required=True, metadata=CALENDAR_ID)
    connectionId = fields.String(required=True, metadata=CONNECTION_ID)


class ChangesAnswer(WholeBody):
    """The changes, and where to continue."""

    data = list_of(ChangeSchema, about("The changes of each calendar, in the order in which they apply."))
    cursor = given(fields.String, "For the next request. It is encrypted, and valid for this user only.")
    more = given(fields.Boolean, "Whether more changes are there already: ask again at once.")
    failedCalendars = list_of(FailedCalendarSchema, FAILED_CALENDARS)
