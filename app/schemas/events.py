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
    Parsed,
    PathText,
    QuerySchema,
    Several,
    Text,
    TrueOrFalse,
    Word,
    Zone,
    about,
    at_most,
)
from app.schemas.parameters import CALENDAR_IDS, MAX_CALENDARS, LongCursorQuery, ProviderQuery
from providers import registry
from providers.etags import ENTITY_TAG

# Google's limit on the guests of one event; it also bounds an extended property's value, as metaId is.
MAX_ATTENDEES = 200
MAX_META_ID = 1024
MAX_TEXT = 32_768

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

    def parse(self, text: str) -> timestamps.Moment:
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


class AttendeeBody(Body):
    """A guest to invite."""

    email = Address(required=True, description="The address of the guest.")


class EventChangeBody(Body):
    """A change of an event; absent fields stay unchanged."""

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


class DeleteQuery(Schema):
    """Whether guests are notified."""

    sendNotifications = TrueOrFalse(metadata=NOTIFY)


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
            "The `etag` of the event as you read it. When another client has changed the "
            "event since, nothing is written and the status is 412. `*` stands for any etag."
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
    minDate = ListEdge(metadata=LIST_EDGE)
    maxDate = ListEdge(metadata=LIST_EDGE)
