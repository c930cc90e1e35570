"""The calls to the events of one calendar: read, found, created, changed and deleted.

https://developers.google.com/workspace/calendar/api/v3/reference/events
"""

from __future__ import annotations

import secrets
import time
from typing import cast

from providers.create_outcomes import insert_deadline, settled
from providers.errors import (
    EventExists,
    EventNotFound,
    EventRefused,
    EventUnreadable,
    InvalidCalendarId,
    NotFound,
    ProviderError,
    Unavailable,
)
from providers.events import Changes, Created, Day, Draft, Event, overlaps
from providers.google import parse_events, writing
from providers.google.calendars import GoogleCalendar, zone_of
from providers.google.errors import PROVIDER, Deleted, Outdated
from providers.google.payloads import EventRecord
from providers.http.json_validation import SHAPE_ERRORS
from providers.http.send import Json, unreadable
from providers.timestamps import DAY, utc_text

# How often an event is read and written anew when others change it in between.
TRIES = 4

# How long a meeting that Google is still making is waited for, and how long between two looks, in seconds.
MEETING_PATIENCE = 1.5
MEETING_PAUSE = 0.3

# To be sent with every change of an event; conference data that comes without it is passed over:
# https://developers.google.com/workspace/calendar/api/v3/reference/events#conferenceData
_CONFERENCE = {"conferenceDataVersion": "1"}


def listed(calendar: GoogleCalendar, start: int, end: int) -> tuple[Event, ...]:
    """The events that overlap ``[start, end)``, by start; series are expanded.

    Google bounds the end of an event by ``timeMin`` and its start by ``timeMax``, both exclusive, and means
    days in a zone of its own: a day more on both sides is asked for, and what overlaps is taken.
    """
    window = {"timeMin": utc_text(start - DAY), "timeMax": utc_text(end + DAY)}
    found: list[Event] = []
    for page in calendar.pages(singleEvents="true", **window):
        zone = zone_of(page, calendar.operation)
        found += [calendar.reader.event(each, zone) for each in _living(page, calendar)]
    found = [each for each in found if overlaps(each, start, end)]
    return tuple(sorted(found, key=lambda each: (each.start, each.end, each.id)))


def read(calendar: GoogleCalendar, event_id: str) -> Event:
    """One event.

    :raise EventNotFound: also for what deleting has left of one
    """
    return _parsed(calendar, _record(calendar, event_id))


def carrying(calendar: GoogleCalendar, meta_id: str) -> Event:
    """The first created of the events that carry ``meta_id``.

    :raise EventNotFound: when none does
    """
    found = _carrying(calendar, meta_id)
    if found is None:
        raise EventNotFound(f"{PROVIDER} does not know this event", operation=calendar.operation)
    return _parsed(calendar, found)


def _carrying(calendar: GoogleCalendar, meta_id: str) -> EventRecord | None:
    """https://developers.google.com/workspace/calendar/api/guides/extended-properties"""
    pages = calendar.pages(privateExtendedProperty=f"{parse_events.META_ID}={meta_id}")
    found = [each for page in pages for each in _living(page, calendar)]
    exact = [each for each in found if _property(calendar, each, parse_events.META_ID) == meta_id]
    first = min(exact, key=lambda each: (str(each.get("created")), str(each.get("id"))), default=None)
    return cast("EventRecord | None", first)


def create(calendar: GoogleCalendar, draft: Draft) -> Created:
    """Create the event of a draft, or tell that it was created before.

    The id follows from the draft's key, so Google itself refuses a second one. A metaId may have come to an
    event in another way: it is looked for first. Each event keeps the draft's mark, which tells a repeated
    create from another of the same id, and what this request makes from what was there before.
    """
    meta_id = draft.content.meta_id
    if meta_id is not None and not draft.meta_id_is_new:
        known = _carrying(calendar, meta_id)
        if known is not None:
            return _told(calendar, draft, _parsed(calendar, known))
    _learn_midnights(calendar, draft.content)
    body = writing.new(draft, secrets.token_hex(16))
    query = writing.send_updates(draft.content.notify) | _CONFERENCE
    in_time = calendar.until(insert_deadline(calendar.deadline))
    try:
        answer = in_time.write("POST", body=body, query=query)
    except EventExists:
        return _there_already(calendar, draft, body, query)
    except InvalidCalendarId:
        raise _unfit_id(calendar, draft) from None
    except ProviderError as error:
        return settled(error, lambda: _seen(calendar, draft, body["id"]))
    event = _written(calendar, answer)
    return Created(_met(calendar, event) if draft.content.meeting else event, made=True)


def update(calendar: GoogleCalendar, event_id: str, changes: Changes) -> Event:
    """Write ``changes``; what depends on the event is written only as it was read, else read anew."""
    _learn_midnights(calendar, changes)
    path = calendar.event_path(event_id)
    for _ in range(TRIES):
        known = _known(calendar, event_id) if writing.needs_the_event(changes) else {}
        body = writing.changed(changes, known, secrets.token_hex(16))
        if not body:
            return _parsed(calendar, known or _record(calendar, event_id))
        query = writing.send_updates(changes.notify) | _CONFERENCE
        try:
            answer = _patched(calendar, path, body, query, known.get("etag"))
        except Outdated:
            continue
        event = _written(calendar, answer)
        return _met(calendar, event) if changes.meeting else event
    raise _restless(calendar)


def delete(calendar: GoogleCalendar, event_id: str, *, notify: bool | None) -> None:
    """Delete an event. What is left of it answers 410 from then on, and never 404 at once."""
    path = calendar.event_path(event_id)
    try:
        calendar.write("DELETE", path, query=writing.send_updates(notify))
    except (NotFound, InvalidCalendarId) as error:
        # The try before this one got no answer; it is what has deleted the event.
        if not (error.repeated and isinstance(error, Deleted)):
            raise calendar.missing() from None


def _learn_midnights(calendar: GoogleCalendar, content: Changes) -> None:
    """Ask when the days begin that are to be written: without it, what was written could not be told."""
    if isinstance(content.start, Day) or isinstance(content.end, Day):
        _ = calendar.zone


def _living(page: Json, calendar: GoogleCalendar) -> list[Json]:
    """The events of a page; what is cancelled is left out."""
    try:
        return [each for each in page.get("items", ()) if not parse_events.is_cancelled(each)]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, calendar.operation) from None


def _record(calendar: GoogleCalendar, event_id: str) -> EventRecord:
    """A living event as Google has it.

    :raise EventNotFound: when the calendar has none of this id
    """
    try:
        found = cast("EventRecord", calendar.get(calendar.event_path(event_id)))
    except (NotFound, InvalidCalendarId):
        raise calendar.missing() from None
    if parse_events.is_cancelled(found):
        raise calendar.missing()
    return found


def _known(calendar: GoogleCalendar, event_id: str) -> EventRecord:
    """A living event to be changed; it makes sense as it is.

    :raise EventNotFound: when the calendar has none of this id
    """
    found = _record(calendar, event_id)
    calendar.reader.event(cast("Json", found), "UTC")
    return found


def _parsed(calendar: GoogleCalendar, record: EventRecord) -> Event:
    """An event read by itself; the calendar's zone is only asked for when the event needs it."""
    zone = calendar.zone if parse_events.is_all_day(record) else "UTC"
    return calendar.reader.event(cast("Json", record), zone)


def _property(calendar: GoogleCalendar, record: Json, name: str) -> str | None:
    try:
        return parse_events.private(cast("EventRecord", record), name)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, calendar.operation) from None


def _there_already(calendar: GoogleCalendar, draft: Draft, body: Json, query: dict[str, str]) -> Created:
    """What a create makes of the event that has the id of its draft.

    What deleting has left of an event keeps its id for ever; written whole, it lives again. An id of the
    caller's own is then taken, but one that follows from the draft is not.

    :raise EventExists: when it is another event
    """
    path = calendar.event_path(body["id"])
    for _ in range(TRIES):
        try:
            known = cast("EventRecord", calendar.get(path))
            if not parse_events.is_cancelled(known):
                created = _told(calendar, draft, _written(calendar, cast("Json", known)))
                return Created(_met(calendar, created.event), created.made)
            if draft.id is not None:
                raise _exists(calendar)
            answer = calendar.write(
                "PUT", path, writing.revived(body, known), query=query, match=known.get("etag")
            )
            return Created(_met(calendar, _written(calendar, answer)), made=True)
        except Outdated:
            continue
        except NotFound:
            # Taken, by what the account cannot see.
            raise _exists(calendar) from None
    raise _restless(calendar)


def _seen(calendar: GoogleCalendar, draft: Draft, event_id: str) -> Created | None:
    """The event of an insert that had no answer, None when it is not there (yet).

    :raise EventExists: when the id belongs to another event
    """
    try:
        event = read(calendar, event_id)
    except NotFound:
        return None
    return _told(calendar, draft, event)


def _told(calendar: GoogleCalendar, draft: Draft, event: Event) -> Created:
    """What is there, if this create has made it.

    :raise EventExists: otherwise
    """
    created = draft.found(event)
    if created is None:
        raise _exists(calendar)
    return created


def _exists(calendar: GoogleCalendar) -> EventExists:
    return EventExists(f"{PROVIDER} already has another event for this", operation=calendar.operation)


def _unfit_id(calendar: GoogleCalendar, draft: Draft) -> ProviderError:
    """What it means that Google cannot read an id: the calendar's, or the caller's own for the event.

    :raise InvalidCalendarId: when it is the calendar's
    """
    _ = calendar.zone
    if draft.id is None:
        return InvalidCalendarId(f"{PROVIDER} cannot read this calendar id", operation=calendar.operation)
    return EventRefused(
        f"{PROVIDER} says that id must have 5 to 1024 characters of a-v and 0-9", operation=calendar.operation
    )


def _restless(calendar: GoogleCalendar) -> Unavailable:
    return Unavailable(
        f"{PROVIDER} says that others are changing the event just now", operation=calendar.operation
    )


def _patched(
    calendar: GoogleCalendar, path: str, body: Json, query: dict[str, str], etag: str | None
) -> Json:
    """The answer to a change. What deleting has left of an event takes it too, and stays what it is."""
    try:
        answer = calendar.write("PATCH", path, body, query=query, match=etag)
    except (NotFound, InvalidCalendarId):
        raise calendar.missing() from None
    if parse_events.is_cancelled(cast("EventRecord", answer)):
        raise calendar.missing()
    return answer


def _written(calendar: GoogleCalendar, answer: Json) -> Event:
    """The event that a write has answered.

    :raise EventUnreadable: when it cannot be read
    """
    try:
        return _parsed(calendar, cast("EventRecord", answer))
    except ProviderError:
        raise EventUnreadable(
            f"{PROVIDER} has written the event, but it cannot be read back", operation=calendar.operation
        ) from None


def _met(calendar: GoogleCalendar, event: Event) -> Event:
    """A written event with its meeting, or without when Google is not soon done making it."""
    now = time.monotonic()
    until = now + min(MEETING_PATIENCE, (calendar.deadline - now) / 2)
    while parse_events.is_pending(cast("EventRecord", event.original)):
        if time.monotonic() + MEETING_PAUSE > until:
            break
        time.sleep(MEETING_PAUSE)
        try:
            event = read(calendar.until(until), event.id)
        except ProviderError:
            # The event is written, whatever happens to this question.
            break
    return event
