"""Schemas of events in requests."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from marshmallow import Schema, ValidationError, fields

from app.schemas import timestamps
from app.schemas.availability import ZoneQuery
from app.schemas.connections import Address
from app.schemas.fields import (
    CONTROL,
    Body,
    Instant,
    JsonBoolean,
    JsonInteger,
    Parsed,
    PathText,
    QuerySchema,
    RefusingBody,
    Several,
    Text,
    TrueOrFalse,
    Word,
    Zone,
    about,
    at_most,
)
from app.schemas.parameters import (
    CALENDAR_IDS,
    MAX_CALENDARS,
    CalendarConnectionQuery,
    LongCursorQuery,
    ProviderQuery,
)
from providers import recurrence, registry
from providers.etags import ENTITY_TAG
from providers.event_writes import MAX_REMINDER_MINUTES, MAX_REMINDERS
from providers.events import ResponseStatus, Scope, ShowAs, Visibility
from providers.recurrence import BadRecurrence

# Google's limit on the guests of one event; it also bounds an extended property's value, as metaId is.
MAX_ATTENDEES = 200
MAX_META_ID = 1024
MAX_TEXT = 32_768
MAX_COMMENT = 1024

RESPONSES = (ResponseStatus.ACCEPTED, ResponseStatus.DECLINED, ResponseStatus.TENTATIVE)

# Seven and eight digits are ordinal and calendar dates in basic form. Ten digits are seconds since 1970, sent
# by mistake: as milliseconds they lie before May 1970.
SECONDS = re.compile(r"[0-9]{10}", re.ASCII)
MILLISECONDS = re.compile(r"[0-9]{1,6}|[0-9]{9}|[0-9]{11,15}", re.ASCII)

SUBJECT = about("The title.", "Review")
LOCATION = about("Where it takes place.", "Room 4")
META_ID = about("Ties the copies of a unified event together; of your choice, or generated.")
START = about("ISO 8601; a date alone, in both `start` and `end`, makes an all-day event.")
END = about("Not included: an all-day event ends with the day after its last.")
NOTIFY = about("Whether guests are notified; Microsoft always does. Default: the provider's own.")
# The form of the list with a bare array stays for older clients.
LIST_EDGE = about(
    "ISO 8601, or milliseconds since 1970, for the answer as a bare array. Use `start` and `end`.",
    deprecated=True,
)


class LongText(Parsed[str]):
    """A string that may have several lines."""

    def __init__(self, *, longest: int, **options: Any) -> None:
        super().__init__(shape={"maxLength": longest}, **options)
        self.longest = longest

    def parse(self, text: str) -> str:
        """The validated text."""
        if len(text) > self.longest:
            raise ValidationError(f"must have at most {self.longest} characters")
        if CONTROL.search(re.sub(r"[\t\r\n]", "", text)):
            raise ValidationError("must not contain control characters")
        return text


class ListEdge(Instant):
    """A timestamp in any of the forms of the API, or milliseconds since 1970."""

    def parse(self, text: str) -> timestamps.Timestamp:
        """The timestamp; a local time gets its zone later."""
        if SECONDS.fullmatch(text):
            raise ValidationError(
                "must be milliseconds since 1970, and looks like seconds: multiply it by 1000"
            )
        if not MILLISECONDS.fullmatch(text):
            return super().parse(text)
        try:
            return timestamps.from_milliseconds(int(text))
        except timestamps.NotATimestamp as error:
            raise ValidationError(str(error)) from error


class Meeting(fields.Field[Any]):
    """``true`` for the provider's own online meeting, or ``{url}`` of one elsewhere."""

    def __init__(self, **options: Any) -> None:
        shape = {
            "anyOf": [{"type": "boolean", "const": True}, {"$ref": "#/components/schemas/MeetingUrl"}],
            "description": "`true` for a Meet or Teams link, or the address of a meeting elsewhere.",
        }
        super().__init__(metadata=shape, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        if value is True:
            return True
        if not isinstance(value, dict) or not isinstance(value.get("url"), str):
            raise ValidationError("must be true, or an object with the url of a meeting")
        try:
            return _web_address(value["url"])
        except ValidationError as error:
            raise ValidationError({"url": error.messages}) from error


def _web_address(text: str) -> str:
    if not text.isascii():
        raise ValidationError(
            "must be ASCII: write the host as Punycode (xn--...), and percent-encode the rest"
        )
    try:
        parts = urlsplit(text)
        # Reading `port` raises ValueError if it is not a number.
        readable = parts.port is None or parts.port > 0
    except ValueError:
        readable = False
    if not readable or not re.fullmatch(r"(?i:https?)://[!-~]{1,1000}", text) or not parts.hostname:
        raise ValidationError(
            "must begin with https:// or http://, and have no spaces and 1000 characters at most"
        )
    return text


SHOW_AS = about(
    "How the calendar shows its owner during the event: `free` and `workingElsewhere` do not make busy. "
    "Google stores `tentative`, `outOfOffice` and `workingElsewhere` as `busy`."
)
VISIBILITY = about(
    "The readers of a shared calendar who see the content of the event: those who see the content of others "
    "(`default`), all (`public`; not at Microsoft), or only the owners (`private`)."
)
REMINDERS = about(
    "Minutes before the start. Null means the reminders of the calendar, which only Google has; in a new "
    "event, those that the provider adds. At Microsoft an event has at most one.",
    [10],
)
EVENT_ZONE = about(
    "The zone in which the event is stored, and in which times without an offset are read. Default: the "
    "header `X-Timezone`. Only with both `start` and `end`, and not for an all-day event.",
)


RECURRENCE = about(
    "How a series recurs, as lines of RFC 5545: one `RRULE`, and `EXDATE` and `RDATE` in UTC, with `TZID` "
    "or as dates. The rule follows the `timeZone` of the event, and has to give its `start`. Microsoft has "
    "patterns for some rules and no `EXDATE` or `RDATE`: other parts are 400.",
    ["RRULE:FREQ=WEEKLY;BYDAY=TH;COUNT=10", "EXDATE:20261210T090000Z"],
)
SCOPE = about(
    "The part of its series, if the event is an occurrence: only this `occurrence` (default), this and all "
    "`following` ones, or the whole `series`. For other events all three mean the event.",
)
MAX_LINES = 20
MAX_LINE = 4096


class RecurrenceLines(fields.List[Any]):
    """The lines of a recurrence, which are parsed."""

    def __init__(self) -> None:
        super().__init__(Text(longest=MAX_LINE), metadata={**RECURRENCE, "maxItems": MAX_LINES})

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        lines = super()._deserialize(value, attr, data, **kwargs)
        at_most(MAX_LINES)(lines)
        try:
            found = recurrence.parse(map(str, lines))
            recurrence.require_modest(found)
        except BadRecurrence as error:
            raise ValidationError(str(error)) from error
        return found


GUEST_NAME = about("The name of the guest.", "Grace Hopper")


class AttendeeBody(Body):
    """A guest to invite. An absent field stays as it is for a guest who is on the list already."""

    email = Address(required=True, description="The address of the guest.")
    name = Text(shortest=1, longest=256, metadata=GUEST_NAME)
    optional = JsonBoolean(metadata=about("Whether the event can take place without the guest."))
    resource = JsonBoolean(
        metadata=about(
            "Whether the guest is a resource, such as a room. Google takes it for new guests only."
        )
    )


# Parameters of the query that decide where, when and whether an event is written.
IN_QUERY = (
    *("ifFree", "hold", "scope", "connection", "calendarIds"),
    *("padding", "paddingBefore", "paddingAfter", "maxOverlaps", "minimumNotice", "profile"),
)


class EventChangeBody(RefusingBody):
    """A change of an event; absent fields stay unchanged."""

    refused = dict.fromkeys(IN_QUERY, "must not be given in the body: it is a parameter of the query")
    neutral = {"ifFree": False, "scope": "occurrence", "profile": "apply"}  # noqa: RUF012

    subject = Text(longest=1024, metadata=SUBJECT)
    description = LongText(longest=MAX_TEXT, metadata=about("A text of several lines."))
    location = Text(longest=1024, metadata=LOCATION)
    start = Instant(metadata=START)
    end = Instant(metadata=END)
    attendees = fields.List(
        fields.Nested(AttendeeBody),
        validate=at_most(MAX_ATTENDEES),
        metadata=about("The guests. A change replaces the list; who stays on it keeps their response."),
    )
    meeting = Meeting()
    showAs = Word(tuple(ShowAs), metadata=SHOW_AS)
    visibility = Word(tuple(Visibility), metadata=VISIBILITY)
    reminders = fields.List(
        JsonInteger(least=0, most=MAX_REMINDER_MINUTES),
        allow_none=True,
        validate=at_most(MAX_REMINDERS),
        metadata=REMINDERS,
    )
    recurrence = RecurrenceLines()
    timeZone = Zone(metadata=EVENT_ZONE)
    sendNotifications = JsonBoolean(metadata=NOTIFY)
    metaId = PathText(longest=MAX_META_ID, metadata=META_ID)


class EventBody(EventChangeBody):
    """A new event."""

    start = Instant(required=True, metadata=START)
    end = Instant(required=True, metadata=END)
    id = Text(
        shortest=1,
        longest=1024,
        metadata=about("The event's id at Google, of a-v and 0-9; Microsoft makes its own."),
    )


class ResponseBody(Body):
    """The answer of the account to an invitation."""

    response = Word(RESPONSES, required=True, metadata=about("The answer."))
    comment = LongText(longest=MAX_COMMENT, metadata=about("A text for the organizer.", "I am on leave"))
    notify = JsonBoolean(
        metadata=about(
            "Whether the organizer gets a message. Default: the provider's own, which at Google is none."
        )
    )


class NotifyFor(Body):
    """Which accounts notify guests of a unified event."""

    sendNotificationsFor = fields.List(
        Word(registry.names()), metadata=about("Providers that notify guests; others do not.")
    )


class UnifiedChangeBody(EventChangeBody, NotifyFor):
    """A change of every copy of a unified event."""

    class Meta(Body.Meta):
        exclude = ("sendNotifications",)


class UnifiedBody(EventBody, NotifyFor):
    """A new unified event."""

    class Meta(Body.Meta):
        exclude = ("sendNotifications", "id")


class EventQuery(CalendarConnectionQuery):
    """The account of the calendar."""


class DeleteQuery(CalendarConnectionQuery):
    """The account of the calendar, the part of a series, and whether guests are notified."""

    sendNotifications = TrueOrFalse(metadata=NOTIFY)
    scope = Word(tuple(Scope), load_default=Scope.OCCURRENCE, metadata=SCOPE)


class UnifiedDeleteQuery(ProviderQuery):
    """A filter for copies, and the providers that notify guests."""

    sendNotificationsFor = Several(
        Word(registry.names()), metadata=about("Providers that notify guests; others do not.")
    )


class OptionalZoneHeader(Schema):
    """The zone of local times in the request; a written event is stored in it."""

    in_query = ZoneQuery

    zone = Zone(
        data_key="X-Timezone",
        metadata=about("Time zone of the times in the request, an IANA name.", default="UTC"),
    )


class EntityTag(Parsed[str | None]):
    """An etag that the event must have; None for ``*``, which stands for any."""

    def __init__(self, **options: Any) -> None:
        shape = {"pattern": rf"^(\*|{ENTITY_TAG.pattern})$", "examples": ['W/"3529324800000000"']}
        super().__init__(shape=shape, **options)

    def parse(self, text: str) -> str | None:
        """The validated etag."""
        etag = text.strip()
        if etag == "*":
            return None
        if not ENTITY_TAG.fullmatch(etag):
            raise ValidationError("must be one etag in double quotes, or *")
        return etag


class ConditionHeader(QuerySchema):
    """The condition of a write."""

    etag = EntityTag(
        data_key="If-Match",
        load_default=None,
        metadata=about(
            "The etag of what is written as you read it. When another client has changed it since, nothing "
            "is written and the status is 412. `*` stands for any etag."
        ),
    )


class ListZoneQuery(ZoneQuery):
    """The zone of local times in the request; the list is the only route that deprecates it in the query."""

    timeZone = Zone(
        metadata=about(
            "The same as the header `X-Timezone`, which it overrides. Use the header.", deprecated=True
        )
    )


class ListZoneHeader(OptionalZoneHeader):
    """The zone of local times in the request."""

    in_query = ListZoneQuery


class EventsQuery(ProviderQuery, LongCursorQuery):
    """A range of events: ``start`` and ``end``, or ``minDate`` and ``maxDate`` for a bare array."""

    start = Instant(metadata=about("ISO 8601; a bare date is its first moment."))
    end = Instant(metadata=about("ISO 8601, not included. After `start`."))
    calendarIds = Several(
        PathText(longest=1024), load_default=list, validate=at_most(MAX_CALENDARS), metadata=CALENDAR_IDS
    )
    q = Text(
        shortest=1,
        longest=256,
        metadata=about(
            "Only events with this text in the subject, the description, or the name or address of an "
            "attendee, in any letter case. Not with `minDate` and `maxDate`."
        ),
    )
    updatedSince = Instant(
        metadata=about(
            "Only events that were changed since, or whose last change the provider does not give. Deleted "
            "events are not listed. Not with `minDate` and `maxDate`."
        )
    )
    minDate = ListEdge(metadata=LIST_EDGE)
    maxDate = ListEdge(metadata=LIST_EDGE)
