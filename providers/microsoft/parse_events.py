"""Parses events of Microsoft Graph; pure functions.

https://learn.microsoft.com/en-us/graph/api/resources/event
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from zoneinfo import ZoneInfo

from providers import etags
from providers.errors import ProviderError, Unreadable
from providers.events import (
    Attendee,
    Day,
    Event,
    EventStatus,
    Moment,
    Organizer,
    Recurrence,
    Reminders,
    ResponseStatus,
    ShowAs,
    Visibility,
)
from providers.http.calls import Json, unreadable
from providers.http.json_validation import (
    SHAPE_ERRORS,
    has_identifier,
    identifier,
    object_or_empty,
    objects,
    optional_text,
    original,
    shown,
    shown_or_none,
    text,
)
from providers.microsoft import body, parse, properties, recurrence
from providers.microsoft.errors import PROVIDER
from providers.microsoft.payloads import GraphAttendee, GraphEvent
from providers.recurrence import Series
from providers.timestamps import instant, shown_instant, wall_instant
from scheduling.zones import iana_zone

log = logging.getLogger(__name__)

# https://learn.microsoft.com/en-us/graph/api/resources/event#properties (showAs)
SHOWN = {
    "free": ShowAs.FREE,
    "tentative": ShowAs.TENTATIVE,
    "busy": ShowAs.BUSY,
    "oof": ShowAs.OUT_OF_OFFICE,
    "workingElsewhere": ShowAs.WORKING_ELSEWHERE,
}

# All other values, "none" and "notResponded" included, mean no response yet.
_RESPONSES = {
    "accepted": ResponseStatus.ACCEPTED,
    "organizer": ResponseStatus.ACCEPTED,
    "tentativelyAccepted": ResponseStatus.TENTATIVE,
    "declined": ResponseStatus.DECLINED,
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Parses the events of one calendar.

    ``own`` are the account's addresses in lower case. ``zone`` is the one whose midnights all-day events
    span, or the error of reading it; only all-day events need it.
    """

    calendar_id: str
    own: frozenset[str]
    zone: str | ProviderError
    operation: str

    def events(self, pages: Iterable[Json], *, complete: bool = False) -> list[Event]:
        """The events of a calendarView that are not cancelled, each once.

        An event at the edge of two pages may be on both. One that cannot be parsed is left out, as it cannot
        be shown: one without an id for example.

        :raise ProviderError: ``zone`` when it is an error and needed
        :raise Unreadable: when a page has no events; with ``complete`` also when an event that has an id
            cannot be parsed
        """
        try:
            records = [each for page in pages for each in parse.values(page)]
        except SHAPE_ERRORS:
            raise unreadable(PROVIDER, self.operation) from None
        found: dict[str, Event] = {}
        for record in records:
            try:
                if not parse.is_cancelled(record):
                    event = self.event(record)
                    found[event.id] = event
            except (Unreadable, AttributeError):
                if complete and has_identifier(record):
                    raise
                log.info("an event that cannot be parsed is left out of a list")
        return list(found.values())

    def event(self, record: GraphEvent) -> Event:
        """One event.

        Its id, its time, and what decides about a write must be readable: the etag, the id of its series, and
        our own properties. Any other field of another type counts as missing.

        :raise Unreadable: when the record is not an event
        :raise ProviderError: ``zone`` when it is an error and needed
        """
        try:
            return self._event(record)
        except SHAPE_ERRORS:
            raise unreadable(PROVIDER, self.operation) from None

    def _event(self, record: GraphEvent) -> Event:
        start, end = parse.shown_period(record, self.zone)
        word = _show_as(record)
        all_day = record.get("isAllDay") is True
        return Event(
            id=identifier(record["id"]),
            calendar_id=self.calendar_id,
            provider="microsoft",
            meta_id=properties.value(record, properties.META_ID),
            subject=shown(record.get("subject")),
            description=_description(record),
            location=shown(object_or_empty(record.get("location")).get("displayName")),
            start=start,
            end=end,
            all_day=all_day,
            meeting_url=properties.value(record, properties.MEETING_URL) or _shown_join_url(record),
            mark=properties.value(record, properties.REQUEST),
            attendees=tuple(self._attendee(each, record) for each in objects(record.get("attendees"))),
            original=original(record),
            status=_status(record),
            show_as=None if word is None else word.as_before,
            shown_as=word,
            visibility=_visibility(record),
            reminders=_reminders(record),
            original_start=self._original_start(record, all_day=all_day),
            time_zone=None if all_day else iana_zone(shown(record.get("originalStartTimeZone"))),
            organizer=self._organizer(record),
            web_link=shown_or_none(record.get("webLink")),
            recurring_event_id=optional_text(record.get("seriesMasterId")),
            updated_at=shown_instant(record.get("lastModifiedDateTime")),
            etag=etags.weak(optional_text(record.get("@odata.etag"))),
            is_series=record.get("type") == "seriesMaster",
            recurrence=_recurrence(record, start, all_day=all_day),
        )

    def _original_start(self, record: GraphEvent, *, all_day: bool) -> int | None:
        """The start that the series gives to an occurrence; for days it is a date, as in ``start``."""
        found = shown(record.get("originalStart"))
        if not found or not record.get("seriesMasterId"):
            return None
        if not all_day:
            return shown_instant(found)
        try:
            return wall_instant(found[:10], ZoneInfo(str(self.zone)))
        except ValueError:
            # It is only shown. A write that needs it refuses an occurrence without it.
            return None

    def _organizer(self, record: GraphEvent) -> Organizer | None:
        # "organizer": {"emailAddress": {"name": "Samantha Booth", "address": "samanthab@adatum.example"}}
        # One that is no object is another, unknown organizer: only the organizer may split a series.
        given = record.get("organizer")
        if not given or (isinstance(given, dict) and not given.get("emailAddress")):
            return None
        entry = object_or_empty(object_or_empty(given).get("emailAddress"))
        email = shown(entry.get("address"))
        is_self = record.get("isOrganizer") is True or self._is_own(email)
        return Organizer(email, is_self, shown_or_none(entry.get("name")))

    def _is_own(self, email: str) -> bool:
        return email.lower() in self.own

    def _attendee(self, entry: GraphAttendee, record: GraphEvent) -> Attendee:
        known = object_or_empty(entry.get("emailAddress"))
        email, name = shown(known.get("address")), shown(known.get("name"))
        is_self = self._is_own(email)
        response = shown(object_or_empty(entry.get("status")).get("response"))
        if is_self and response in ("", "none"):
            # The account's own response is on the event; its attendee entry may be outdated.
            response = shown(object_or_empty(record.get("responseStatus")).get("response"))
        status = _RESPONSES.get(response, ResponseStatus.NEEDS_ACTION)
        return Attendee(
            email,
            is_self,
            status,
            cast("Json", entry),
            # Graph gives the address as the name of an attendee whom it does not know.
            name=name if name and name != email else None,
            optional=entry.get("type") == "optional",
            resource=entry.get("type") == "resource",
        )


def _recurrence(record: GraphEvent, start: int, *, all_day: bool) -> tuple[str, ...] | None:
    """The rule of a series; None if its days are those of another zone than the one it is stored in."""
    found = record.get("recurrence")
    if not isinstance(found, dict) or not isinstance(found.get("range"), dict):
        return None
    zone = iana_zone(shown(record.get("originalStartTimeZone")))
    other = iana_zone(shown(found["range"].get("recurrenceTimeZone")))
    if not all_day and (zone is None or other not in (None, zone)):
        return None
    first = Day(record["start"]["dateTime"][:10]) if all_day else Moment(start, zone)
    return recurrence.lines(found, Series(first, Recurrence("FREQ=DAILY")))


def _status(record: GraphEvent) -> EventStatus | None:
    """Graph has no field for it: an event is cancelled by its organizer, or shown as tentative."""
    if parse.is_cancelled(record):
        return EventStatus.CANCELLED
    shown = record.get("showAs")
    if shown is None:
        return None
    return EventStatus.TENTATIVE if shown == "tentative" else EventStatus.CONFIRMED


def _show_as(record: GraphEvent) -> ShowAs | None:
    """Graph's word; "unknown" and future ones are busy, as for busy periods."""
    word = record.get("showAs")
    return None if word is None else SHOWN.get(shown(word), ShowAs.BUSY)


def _visibility(record: GraphEvent) -> Visibility | None:
    """All of "personal", "private" and "confidential" are private."""
    word = record.get("sensitivity")
    if word is None:
        return None
    return Visibility.DEFAULT if word == "normal" else Visibility.PRIVATE


def _reminders(record: GraphEvent) -> Reminders | None:
    """The one reminder of an event; https://learn.microsoft.com/en-us/graph/api/resources/event#properties."""
    is_on, minutes = record.get("isReminderOn"), record.get("reminderMinutesBeforeStart")
    if is_on is False:
        return Reminders(())
    return Reminders((minutes,)) if is_on is True and type(minutes) is int else None


def one_zone(zone: parse.Zone) -> str | ProviderError:
    """The zone whose midnights all-day events span, or the error of reading it.

    Where the mailbox's zone is not known, that is UTC, the zone in which its calendars are listed then. An
    event needs a definite start.
    """
    return "UTC" if zone is None else zone


def meeting_url(record: GraphEvent) -> str | None:
    """The address of the online meeting: the one stored by a client, else that of Graph's own meeting."""
    return properties.value(record, properties.MEETING_URL) or join_url(record)


def join_url(record: GraphEvent) -> str | None:
    """The link of Graph's own online meeting."""
    return text((record.get("onlineMeeting") or {}).get("joinUrl")) or None


def _shown_join_url(record: GraphEvent) -> str | None:
    return shown_or_none(object_or_empty(record.get("onlineMeeting")).get("joinUrl"))


def location(record: GraphEvent) -> str:
    """The location, for a write."""
    return text((record.get("location") or {}).get("displayName"))


def address(entry: GraphAttendee) -> str:
    """The address; empty for attendees without one, such as members who have left the tenant."""
    return text((entry.get("emailAddress") or {}).get("address"))


def html(record: GraphEvent) -> str:
    """The body as it was received; the request asked for HTML."""
    return text((record.get("body") or {}).get("content"))


def created(record: GraphEvent) -> int:
    """When an event was created, in UTC milliseconds."""
    return instant(record["createdDateTime"])


def _description(record: GraphEvent) -> str:
    """The body as text, without the block that Graph adds; the request asked for text."""
    found = "\n".join(shown(object_or_empty(record.get("body")).get("content")).split("\r\n"))
    if record.get("isOnlineMeeting"):
        found = body.without_block(found, _shown_join_url(record))
    return found.rstrip("\n")
