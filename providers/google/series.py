"""Changes of a series by the id of one of its occurrences.

An occurrence is a resource of its own, which names its series in ``recurringEventId`` and the start that the
series gives to it in ``originalStartTime``:
https://developers.google.com/workspace/calendar/api/guides/recurringevents
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import cast

from providers import etags, recurrence, series_parts
from providers.errors import EventNotFound
from providers.event_writes import kept_changing
from providers.events import Changes, Day, Event, Moment, Recurrence, Scope, When
from providers.google import events, parse_events, writing
from providers.google.calendars import GoogleCalendar
from providers.google.errors import PROVIDER, EventOutdated
from providers.google.payloads import EventRecord
from providers.http.calls import unreadable
from providers.http.json_validation import SHAPE_ERRORS
from providers.recurrence import clock_of, wall
from providers.series_parts import Part, Split
from providers.timestamps import instant


def update(
    calendar: GoogleCalendar, event_id: str, changes: Changes, scope: Scope, *, required: str | None = None
) -> Event:
    """Write ``changes`` to a series, or to an occurrence and all later ones.

    ``required`` is the etag of the event with this id.
    """
    with series_parts.splitting(
        lambda made: events.delete(calendar, made, notify=changes.notify), EventOutdated
    ) as split:
        for _ in range(events.TRIES):
            try:
                known, part = _read(calendar, event_id, required)
            except EventNotFound:
                if scope is Scope.FOLLOWING:
                    return _continued(calendar, event_id, changes)
                raise
            try:
                if part is None or scope is Scope.SERIES or part.is_first:
                    return _write(calendar, known, part, changes)
                return _split(calendar, event_id, part, changes, split)
            except EventOutdated:
                continue
        raise kept_changing(PROVIDER, calendar.operation)


def delete(
    calendar: GoogleCalendar,
    event_id: str,
    scope: Scope,
    *,
    notify: bool | None,
    required: str | None = None,
) -> None:
    """Delete a series, or an occurrence and all later ones."""
    repeated = False
    for _ in range(events.TRIES):
        try:
            known, part = _read(calendar, event_id, required)
        except EventNotFound:
            if repeated:
                return
            raise
        try:
            if part is None or scope is Scope.SERIES or part.is_first:
                match = known.get("etag") if required is not None else None
                events.delete(calendar, known["id"], notify=notify, required=match)
            else:
                _end(calendar, part, notify)
        except EventOutdated as conflict:
            repeated = repeated or conflict.repeated
            continue
        return
    raise kept_changing(PROVIDER, calendar.operation)


def _read(calendar: GoogleCalendar, event_id: str, required: str | None) -> tuple[EventRecord, Part | None]:
    """The record of the series, or of the single event, and the occurrence with this id, if it is one.

    :raise EventNotFound: when the calendar has no event with this id
    :raise EventChanged: when it does not have the required etag
    """
    found = events.record(calendar, event_id)
    event = events.parsed(calendar, found)
    if not etags.has_etag(event.etag, required):
        raise etags.changed(PROVIDER, calendar.operation)
    if event.recurring_event_id is None:
        return found, None
    known = events.record(calendar, event.recurring_event_id)
    master = events.parsed(calendar, known)
    try:
        at = _original_start(found)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, calendar.operation) from None
    return known, Part(master, event, at)


def _write(calendar: GoogleCalendar, known: EventRecord, part: Part | None, changes: Changes) -> Event:
    if part is None:
        written = series_parts.of_event(events.parsed(calendar, known), changes)
    else:
        written = series_parts.of_series(part, changes)
    try:
        return events.patch(calendar, known, written)
    except EventOutdated as conflict:
        # A new time is relative to the series, so what was written must not be written again.
        event = etags.written_before(conflict, written, lambda: events.read(calendar, known["id"]))
        if event is None:
            raise
        return event


def _split(calendar: GoogleCalendar, event_id: str, part: Part, changes: Changes, split: Split) -> Event:
    """Create the later part, then end the old one; changed occurrences after it are reset by that.

    https://developers.google.com/workspace/calendar/api/guides/recurringevents#modifying_all_following_instances
    """
    part = replace(part, master=_with_deleted(calendar, part))
    written = series_parts.later_part(part, changes)
    draft = series_parts.draft(event_id, changes, written, split.attempt)
    try:
        body = writing.later_part_payload(draft, _record(part), secrets.token_hex(16))
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, calendar.operation) from None
    # Without it Google ignores attachments, which the new series must keep:
    # https://developers.google.com/workspace/calendar/api/v3/reference/events/insert
    return split.finish(
        lambda: events.insert(calendar, draft, body, {"supportsAttachments": "true"}),
        lambda: _end(calendar, part, changes.notify),
    )


def _with_deleted(calendar: GoogleCalendar, part: Part) -> Event:
    """The series with its deleted occurrences from this one on as dates that are removed.

    Google keeps them as cancelled events of the series, which have its iCalUID:
    https://developers.google.com/workspace/calendar/api/v3/reference/events/list (showDeleted)
    """
    master = part.master
    removed: list[When] = []
    for page in calendar.pages(iCalUID=str(master.original["iCalUID"])):
        for each in cast("list[EventRecord]", page["items"]):
            if parse_events.is_cancelled(each) and each.get("recurringEventId") == master.id:
                removed.append(_original_start(each))
    clock = clock_of(series_parts.edge_of(master, "start"))
    later = [each for each in removed if wall(each, clock) > wall(part.at, clock)]
    lines = recurrence.lines(Recurrence("", (), tuple(later)))[1:]
    return replace(master, recurrence=(*(master.recurrence or ()), *lines))


def _record(part: Part) -> EventRecord:
    return cast("EventRecord", part.master.original)


def _original_start(record: EventRecord) -> When:
    begun = record["originalStartTime"]
    return Day(begun["date"]) if begun.get("date") else Moment(instant(begun["dateTime"]))


def _end(calendar: GoogleCalendar, part: Part, notify: bool | None) -> None:
    """Give the series an end before the occurrence."""
    ended: Recurrence = series_parts.rest(part)
    events.patch(calendar, _record(part), Changes(recurrence=ended, notify=notify))


def _continued(calendar: GoogleCalendar, event_id: str, changes: Changes) -> Event:
    """The later part that an earlier attempt of the request has created, whose answer was lost.

    :raise EventNotFound: when there is none
    """
    return events.read(calendar, series_parts.draft(event_id, changes, changes).key)
