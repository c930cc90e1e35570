"""Schemas of events in responses."""

from __future__ import annotations

from marshmallow import Schema, fields

from app.schemas.availability_answers import FAILED_CALENDARS
from app.schemas.calendars import CALENDAR_ID, ORIGINAL, PROVIDER
from app.schemas.errors import FailedCalendarSchema
from app.schemas.events import GUEST_NAME, LOCATION, META_ID, SUBJECT
from app.schemas.fields import (
    Timestamp,
    WholeBody,
    Word,
    about,
    given,
    list_of,
)
from app.schemas.parameters import NEXT_CURSOR
from providers import registry
from providers.events import EventStatus, ResponseStatus, ShowAs, Visibility

EVENT_ID = about("The id at the provider.", "5k0q7ja3hrfgt8e1u6p2m9c4db")
GUEST = about("The address of the guest.", "grace@example.com")
GUESTS = about("The guests.")
SELF = about("Whether it is the account itself.")
ORIGINALS = about("The providers' own records, untouched, one for each copy.")
RESPONSE = about("What the attendee has answered.", enum=[str(each) for each in ResponseStatus])


class AttendeeSchema(Schema):
    """A guest of an event."""

    email = fields.String(required=True, metadata=GUEST)
    self = fields.Boolean(required=True, metadata=SELF)
    responseStatus = fields.String(required=True, metadata=RESPONSE)
    name = fields.String(metadata=GUEST_NAME)
    optional = fields.Boolean(metadata=about("Only when true: the event can take place without the guest."))
    resource = fields.Boolean(metadata=about("Only when true: it is a resource, such as a room."))
    original = fields.Raw(required=True, metadata=ORIGINAL)


class EventFieldsSchema(Schema):
    """Fields of every event."""

    subject = fields.String(required=True, metadata=SUBJECT)
    description = given(fields.String, "A text of several lines.")
    descriptionHtml = fields.String(
        metadata=about(
            "The description as HTML without anything that is executed, loaded or styled. Only where the "
            "provider has HTML; of an event of Microsoft only when it is read by its id.",
            "<p>A <b>text</b></p>",
        )
    )
    location = fields.String(required=True, metadata=LOCATION)
    start = given(Timestamp, "The first moment of the event.")
    end = given(Timestamp, "The end of the event, which is not a part of it.", "2026-11-20T10:00:00.000Z")
    allDay = fields.Boolean(metadata=about("Only when true: it spans local midnights."))
    meetingUrl = fields.String(
        metadata=about(
            "The address of the online meeting. Only where the event is held online.",
            "https://meet.google.com/abc-defg-hij",
        )
    )
    status = Word(
        tuple(EventStatus), metadata=about("Whether it takes place. Cancelled events are not listed.")
    )
    showAs = Word(
        tuple(ShowAs),
        metadata=about(
            "How the calendar shows its owner during the event: `busy`, `tentative` and `outOfOffice` make "
            "busy. Their response to the event does not count."
        ),
    )
    visibility = Word(
        tuple(Visibility), metadata=about("The readers of a shared calendar who see the content.")
    )
    reminders = fields.List(
        fields.Integer(),
        allow_none=True,
        metadata=about("Minutes before the start. Null means the reminders of the calendar.", [10]),
    )
    timeZone = fields.String(
        metadata=about(
            "The zone in which the event is stored, an IANA name. Only when the provider gives it, and never "
            "for an all-day event.",
            "Europe/Berlin",
        )
    )
    recurrence = fields.List(
        fields.String(),
        metadata=about(
            "Only of a series, which its own id reads: how it recurs, as lines of RFC 5545 in its `timeZone`."
            " Deleted occurrences are in `EXDATE` at CalDAV only.",
            ["RRULE:FREQ=WEEKLY;BYDAY=TH;COUNT=10"],
        ),
    )


class OrganizerSchema(Schema):
    """The person or calendar that an event belongs to."""

    email = given(
        fields.String,
        "The address; for a calendar that is not a main one, its id at Google. Empty when unknown.",
        "ada@example.com",
    )
    self = given(fields.Boolean, "Whether it is the account itself.")
    name = fields.String(metadata=about("Only when the provider gives one.", "Ada Lovelace"))


class EventCopySchema(Schema):
    """The event as one calendar has it."""

    id = fields.String(required=True, metadata=EVENT_ID)
    calendarId = fields.String(required=True, metadata=CALENDAR_ID)
    provider = Word(registry.names(), required=True, metadata=PROVIDER)
    organizer = fields.Nested(
        OrganizerSchema, metadata=about("Who invites; only when the provider gives it.")
    )
    webLink = fields.String(
        metadata=about(
            "The event's page at the provider; only when the provider gives one.",
            "https://www.google.com/calendar/event?eid=N2MxZjBhNmU",
        )
    )
    recurringEventId = fields.String(
        metadata=about("The same as `seriesId`; only when the event is an occurrence of a series.")
    )
    seriesId = fields.String(
        metadata=about("The id of the series; only when the event is an occurrence of one.")
    )
    originalStart = Timestamp(
        metadata=about("The start that the series gives to the occurrence, also if it was moved.")
    )
    updatedAt = Timestamp(metadata=about("The last change of the event; only when the provider gives it."))
    etag = fields.String(
        metadata=about(
            "Changes with every change of the event. Send it as `If-Match` with a change or a "
            "deletion. Only when the provider gives one.",
            'W/"3529324800000000"',
        )
    )


class EventSchema(EventFieldsSchema, EventCopySchema):
    """An event of one calendar."""

    metaId = fields.String(metadata=about("Only when the event has one."))
    attendees = list_of(AttendeeSchema, GUESTS)
    original = fields.Raw(required=True, metadata=ORIGINAL)


class EventAnswer(WholeBody):
    """One event."""

    data = fields.Nested(EventSchema, required=True)


class UnifiedAttendeeSchema(Schema):
    """A guest of a unified event."""

    email = fields.String(required=True, metadata=GUEST)
    self = fields.Boolean(required=True, metadata=SELF)
    originals = fields.List(fields.Raw(metadata=ORIGINAL), required=True, metadata=ORIGINALS)


class UnifiedEventSchema(EventFieldsSchema):
    """One event in several accounts; its fields are those of the first copy."""

    metaId = fields.String(required=True, metadata=META_ID)
    attendees = list_of(UnifiedAttendeeSchema, GUESTS)
    originals = fields.List(fields.Raw(metadata=ORIGINAL), required=True, metadata=ORIGINALS)
    events = list_of(EventCopySchema, about("Where the copies are, by provider."))


class UnifiedAnswer(WholeBody):
    """A unified event, and the accounts whose copy could not be read."""

    data = fields.Nested(UnifiedEventSchema, required=True)
    failedCalendars = list_of(
        FailedCalendarSchema,
        about(
            "Accounts whose copy could not be read, each named by its main calendar. Empty "
            "after a write, which fails when one could not be written."
        ),
    )


class EventsAnswer(WholeBody):
    """The events that could be read, and the calendars that could not."""

    data = list_of(EventSchema, about("The events, by `start`."))
    failedCalendars = list_of(FailedCalendarSchema, FAILED_CALENDARS)
    nextCursor = fields.String(allow_none=True, metadata=NEXT_CURSOR)
