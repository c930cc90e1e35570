"""The calls for the events of one mailbox: read, find, change and delete.

https://learn.microsoft.com/en-us/graph/api/resources/event
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast
from urllib.parse import quote

from providers import etags, markup, series_parts
from providers.base import Failed
from providers.errors import (
    EventNotFound,
    EventUnreadable,
    InvalidCalendarId,
    NotFound,
    ProviderError,
    Unavailable,
)
from providers.event_writes import not_invited
from providers.events import Changes, Event, Moment, Response, ResponseStatus, overlaps
from providers.http.calls import Json, unreadable
from providers.http.json_validation import SHAPE_ERRORS, optional_text
from providers.microsoft import body, parse, parse_events, properties, writing
from providers.microsoft.batch import BatchGet, Pages
from providers.microsoft.errors import PROVIDER, EventOutdated
from providers.microsoft.mailbox import AS_HTML, AS_TEXT, SETTINGS, Mailbox
from providers.microsoft.parse_events import Reader
from providers.microsoft.payloads import GraphEvent
from providers.timestamps import DAY

# Whole events on a page, with bodies; Graph allows a thousand.
EVENTS_PER_PAGE = 250

# Attempts to read and write an event while others change it in between.
TRIES = 4


def list_events(
    mailbox: Mailbox, calendar_ids: Sequence[str], start: int, end: int
) -> dict[str, tuple[Event, ...] | Failed]:
    """The events of every calendar, each read as a part of a batch, together with the mailbox's zone."""
    found: dict[str, tuple[Event, ...] | Failed] = {}
    for calendar_id, answer in _lists(mailbox, calendar_ids, start, end).items():
        try:
            found[calendar_id] = _events(*answer, start, end)
        except ProviderError as error:
            found[calendar_id] = Failed.from_error(error)
    return found


def list_one(mailbox: Mailbox, calendar_id: str, start: int, end: int) -> tuple[Event, ...]:
    """All events of one calendar, but for those without an id.

    :raise ProviderError: when they cannot be read, or one that has an id cannot be parsed
    """
    return _events(*_lists(mailbox, [calendar_id], start, end)[calendar_id], start, end, complete=True)


def _lists(
    mailbox: Mailbox, calendar_ids: Sequence[str], start: int, end: int
) -> dict[str, tuple[Reader, Pages]]:
    names = {str(number): each for number, each in enumerate(dict.fromkeys(calendar_ids))}
    views = [BatchGet(number, _view(mailbox, each, start, end), AS_TEXT) for number, each in names.items()]
    answers = mailbox.fetch([*mailbox.settings(), *views] if views else [])
    zone = parse_events.one_zone(parse.mailbox_zone(answers.get(SETTINGS)))
    return {
        each: (Reader(each, mailbox.addresses, zone, mailbox.operation), answers[number])
        for number, each in names.items()
    }


def read(mailbox: Mailbox, calendar_id: str, event_id: str) -> Event:
    """One event.

    :raise EventNotFound: also when it was cancelled, which leaves attendees a copy
    """
    return parsed(mailbox, calendar_id, record(mailbox, calendar_id, event_id))


def with_html(mailbox: Mailbox, calendar_id: str, event: Event) -> Event:
    """The event with its description as HTML too, which is another form of the same body.

    https://learn.microsoft.com/en-us/graph/api/resources/itembody. Without an answer it has only the text.
    """
    if not event.description:
        return event
    path = mailbox.event_path(calendar_id, event.id)
    try:
        found = cast("GraphEvent", mailbox.get(f"{path}?$select=body", AS_HTML))
        known = cast("GraphEvent", event.original)
        html = body.without_html_block(parse_events.html(found), parse_events.join_url(known))
    except (ProviderError, *SHAPE_ERRORS):
        return event
    return replace(event, description_html=markup.if_rich(html))


def find_by_meta_id(
    mailbox: Mailbox, calendar_id: str, wanted: str, property_id: str = properties.META_ID
) -> GraphEvent | None:
    """The oldest live event of a calendar with exactly this value of a property, by creation."""
    query = f"{properties.filter_by_property(property_id, wanted)}&{properties.EXPAND}&$top={EVENTS_PER_PAGE}"
    part = BatchGet("found", f"{mailbox.calendar_path(calendar_id)}/events?{query}", AS_TEXT)
    pages = mailbox.fetch([part])[part.id]
    if isinstance(pages, ProviderError):
        raise pages
    try:
        found = [each for page in pages for each in cast("list[GraphEvent]", parse.values(page))]
        readable = [each for each in found if _is_readable(each)]
        exact = [each for each in readable if properties.value(each, property_id) == wanted]
        if not exact and len(readable) < len(found):
            # Graph has selected the events by this property: one that cannot be parsed may be this one.
            raise unreadable(PROVIDER, mailbox.operation)
        living = [each for each in exact if not each.get("isCancelled")]
        return min(living, key=lambda each: (parse_events.created(each), each["id"]), default=None)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None


def _is_readable(record: GraphEvent) -> bool:
    """Whether the properties of an event can be parsed."""
    try:
        properties.value(record, properties.META_ID)
    except SHAPE_ERRORS:
        return False
    return True


def update(
    mailbox: Mailbox, calendar_id: str, event_id: str, changes: Changes, *, required: str | None = None
) -> Event:
    """Write ``changes``; ``required`` is the etag that the event must have.

    The event is read first: for the responses of attendees who remain, the block of an online meeting, and
    its zone. The write requires the etag that was read. Without ``required`` it is retried when another
    client changes the event in between.
    """
    for _ in range(TRIES):
        known = record(mailbox, calendar_id, event_id, prefer_for(changes))
        require_etag(mailbox, known, required)
        if changes.recurrence is not None and known.get("seriesMasterId"):
            raise series_parts.not_of_occurrence()
        try:
            content = _of_event(mailbox, calendar_id, known, changes)
            patch(mailbox, calendar_id, event_id, known, content)
        except EventOutdated as conflict:
            if required is None:
                continue
            return etags.after_refused_update(
                conflict, changes, PROVIDER, lambda: read(mailbox, calendar_id, event_id)
            )
        return read_back(mailbox, calendar_id, event_id)
    raise Unavailable(
        f"{PROVIDER} says that others are changing the event just now", operation=mailbox.operation
    )


def prefer_for(changes: Changes) -> str:
    """The form in which an event is read before these changes: a description is put into its HTML."""
    return AS_TEXT if changes.description is None else AS_HTML


def _of_event(mailbox: Mailbox, calendar_id: str, known: GraphEvent, changes: Changes) -> Changes:
    """The changes of an event itself. With a recurrence, both edges are written too, as Graph requires."""
    if changes.recurrence is None and not (changes.has_time and known.get("recurrence")):
        return changes
    event = parsed_to_move(mailbox, calendar_id, known)
    return with_edges(event, series_parts.of_event(event, changes))


def with_edges(event: Event, changes: Changes) -> Changes:
    """The changes with both edges if they have a recurrence, each in its zone."""
    if changes.recurrence is None:
        return changes
    start, end = (
        given or series_parts.edge_of(event, name)
        for name, given in (("start", changes.start), ("end", changes.end))
    )
    zone = (start.zone or event.time_zone) if isinstance(start, Moment) else None
    return replace(
        changes,
        start=Moment(start.at, zone) if isinstance(start, Moment) else start,
        end=Moment(end.at, zone) if isinstance(end, Moment) else end,
    )


# https://learn.microsoft.com/en-us/graph/api/event-accept, .../event-decline, .../event-tentativelyaccept
_ACTIONS = {
    ResponseStatus.ACCEPTED: "accept",
    ResponseStatus.DECLINED: "decline",
    ResponseStatus.TENTATIVE: "tentativelyAccept",
}


def respond(mailbox: Mailbox, calendar_id: str, event_id: str, response: Response) -> Event:
    """Send the response. An event that the account has declined is no longer in the calendar.

    :raise EventRefused: when the account organizes the event
    """
    known = record(mailbox, calendar_id, event_id)
    if known.get("isOrganizer"):
        raise not_invited(PROVIDER, mailbox.operation)
    # For an event that leaves the calendar; its zone may need a request, which must not fail after the write.
    answered = _answered(parsed(mailbox, calendar_id, known), response)
    body = {"comment": response.comment, "sendResponse": response.notify}
    path = f"{mailbox.event_path(calendar_id, event_id)}/{_ACTIONS[response.status]}"
    try:
        mailbox.write("POST", path, {name: value for name, value in body.items() if value is not None})
    except (NotFound, InvalidCalendarId) as error:
        # The attempt before this one got no answer; it declined the event.
        if error.repeated and response.status is ResponseStatus.DECLINED:
            return answered
        raise not_found_error(mailbox, calendar_id) from None
    try:
        return read(mailbox, calendar_id, event_id)
    except EventNotFound:
        return answered
    except ProviderError:
        raise unreadable_event(mailbox) from None


def _answered(event: Event, response: Response) -> Event:
    attendees = (
        replace(each, response_status=response.status) if each.is_self else each for each in event.attendees
    )
    return replace(event, attendees=tuple(attendees))


def delete(
    mailbox: Mailbox, calendar_id: str, event_id: str, *, verified: bool, required: str | None = None
) -> None:
    """Delete an event, even a cancelled one; ``required`` is the etag that the event must have.

    ``verified``: the caller has just found the event in this calendar. Graph does not document whether a
    delete regards ``If-Match``, so the etag is compared here too.
    """
    match = None
    if not verified:
        known = in_calendar(mailbox, calendar_id, event_id)
        require_etag(mailbox, known, required)
        match = None if required is None else known.get("@odata.etag")
    try:
        mailbox.write("DELETE", mailbox.event_path(calendar_id, event_id), match=match)
    except EventOutdated as conflict:
        etags.after_refused_delete(conflict, PROVIDER, lambda: read(mailbox, calendar_id, event_id))
    except (NotFound, InvalidCalendarId) as error:
        # The attempt before this one got no answer; it deleted the event.
        if not (error.repeated and isinstance(error, NotFound)):
            raise not_found_error(mailbox, calendar_id) from None


def record(mailbox: Mailbox, calendar_id: str, event_id: str, prefer: str = AS_TEXT) -> GraphEvent:
    """A live event of a calendar, as Graph's record.

    :raise EventNotFound: when the calendar has no event with this id
    """
    found = in_calendar(mailbox, calendar_id, event_id, prefer)
    if found.get("isCancelled"):
        raise _not_found(mailbox)
    return found


def in_calendar(mailbox: Mailbox, calendar_id: str, event_id: str, prefer: str = AS_TEXT) -> GraphEvent:
    """An event of a calendar, cancelled or not.

    :raise EventNotFound: when the calendar has no event with this id
    """
    try:
        found = mailbox.get(f"{mailbox.event_path(calendar_id, event_id)}?{WITH_CALENDAR}", prefer)
    except (NotFound, InvalidCalendarId):
        raise not_found_error(mailbox, calendar_id) from None
    event = cast("GraphEvent", found)
    if not lies_in(mailbox, calendar_id, event):
        raise _not_found(mailbox)
    return event


def parsed(mailbox: Mailbox, calendar_id: str, found: GraphEvent) -> Event:
    """An event that was read by itself; the mailbox's zone is requested only when the event needs it."""
    midnights = parse_events.one_zone(mailbox.zone) if found.get("isAllDay") else "UTC"
    return Reader(calendar_id, mailbox.addresses, midnights, mailbox.operation).event(found)


def parsed_to_move(mailbox: Mailbox, calendar_id: str, found: GraphEvent) -> Event:
    """As :func:`parsed`, for an event whose time is the base of one that is written.

    :raise UnknownZone: when the zone of its time is not known, because that time is a guess
    """
    event = parsed(mailbox, calendar_id, found)
    parse.period(found, "UTC", mailbox.operation)
    return event


def read_back(mailbox: Mailbox, calendar_id: str, event_id: str) -> Event:
    """An event that was just written: the answer to the write has neither our properties nor plain text.

    :raise EventUnreadable: when it cannot be read now
    """
    try:
        return read(mailbox, calendar_id, event_id)
    except ProviderError:
        raise unreadable_event(mailbox) from None


def zone_for(mailbox: Mailbox, changes: Changes) -> str:
    """The zone of the midnights in some changes; the mailbox is asked for it only if they have days."""
    return day_zone(mailbox) if writing.has_days(changes) else "UTC"


def day_zone(mailbox: Mailbox) -> str:
    """The zone in which all-day dates are written.

    :raise ProviderError: when it cannot be read now
    """
    found = parse_events.one_zone(mailbox.zone)
    if isinstance(found, ProviderError):
        raise found
    return found


def not_found_error(mailbox: Mailbox, calendar_id: str) -> EventNotFound:
    """The error for a missing event: Graph answers the same when the calendar does not exist.

    :raise NotFound, InvalidCalendarId: when the calendar does not exist
    """
    if not mailbox.is_main(calendar_id):
        mailbox.get(f"{mailbox.calendar_path(calendar_id)}?$select=id")
    return _not_found(mailbox)


def unreadable_event(mailbox: Mailbox) -> EventUnreadable:
    return EventUnreadable(
        f"{PROVIDER} has written the event, but it cannot be read back", operation=mailbox.operation
    )


def require_etag(mailbox: Mailbox, known: GraphEvent, required: str | None) -> None:
    """Check the etag of an event that was read.

    :raise EventChanged: when it is not the required one
    """
    try:
        etag = etags.weak(optional_text(known.get("@odata.etag")))
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None
    if not etags.has_etag(etag, required):
        raise etags.changed(PROVIDER, mailbox.operation)


def _not_found(mailbox: Mailbox) -> EventNotFound:
    return EventNotFound(f"{PROVIDER} does not know this event", operation=mailbox.operation)


def patch(mailbox: Mailbox, calendar_id: str, event_id: str, known: GraphEvent, changes: Changes) -> None:
    """Write ``changes`` to an event as it was read.

    :raise EventOutdated: when another client has changed it since
    """
    midnights = zone_for(mailbox, changes)
    try:
        body: Json = writing.update_payload(changes, known, midnights)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None
    if not body:
        return
    try:
        path = mailbox.event_path(calendar_id, event_id)
        mailbox.write("PATCH", path, body, match=known.get("@odata.etag"))
    except (NotFound, InvalidCalendarId):
        raise not_found_error(mailbox, calendar_id) from None


def _view(mailbox: Mailbox, calendar_id: str, start: int, end: int) -> str:
    # Graph selects all-day events as if their dates were in UTC; other zones differ by a day at most.
    window = mailbox.view_path(calendar_id, start - DAY, end + DAY)
    return f"{window}&{properties.EXPAND}&$top={EVENTS_PER_PAGE}"


def _events(
    reader: Reader, pages: Pages, start: int, end: int, *, complete: bool = False
) -> tuple[Event, ...]:
    if isinstance(pages, ProviderError):
        raise pages
    found = [each for each in reader.events(pages, complete=complete) if overlaps(each, start, end)]
    return tuple(sorted(found, key=lambda each: (each.start, each.end, each.id)))


# Query parameter that requests our own properties of an event, and its calendar.
WITH_CALENDAR = f"$expand={quote(f'{properties.EXPANSION},calendar($select=id,isDefaultCalendar)', safe='')}"

# Ids are short, so pages have the maximum size that Graph allows.
_IDS_PER_PAGE = 1000


def lies_in(mailbox: Mailbox, calendar_id: str, record: GraphEvent) -> bool:
    """Whether an event that was read with ``WITH_CALENDAR`` is in a calendar.

    Graph looks up an event id in the whole mailbox: a path that names one calendar also finds the events of
    every other calendar (https://github.com/microsoftgraph/microsoft-graph-docs/issues/391). So each read of
    an event also requests its calendar, a documented relationship of an event
    (https://learn.microsoft.com/en-us/graph/api/resources/event).

    When the answer names another calendar, the events of the given calendar are checked: Graph has answered
    calendar ids that are not on the list of calendars
    (https://github.com/microsoftgraph/microsoft-graph-docs/issues/6699).

    :raise NotFound, InvalidCalendarId: when the calendar does not exist
    """
    try:
        calendar = record.get("calendar") or {}
        if calendar.get("id") == calendar_id:
            return True
        if mailbox.is_main(calendar_id) and calendar.get("isDefaultCalendar") is True:
            return True
        start, _ = parse.shown_period(record, "UTC")
        return record["id"] in _ids_around(mailbox, calendar_id, start)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None


def _ids_around(mailbox: Mailbox, calendar_id: str, start: int) -> set[str | None]:
    """The ids of a calendar's events within a day of ``start``, and of their series."""
    window = mailbox.view_path(calendar_id, start - DAY, start + DAY)
    part = BatchGet("view", f"{window}&$select=id,seriesMasterId&$top={_IDS_PER_PAGE}", AS_TEXT)
    pages = mailbox.fetch([part])[part.id]
    if isinstance(pages, ProviderError):
        raise pages
    found = [each for page in pages for each in cast("list[GraphEvent]", parse.values(page))]
    return {each["id"] for each in found} | {each.get("seriesMasterId") for each in found}
