"""The calls for the events of one calendar: read, find, create, change and delete.

https://developers.google.com/workspace/calendar/api/v3/reference/events
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import cast

from providers import etags, series_parts
from providers.base import Period, Read
from providers.errors import (
    EventExists,
    EventNotFound,
    EventRefused,
    EventUnreadable,
    InvalidCalendarId,
    NotFound,
    ProviderError,
    Unreadable,
)
from providers.event_writes import (
    exists,
    found_after_failure,
    insert_deadline,
    kept_changing,
    made_by,
    not_invited,
)
from providers.events import Changes, CreateResult, Day, Draft, Event, Response, overlaps
from providers.google import parse_events, writing
from providers.google.calendars import GoogleCalendar, known_zone_of, zone_of
from providers.google.errors import PROVIDER, Deleted, EventOutdated
from providers.google.payloads import EventRecord
from providers.http.calls import Json, unreadable
from providers.http.json_validation import SHAPE_ERRORS, has_identifier, optional_text
from providers.timestamps import DAY, utc_text

log = logging.getLogger(__name__)

# Attempts to read and write an event while others change it in between.
TRIES = 4

# How long to wait for a meeting that Google is still creating, and between two reads of it, in seconds.
MEETING_SECONDS = 1.5
MEETING_PAUSE = 0.3

# Required with every change of an event; without it Google ignores conference data:
# https://developers.google.com/workspace/calendar/api/v3/reference/events#conferenceData
_CONFERENCE = {"conferenceDataVersion": "1"}


def list_events(
    calendar: GoogleCalendar, start: int, end: int, *, complete: bool = False
) -> tuple[Event, ...]:
    """The events that overlap ``[start, end)``, by start, each once; series are expanded.

    An event that cannot be parsed is left out, as it cannot be shown: one without an id for example.

    :raise Unreadable: with ``complete``, when an event that has an id cannot be parsed
    """
    events: dict[str, Event] = {}
    for page in _window(calendar, start, end):
        zone = zone_of(page)
        for record in _not_cancelled(page):
            try:
                event = calendar.reader.event(record, zone)
            except Unreadable:
                if complete and has_identifier(record):
                    raise
                log.info("an event that cannot be parsed is left out of a list")
            else:
                events[event.id] = event
    found = [each for each in events.values() if overlaps(each, start, end)]
    return tuple(sorted(found, key=lambda each: (each.start, each.end, each.id)))


def busy_without(calendar: GoogleCalendar, event_id: str, start: int, end: int) -> Read:
    """The busy periods over ``[start, end)`` as if an event, or an occurrence of a series, were not there."""
    periods: list[Period] = []
    for page in _window(calendar, start, end):
        zone = known_zone_of(page)
        periods += parse_events.busy(page["items"], zone, calendar.operation, without=event_id)
    return Read.of_each({event_id: periods}, start, end)[event_id]


def _window(calendar: GoogleCalendar, start: int, end: int) -> Iterator[Json]:
    """The pages of the events of a time, which have events around it too; series are expanded.

    Google compares the end of an event with ``timeMin`` and its start with ``timeMax``, both exclusive, and
    all-day events in a zone of its own: the query adds a day on both sides, and the caller cuts them off.
    """
    window = {"timeMin": utc_text(start - DAY), "timeMax": utc_text(end + DAY)}
    return calendar.pages(singleEvents="true", **window)


def read(calendar: GoogleCalendar, event_id: str) -> Event:
    """One event.

    :raise EventNotFound: also when the event was deleted
    """
    return parsed(calendar, record(calendar, event_id))


def find_by_meta_id(calendar: GoogleCalendar, meta_id: str) -> Event:
    """The oldest of the events whose metaId is ``meta_id``, by creation.

    :raise EventNotFound: when no event has it
    """
    found = _with_meta_id(calendar, meta_id)
    if found is None:
        raise EventNotFound(f"{PROVIDER} does not know this event", operation=calendar.operation)
    return parsed(calendar, found)


def _with_meta_id(calendar: GoogleCalendar, meta_id: str) -> EventRecord | None:
    """https://developers.google.com/workspace/calendar/api/guides/extended-properties"""
    pages = calendar.pages(privateExtendedProperty=f"{parse_events.META_ID}={meta_id}")
    found = [each for page in pages for each in page["items"]]
    exact = [each for each in found if _is_named(each, meta_id)]
    if not exact and not all(map(_is_readable, found)):
        # Google has selected the events by their metaId, so the one that cannot be parsed may be this one.
        raise unreadable(PROVIDER, calendar.operation)
    first = min(exact, key=lambda each: (str(each.get("created")), str(each.get("id"))), default=None)
    return cast("EventRecord | None", first)


def _is_named(record: Json, meta_id: str) -> bool:
    """Whether an event has a metaId, and was not deleted."""
    if not _is_readable(record) or parse_events.is_cancelled(cast("EventRecord", record)):
        return False
    return parse_events.private(cast("EventRecord", record), parse_events.META_ID) == meta_id


def _is_readable(record: Json) -> bool:
    """Whether the properties of an event can be parsed."""
    try:
        parse_events.private(cast("EventRecord", record), parse_events.META_ID)
    except SHAPE_ERRORS:
        return False
    return True


def create(calendar: GoogleCalendar, draft: Draft) -> CreateResult:
    """Create the event of a draft, or return the one that an earlier request created.

    The id is derived from the draft's key, so Google itself rejects a second event. An event may have got
    the metaId in another way, so it is looked up first. Each event stores the draft's mark. It distinguishes
    a repeated create from another one with the same id, and this request's event from an earlier one.
    """
    meta_id = draft.content.meta_id
    if meta_id is not None and not draft.meta_id_is_new:
        known = _with_meta_id(calendar, meta_id)
        if known is not None:
            return made_by(draft, parsed(calendar, known), PROVIDER, calendar.operation)
    return insert(calendar, draft, writing.create_payload(draft, secrets.token_hex(16)))


def insert(
    calendar: GoogleCalendar, draft: Draft, body: Json, query: Mapping[str, str] = MappingProxyType({})
) -> CreateResult:
    """Insert the event of a draft, or return the one that an earlier request inserted."""
    _load_zone(calendar, draft.content)
    query = {**query, **writing.send_updates(draft.content.notify), **_CONFERENCE}
    in_time = calendar.until(insert_deadline(calendar.deadline))
    try:
        answer = in_time.write("POST", body=body, query=query)
    except EventExists:
        return _existing(calendar, draft, body, query)
    except InvalidCalendarId:
        raise _unfit_id(calendar, draft) from None
    except ProviderError as error:
        return found_after_failure(error, lambda: _find_inserted(calendar, draft, body["id"]))
    event = _written(calendar, answer)
    return CreateResult(_with_meeting(calendar, event) if draft.content.meeting else event, made=True)


def update(
    calendar: GoogleCalendar, event_id: str, changes: Changes, *, required: str | None = None
) -> Event:
    """Write ``changes``; ``required`` is the etag that the event must have.

    Without it, changes that depend on the event require the etag that was read, and are retried when another
    client changes it in between.
    """
    _load_zone(calendar, changes)
    path = calendar.event_path(event_id)
    for _ in range(TRIES):
        known = _known(calendar, event_id) if writing.needs_the_event(changes) else {}
        if changes.recurrence is not None:
            if known.get("recurringEventId"):
                raise series_parts.not_of_occurrence()
            series_parts.of_event(parsed(calendar, known), changes)
        body = _payload(calendar, changes, known)
        if not body:
            return _unchanged(calendar, known or record(calendar, event_id), required)
        query = writing.send_updates(changes.notify) | _CONFERENCE
        try:
            answer = _patched(calendar, path, body, query, required or known.get("etag"))
        except EventOutdated as conflict:
            if required is None:
                continue
            return etags.after_refused_update(conflict, changes, PROVIDER, lambda: read(calendar, event_id))
        event = _written(calendar, answer)
        return _with_meeting(calendar, event) if changes.meeting else event
    raise kept_changing(PROVIDER, calendar.operation)


def patch(calendar: GoogleCalendar, known: EventRecord, changes: Changes) -> Event:
    """Write ``changes`` to an event as it was read.

    :raise EventOutdated: when another client has changed it since
    """
    _load_zone(calendar, changes)
    body = _payload(calendar, changes, known)
    if not body:
        return parsed(calendar, known)
    query = writing.send_updates(changes.notify) | _CONFERENCE
    answer = _patched(calendar, calendar.event_path(known["id"]), body, query, known.get("etag"))
    event = _written(calendar, answer)
    return _with_meeting(calendar, event) if changes.meeting else event


def _payload(calendar: GoogleCalendar, changes: Changes, known: EventRecord) -> Json:
    """The JSON that writes ``changes``.

    :raise Unreadable: when it must keep a part of the event that cannot be read, such as an attendee
    """
    try:
        return writing.update_payload(changes, known, secrets.token_hex(16))
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, calendar.operation) from None


def respond(calendar: GoogleCalendar, event_id: str, response: Response) -> Event:
    """Write the response of the account; it requires the etag that was read, because arrays replace.

    https://developers.google.com/workspace/calendar/api/v3/reference/events#attendees.responseStatus
    """
    path = calendar.event_path(event_id)
    for _ in range(TRIES):
        known = _known(calendar, event_id)
        try:
            attendees = writing.response_payload(response, known, calendar.reader.own)
        except SHAPE_ERRORS:
            raise unreadable(PROVIDER, calendar.operation) from None
        if attendees is None:
            raise not_invited(PROVIDER, calendar.operation)
        query = writing.send_updates(response.notify) | _CONFERENCE
        try:
            answer = _patched(calendar, path, {"attendees": attendees}, query, known.get("etag"))
        except EventOutdated:
            continue
        return _written(calendar, answer)
    raise kept_changing(PROVIDER, calendar.operation)


def delete(
    calendar: GoogleCalendar, event_id: str, *, notify: bool | None, required: str | None = None
) -> None:
    """Delete an event. Google answers 410, not 404, for an event that was deleted before."""
    path = calendar.event_path(event_id)
    try:
        calendar.write("DELETE", path, query=writing.send_updates(notify), match=required)
    except EventOutdated as conflict:
        etags.after_refused_delete(conflict, PROVIDER, lambda: read(calendar, event_id))
    except (NotFound, InvalidCalendarId) as error:
        # The attempt before this one got no answer; it deleted the event.
        if not (error.repeated and isinstance(error, Deleted)):
            raise calendar.missing() from None


def _load_zone(calendar: GoogleCalendar, content: Changes) -> None:
    """Load the calendar's zone before a write of all-day dates: the answer cannot be parsed without."""
    if isinstance(content.start, Day) or isinstance(content.end, Day):
        _ = calendar.zone


def _not_cancelled(page: Json) -> list[Json]:
    """The events of a page without the cancelled ones."""
    events = (each for each in page["items"] if isinstance(each, dict))
    return [each for each in events if not parse_events.is_cancelled(cast("EventRecord", each))]


def record(calendar: GoogleCalendar, event_id: str) -> EventRecord:
    """An event that is not deleted, as Google's record.

    :raise EventNotFound: when the calendar has no event with this id
    """
    try:
        found = cast("EventRecord", calendar.get(calendar.event_path(event_id)))
    except (NotFound, InvalidCalendarId):
        raise calendar.missing() from None
    if parse_events.is_cancelled(found):
        raise calendar.missing()
    return found


def _known(calendar: GoogleCalendar, event_id: str) -> EventRecord:
    """An event to change; checked to be parseable.

    :raise EventNotFound: when the calendar has no event with this id
    """
    found = record(calendar, event_id)
    calendar.reader.event(cast("Json", found), "UTC")
    return found


def parsed(calendar: GoogleCalendar, record: EventRecord) -> Event:
    """An event that was read by itself; the calendar's zone is requested only when the event needs it."""
    zone = calendar.zone if parse_events.is_all_day(record) else "UTC"
    return calendar.reader.event(cast("Json", record), zone)


def _unchanged(calendar: GoogleCalendar, record: EventRecord, required: str | None) -> Event:
    """The event of an update that has nothing to write.

    :raise EventChanged: when it does not have the required etag
    """
    event = parsed(calendar, record)
    if not etags.has_etag(event.etag, required):
        raise etags.changed(PROVIDER, calendar.operation)
    return event


def _etag(calendar: GoogleCalendar, record: EventRecord) -> str | None:
    try:
        return etags.weak(optional_text(record.get("etag")))
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, calendar.operation) from None


def _existing(calendar: GoogleCalendar, draft: Draft, body: Json, query: dict[str, str]) -> CreateResult:
    """The outcome of a create whose id already exists.

    A deleted event keeps its id for ever; a full update restores it. That is done for an id derived from the
    draft; an id that the client chose counts as taken.

    :raise EventExists: when it is another event
    """
    path = calendar.event_path(body["id"])
    for _ in range(TRIES):
        try:
            known = cast("EventRecord", calendar.get(path))
            if not parse_events.is_cancelled(known):
                created = made_by(
                    draft, _written(calendar, cast("Json", known)), PROVIDER, calendar.operation
                )
                return CreateResult(_with_meeting(calendar, created.event), created.made)
            if draft.id is not None:
                raise exists(PROVIDER, calendar.operation)
            match = _etag(calendar, known)
            answer = calendar.write(
                "PUT", path, writing.restore_payload(body, known), query=query, match=match
            )
            return CreateResult(_with_meeting(calendar, _written(calendar, answer)), made=True)
        except EventOutdated:
            continue
        except NotFound:
            # The id is taken by an event that the account cannot see.
            raise exists(PROVIDER, calendar.operation) from None
    raise kept_changing(PROVIDER, calendar.operation)


def _find_inserted(calendar: GoogleCalendar, draft: Draft, event_id: str) -> CreateResult | None:
    """The event of an insert that got no answer, None when it does not exist (yet).

    :raise EventExists: when the id belongs to another event
    """
    try:
        event = read(calendar, event_id)
    except NotFound:
        return None
    return made_by(draft, event, PROVIDER, calendar.operation)


def _unfit_id(calendar: GoogleCalendar, draft: Draft) -> ProviderError:
    """The error when Google rejects an id: the calendar's, or the one that the client chose for the event.

    :raise InvalidCalendarId: when the calendar's id is invalid
    """
    _ = calendar.zone
    if draft.id is None:
        return InvalidCalendarId(f"{PROVIDER} cannot read this calendar id", operation=calendar.operation)
    return EventRefused(
        f"{PROVIDER} says that id must have 5 to 1024 characters of a-v and 0-9", operation=calendar.operation
    )


def _patched(
    calendar: GoogleCalendar, path: str, body: Json, query: dict[str, str], etag: str | None
) -> Json:
    """The answer to a change. A deleted event accepts changes too, and remains deleted."""
    try:
        answer = calendar.write("PATCH", path, body, query=query, match=etag)
    except (NotFound, InvalidCalendarId):
        raise calendar.missing() from None
    if parse_events.is_cancelled(cast("EventRecord", answer)):
        raise calendar.missing()
    return answer


def _written(calendar: GoogleCalendar, answer: Json) -> Event:
    """The event in the answer to a write.

    :raise EventUnreadable: when it cannot be parsed
    """
    try:
        return parsed(calendar, cast("EventRecord", answer))
    except ProviderError:
        raise EventUnreadable(
            f"{PROVIDER} has written the event, but it cannot be read back", operation=calendar.operation
        ) from None


def _with_meeting(calendar: GoogleCalendar, event: Event) -> Event:
    """A written event with its meeting, or without it when Google takes too long to create it."""
    now = time.monotonic()
    until = now + min(MEETING_SECONDS, (calendar.deadline - now) / 2)
    while parse_events.is_pending(cast("EventRecord", event.original)):
        if time.monotonic() + MEETING_PAUSE > until:
            break
        time.sleep(MEETING_PAUSE)
        try:
            event = read(calendar.until(until), event.id)
        except ProviderError:
            # The event is written, even if this read fails.
            break
    return event
