"""The calls for the events of one calendar: read, find, create, change and delete.

An object of the calendar has an event with all its exceptions, so a change of one occurrence writes the
object of its series. Every write names the version that it replaces (RFC 4791, 5.3.2 and RFC 9110, 13.1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from providers import etags, series_parts
from providers.base import Period, Read
from providers.caldav import lines, reading, writing
from providers.caldav.collection import Collection, StoredObject
from providers.caldav.errors import PROVIDER, PreconditionFailed, UidConflict
from providers.caldav.lines import Component
from providers.caldav.reading import FoundEvent
from providers.caldav.writing import Times
from providers.contents import has_changes
from providers.errors import (
    AuthorizationInvalid,
    EventNotFound,
    EventUnreadable,
    NotFound,
    ProviderError,
    Unavailable,
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
from providers.http.calls import unreadable
from providers.ical.bounds import Budget
from providers.ical.busy import busy_periods
from providers.ical.calendar import CalendarText
from providers.ical.entries import Entry
from providers.ical.occurrences import occurrences

log = logging.getLogger(__name__)

Text = TypeVar("Text")

# Attempts to read and write an event while others change it in between.
TRIES = 4


def busy(collection: Collection, start: int, end: int, *, without: str | None = None) -> list[Period]:
    """The times of the events that make the account busy, in no order.

    ``without`` is the id of an event, or of an occurrence, that does not count.

    :raise InvalidCalendar: when an event that may make it busy cannot be understood
    """
    text = collection.read(collection.between(start, end))
    return busy_periods(
        text,
        start,
        end,
        zone=collection.zone_for(text),
        own_addresses=collection.own,
        without=without,
        deadline=collection.server.deadline,
    )


def busy_without(collection: Collection, event_id: str, start: int, end: int) -> Read:
    """The busy periods over ``[start, end)`` as if an event, or an occurrence of a series, were not there."""
    return Read.of_each({event_id: busy(collection, start, end, without=event_id)}, start, end)[event_id]


def list_events(collection: Collection, start: int, end: int) -> tuple[Event, ...]:
    """The events that overlap ``[start, end)``, by start; series are expanded, cancelled events left out.

    An event that cannot be parsed is left out too, as it cannot be shown.
    """
    objects = collection.between(start, end)
    return of_objects(collection, objects, collection.read(objects), start, end)


def of_objects(
    collection: Collection, objects: Sequence[StoredObject], text: CalendarText, start: int, end: int
) -> tuple[Event, ...]:
    """The events of some objects, of which ``text`` was read, as :func:`list_events` returns them."""
    zone = collection.zone_of(text)
    budget = Budget(text.limits, collection.server.deadline)
    found: list[Event] = []
    for each in occurrences(text, start, end, zone, budget, _is_readable):
        tag = objects[text.content_of(each.entry)].etag
        try:
            found.append(reading.event(collection, text, zone, each, tag, part=True))
        except Unreadable:
            log.info("an event that cannot be parsed is left out of a list")
    kept = (each for each in found if overlaps(each, start, end))
    return tuple(sorted(kept, key=lambda each: (each.start, each.end, each.id)))


def _is_readable(entry: Entry) -> bool:
    return entry.problem is None and reading.is_shown(entry)


def read(collection: Collection, event_id: str) -> Event:
    """One event.

    :raise EventNotFound: also when it was cancelled
    """
    return known_event(collection, event_id).event


def known_event(collection: Collection, event_id: str) -> FoundEvent:
    """The event with an id. A UID that looks like the id of an occurrence takes precedence.

    :raise EventNotFound: when the calendar has none
    """
    objects = collection.containing("UID", reading.uid_in(event_id))
    found = [known for each in objects if (known := reading.find(collection, each, event_id))]
    if not found:
        collection.require()
        raise collection.missing()
    return min(found, key=lambda each: each.part)


def find_by_meta_id(collection: Collection, meta_id: str) -> Event:
    """The event whose metaId is ``meta_id``.

    :raise EventNotFound: when no event has it
    """
    found = _with_meta_id(collection, meta_id)
    if found is None:
        collection.require()
        raise collection.missing()
    return found


def _with_meta_id(collection: Collection, meta_id: str) -> Event | None:
    """The event that was created with the metaId, else one that has got it since."""
    created = collection.at(address(collection, writing.meta_uid(meta_id, collection.id)))
    event = None if created is None else reading.named(collection, created, meta_id)
    return event or _searched(collection, meta_id)


def _searched(collection: Collection, meta_id: str) -> Event | None:
    found = collection.containing(writing.META_KEY, writing.meta_key(meta_id))
    events = [event for each in found if (event := reading.named(collection, each, meta_id))]
    return min(events, key=lambda event: event.id, default=None)


def create(collection: Collection, draft: Draft) -> CreateResult:
    """Create the event of a draft, or return the one that an earlier request created.

    The address is derived from the draft's key, and only an object that does not exist is written, so the
    server itself rejects a second event. An event may have got the metaId in another way, so it is looked up
    first.
    """
    meta_id = draft.content.meta_id
    if meta_id is not None and not draft.meta_id_is_new:
        known = _known_meta_id(collection, meta_id)
        if known is not None:
            return made_by(draft, known, PROVIDER, collection.operation)
    uid = writing.uid_of(draft, collection.id)
    return insert(collection, draft, uid, writing.created(draft, uid, collection.author))


def insert(collection: Collection, draft: Draft, uid: str, text: str) -> CreateResult:
    """Store the object of a draft, or return the event that an earlier request stored."""
    url = address(collection, uid)
    in_time = collection.until(insert_deadline(collection.server.deadline))
    for _ in range(TRIES):
        try:
            in_time.server.put(url, text, {"If-None-Match": "*"})
        except (PreconditionFailed, UidConflict) as conflict:
            existing = _existing(collection, draft, uid, url)
            if existing is not None:
                return existing
            if isinstance(conflict, UidConflict):
                raise exists(PROVIDER, collection.operation) from None
            # It was deleted in between.
            continue
        except NotFound:
            collection.require()
            raise
        except ProviderError as error:
            return found_after_failure(error, lambda: _existing(collection, draft, uid, url))
        return CreateResult(written(collection, url, uid), made=True)
    raise kept_changing(PROVIDER, collection.operation)


def _known_meta_id(collection: Collection, meta_id: str) -> Event | None:
    """The event with a metaId, if the server can search for it. The address of a new one decides without."""
    try:
        return _searched(collection, meta_id)
    except (AuthorizationInvalid, Unavailable, NotFound):
        raise
    except ProviderError:
        return None


def address(collection: Collection, uid: str) -> str:
    return f"{collection.url}{uid}.ics"


def _existing(collection: Collection, draft: Draft, uid: str, url: str) -> CreateResult | None:
    """The outcome of a create whose event exists; None when it does not.

    :raise EventExists: when it is another event
    """
    stored = collection.at(url)
    try:
        known = None if stored is None else reading.find(collection, stored, uid)
        event = known.event if known else (read(collection, uid) if stored is None else None)
    except EventNotFound:
        return None
    if event is None:
        raise exists(PROVIDER, collection.operation)
    return made_by(draft, event, PROVIDER, collection.operation)


def update(collection: Collection, event_id: str, changes: Changes, *, required: str | None = None) -> Event:
    """Write ``changes``; ``required`` is the etag that the event must have.

    Without it the version that was read is required, and the change is retried when another client changes
    the event in between.
    """
    repeated = False
    for _ in range(TRIES):
        known = known_event(collection, event_id)
        if not etags.has_etag(known.event.etag, required):
            return _after_conflict(collection, known.event, changes, repeated)
        if repeated and has_changes(known.event, changes):
            return known.event
        try:
            text = edited(collection, partial(changed, collection, known, changes))
            if text is None:
                return known.event
            put(collection, known.stored, text)
        except PreconditionFailed as conflict:
            repeated = repeated or conflict.repeated
            continue
        return written(collection, known.stored.url, event_id)
    raise kept_changing(PROVIDER, collection.operation)


def _after_conflict(collection: Collection, event: Event, changes: Changes, repeated: bool) -> Event:
    """The outcome of an update of an event that does not have the required etag."""
    if repeated and has_changes(event, changes):
        return event
    raise etags.changed(PROVIDER, collection.operation, repeated=repeated)


def changed(collection: Collection, known: FoundEvent, changes: Changes) -> str | None:
    """The text of the object with ``changes``; None when they write nothing."""
    if changes == replace(Changes(), notify=changes.notify):
        return None
    whole = lines.parse(known.stored.text)
    if not known.part:
        changes = series_parts.of_event(known.event, changes)
        event = component_of(whole, known.found.entry)
        if changes.recurrence is not None and len(whole.components("VEVENT")) > 1:
            raise collection.author.refused(
                "cannot give another recurrence to a series with changed occurrences: use scope=following"
            )
        if changes.has_time and _has_exceptions(whole, event):
            raise collection.author.refused(
                "cannot move a series with changed or deleted occurrences: leave out start and end, or "
                "change its occurrences one by one"
            )
    else:
        if changes.recurrence is not None:
            raise series_parts.not_of_occurrence()
        event = _override(known, whole)
    times = reading.times_of(known, known.found.entry, event)
    writing.change(whole, event, changes, collection.author, times)
    return whole.text()


def edited(collection: Collection, edit: Callable[[], Text]) -> Text:
    """The text that ``edit`` makes of an object.

    :raise Unreadable: when the object has lines that cannot be parsed
    """
    try:
        return edit()
    except ValueError:
        raise unreadable(PROVIDER, collection.operation) from None


def _has_exceptions(whole: Component, event: Component) -> bool:
    return len(whole.components("VEVENT")) > 1 or bool(event.lines("EXDATE", "RDATE"))


def component_of(whole: Component, entry: Entry) -> Component:
    """The lines of an entry in its object: with the same UID, and for the same occurrence."""
    recurrence = [each.strip() for each in entry.component.every("RECURRENCE-ID")]
    for each in whole.components("VEVENT"):
        own = [line[len("RECURRENCE-ID") :].strip() for line in each.lines("RECURRENCE-ID")]
        if writing.uid_of_lines(each) == entry.uid and own == recurrence:
            return each
    raise ValueError("an event without lines")


def _override(known: FoundEvent, whole: Component) -> Component:
    """The lines of one occurrence, which are new if it has no own ones."""
    entry = known.found.entry
    component = component_of(whole, entry)
    if _is_exception(entry):
        return component
    times = reading.times_of(known, entry, component)
    return writing.override_of(whole, component, _recurrence(known, times), times)


def _is_exception(entry: Entry) -> bool:
    """Whether it is for one occurrence only."""
    return entry.replaces is not None and not entry.later_too


def _recurrence(known: FoundEvent, times: Times) -> str:
    original = reading.original_of(known, of_days=isinstance(times.start, Day))
    return writing.recurrence_line(original, times)


def respond(collection: Collection, event_id: str, response: Response) -> Event:
    """Write the response of the account; the version that was read is required, as for :func:`update`."""
    for _ in range(TRIES):
        known = known_event(collection, event_id)
        try:
            text = edited(collection, partial(_answered, collection, known, response))
            put(collection, known.stored, text)
        except PreconditionFailed:
            continue
        return written(collection, known.stored.url, event_id)
    raise kept_changing(PROVIDER, collection.operation)


def _answered(collection: Collection, known: FoundEvent, response: Response) -> str:
    """The text of the object with the response.

    :raise EventRefused: when the account is not invited, or organizes the event
    """
    whole = lines.parse(known.stored.text)
    if known.part:
        events = [_override(known, whole)]
    else:
        # The id of a series answers for its changed occurrences too. The account may be invited to some only.
        uid = known.found.entry.uid
        events = [each for each in whole.components("VEVENT") if writing.uid_of_lines(each) == uid]
    answered = [writing.respond(each, response, collection.author) for each in events]
    if not any(answered):
        raise not_invited(PROVIDER, collection.operation)
    return whole.text()


def delete(
    collection: Collection, event_id: str, *, notify: bool | None, required: str | None = None
) -> None:
    """Delete an event, or take an occurrence out of its series.

    :raise EventRefused: when ``notify`` is false and the event has guests: the server tells them
    """
    repeated = False
    for _ in range(TRIES):
        try:
            known = known_event(collection, event_id)
        except EventNotFound:
            if repeated:
                # The attempt before this one got no answer; it deleted the event.
                return
            raise
        if not etags.has_etag(known.event.etag, required):
            raise etags.changed(PROVIDER, collection.operation, repeated=repeated)
        check_notice(collection, known, notify)
        try:
            if not known.part:
                collection.server.delete(known.stored.url, condition(collection, known.stored))
            else:
                text = edited(collection, partial(_without, collection, known))
                put(collection, known.stored, text)
        except PreconditionFailed as conflict:
            repeated = repeated or conflict.repeated
            continue
        except NotFound as gone:
            if gone.repeated:
                return
            raise collection.missing() from None
        return
    raise kept_changing(PROVIDER, collection.operation)


def check_notice(collection: Collection, known: FoundEvent, notify: bool | None) -> None:
    guests = [each for each in known.event.attendees if not each.is_self]
    if notify is False and guests:
        raise collection.author.refused(
            "tells the attendees of an event that it was deleted: leave out sendNotifications"
        )


def _without(collection: Collection, known: FoundEvent) -> str:
    """The text of an object without one occurrence."""
    whole = lines.parse(known.stored.text)
    entry = known.found.entry
    if _is_exception(entry):
        whole.parts.remove(component_of(whole, entry))
    masters = known.text.masters(entry.uid)
    if masters:
        master = component_of(whole, masters[0])
        times = reading.times_of(known, masters[0], master)
        writing.exclude(master, _recurrence(known, times), collection.author)
    return whole.text()


def put(collection: Collection, stored: StoredObject, text: str) -> None:
    collection.server.put(stored.url, text, condition(collection, stored))


def condition(collection: Collection, stored: StoredObject) -> dict[str, str]:
    """The header that requires the version that was read, which every server names (RFC 4791, 5.3.4)."""
    if stored.etag is None:
        raise unreadable(PROVIDER, collection.operation)
    return {"If-Match": stored.etag}


def written(collection: Collection, url: str, event_id: str) -> Event:
    """The event that was written, as the server has stored it.

    :raise EventUnreadable: when it cannot be read back
    """
    try:
        stored = collection.at(url)
        found = (
            known_event(collection, event_id)
            if stored is None
            else reading.find(collection, stored, event_id)
        )
    except ProviderError:
        found = None
    if found is None:
        raise EventUnreadable(
            f"{PROVIDER} has written the event, but it cannot be read back", operation=collection.operation
        )
    return found.event
