"""Changes of a series by the id of one of its occurrences.

One object has the series and its changed occurrences, so a later part is an object of its own.
"""

from __future__ import annotations

from functools import partial

from providers import etags, series_parts
from providers.caldav import events, lines, reading, writing
from providers.caldav.collection import Collection
from providers.caldav.errors import PROVIDER, PreconditionFailed
from providers.caldav.reading import FoundEvent
from providers.errors import EventNotFound, NotFound
from providers.event_writes import kept_changing
from providers.events import Changes, Day, Event, Scope, When
from providers.ical.clocks import IN_UTC
from providers.recurrence import wall
from providers.series_parts import Part, Split


def update(
    collection: Collection, event_id: str, changes: Changes, scope: Scope, *, required: str | None = None
) -> Event:
    """Write ``changes`` to a series, or to an occurrence and all later ones.

    ``required`` is the etag of the event with this id.
    """
    with series_parts.splitting(partial(_delete, collection), PreconditionFailed) as split:
        for _ in range(events.TRIES):
            try:
                known = events.known_event(collection, event_id)
            except EventNotFound:
                if scope is Scope.FOLLOWING:
                    # An earlier attempt may have created the later part, and its answer was lost.
                    return events.read(collection, series_parts.draft(event_id, changes, changes).key)
                raise
            if not known.part:
                return events.update(collection, event_id, changes, required=required)
            if not etags.has_etag(known.event.etag, required):
                raise etags.changed(PROVIDER, collection.operation)
            master, part = _part(collection, known)
            try:
                if scope is Scope.SERIES or part.is_first:
                    written = series_parts.of_series(part, changes)
                    text = events.edited(collection, partial(events.changed, collection, master, written))
                    if text is not None:
                        try:
                            events.put(collection, master.stored, text)
                        except PreconditionFailed as conflict:
                            # A new time is relative to the series: it must not be written again.
                            read = partial(events.read, collection, master.event.id)
                            event = etags.written_before(conflict, written, read)
                            if event is None:
                                raise
                            return event
                    return events.written(collection, master.stored.url, master.event.id)
                return _split(collection, event_id, master, part, changes, split)
            except PreconditionFailed:
                continue
        raise kept_changing(PROVIDER, collection.operation)


def delete(
    collection: Collection,
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
            known = events.known_event(collection, event_id)
        except EventNotFound:
            if repeated:
                return
            raise
        if not known.part:
            events.delete(collection, event_id, notify=notify, required=required)
            return
        if not etags.has_etag(known.event.etag, required):
            raise etags.changed(PROVIDER, collection.operation)
        master, part = _part(collection, known)
        if scope is Scope.SERIES or part.is_first:
            match = required and master.event.etag
            events.delete(collection, master.event.id, notify=notify, required=match)
            return
        events.check_notice(collection, master, notify)
        try:
            _end(collection, master, part)
        except PreconditionFailed as conflict:
            repeated = repeated or conflict.repeated
            continue
        return
    raise kept_changing(PROVIDER, collection.operation)


def _part(collection: Collection, known: FoundEvent) -> tuple[FoundEvent, Part]:
    """The series of an occurrence, and the occurrence.

    :raise EventNotFound: when the object has only changed occurrences: the account is invited to no others
    """
    master = reading.find(collection, known.stored, known.found.entry.uid)
    if master is None:
        raise collection.missing()
    at = reading.original_of(known, of_days=master.event.all_day)
    return master, Part(master.event, known.event, at)


def _split(
    collection: Collection, event_id: str, master: FoundEvent, part: Part, changes: Changes, split: Split
) -> Event:
    """Store the later part, then end the old one."""
    content = series_parts.later_part(part, changes)
    _require_plain(master)
    draft = series_parts.draft(event_id, changes, content, split.attempt)

    def made() -> str:
        whole = lines.parse(master.stored.text)
        component = events.component_of(whole, master.found.entry)
        times = reading.times_of(master, master.found.entry, component)
        return writing.later_part(whole, component, draft, collection.author, times)

    text = events.edited(collection, made)
    return split.finish(
        lambda: events.insert(collection, draft, draft.key, text),
        lambda: _end(collection, master, part),
    )


def _end(collection: Collection, master: FoundEvent, part: Part) -> None:
    """Give the series an end before the occurrence; changed occurrences from it on are dropped."""
    _require_plain(master)
    ended = series_parts.rest(part)

    def text() -> str:
        whole = lines.parse(master.stored.text)
        for each in master.text.exceptions(master.found.entry.uid):
            if each.replaces is not None and _is_from(part.at, each.replaces.instant(master.zone), master):
                whole.parts.remove(events.component_of(whole, each))
        writing.end_series(events.component_of(whole, master.found.entry), ended, collection.author)
        return whole.text()

    events.put(collection, master.stored, events.edited(collection, text))


def _is_from(at: When, original: int, master: FoundEvent) -> bool:
    """Whether an occurrence with this original start is not before ``at``."""
    if isinstance(at, Day):
        return master.zone.wall(original) >= wall(at, IN_UTC)
    return original >= at.at


def _require_plain(master: FoundEvent) -> None:
    """Refuse to split a series with an event that stands for all occurrences from one on.

    :raise EventRefused: when there is one
    """
    if any(each.later_too for each in master.text.exceptions(master.found.entry.uid)):
        raise series_parts.refused(
            "scope", "must be occurrence or series: a part of the series is changed already"
        )


def _delete(collection: Collection, event_id: str) -> None:
    try:
        collection.server.delete(events.address(collection, event_id), {})
    except NotFound:
        return
