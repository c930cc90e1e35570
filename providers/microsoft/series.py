"""Changes of a series by the id of one of its occurrences.

An occurrence has an id of its own, and names its series in ``seriesMasterId``:
https://learn.microsoft.com/en-us/graph/api/resources/event#properties
"""

from __future__ import annotations

from datetime import date
from functools import partial
from urllib.parse import quote

from providers import etags, series_parts
from providers.errors import EventNotFound
from providers.event_writes import kept_changing
from providers.events import Changes, Day, Draft, Event, Moment, Scope
from providers.http.calls import Json, unreadable
from providers.http.json_validation import SHAPE_ERRORS
from providers.ical.clocks import naive
from providers.microsoft import creation, events, properties, writing
from providers.microsoft.errors import PROVIDER, EventOutdated
from providers.microsoft.mailbox import AS_HTML, Mailbox
from providers.microsoft.payloads import GraphEvent
from providers.recurrence import clock_of, wall
from providers.series_parts import Part, Split


def update(
    mailbox: Mailbox,
    calendar_id: str,
    event_id: str,
    changes: Changes,
    scope: Scope,
    *,
    required: str | None = None,
) -> Event:
    """Write ``changes`` to a series, or to an occurrence and all later ones.

    ``required`` is the etag of the event with this id.
    """
    with series_parts.splitting(
        lambda made: events.delete(mailbox, calendar_id, made, verified=True), EventOutdated
    ) as split:
        for _ in range(events.TRIES):
            try:
                found = events.record(mailbox, calendar_id, event_id, events.prefer_for(changes))
            except EventNotFound:
                if scope is Scope.FOLLOWING:
                    return _continued(mailbox, calendar_id, event_id, changes)
                raise
            events.require_etag(mailbox, found, required)
            master_id = found.get("seriesMasterId")
            if not master_id:
                return events.update(mailbox, calendar_id, event_id, changes, required=required)
            try:
                # A later part takes over the HTML.
                prefer = AS_HTML if scope is Scope.FOLLOWING else events.prefer_for(changes)
                master = events.record(mailbox, calendar_id, master_id, prefer)
                part = _part(mailbox, calendar_id, found, master)
                if scope is Scope.SERIES or part.is_first:
                    written = events.with_edges(part.master, series_parts.of_series(part, changes))
                    try:
                        events.patch(mailbox, calendar_id, master_id, master, written)
                    except EventOutdated as conflict:
                        # A new time is relative to the series: a change must not be made twice.
                        read = partial(events.read, mailbox, calendar_id, master_id)
                        event = etags.written_before(conflict, written, read)
                        if event is None:
                            raise
                        return event
                    return events.read_back(mailbox, calendar_id, master_id)
                return _split(mailbox, calendar_id, event_id, master, part, changes, split)
            except EventOutdated:
                continue
        raise kept_changing(PROVIDER, mailbox.operation)


def delete(
    mailbox: Mailbox, calendar_id: str, event_id: str, scope: Scope, *, required: str | None = None
) -> None:
    """Delete a series, or an occurrence and all later ones."""
    repeated = False
    for _ in range(events.TRIES):
        try:
            found = events.record(mailbox, calendar_id, event_id)
        except EventNotFound:
            if repeated:
                return
            raise
        events.require_etag(mailbox, found, required)
        master_id = found.get("seriesMasterId")
        if not master_id:
            events.delete(mailbox, calendar_id, event_id, verified=False, required=required)
            return
        if scope is Scope.SERIES:
            events.delete(mailbox, calendar_id, master_id, verified=True)
            return
        try:
            master = events.record(mailbox, calendar_id, master_id)
            part = _part(mailbox, calendar_id, found, master)
            if part.is_first:
                events.delete(mailbox, calendar_id, master_id, verified=True)
            else:
                _end(mailbox, calendar_id, master, part)
        except EventOutdated as conflict:
            repeated = repeated or conflict.repeated
            continue
        return
    raise kept_changing(PROVIDER, mailbox.operation)


def _part(mailbox: Mailbox, calendar_id: str, found: GraphEvent, master: GraphEvent) -> Part:
    """The occurrence and its series; both records were read with times in UTC."""
    occurrence = events.parsed_to_move(mailbox, calendar_id, found)
    try:
        begun = found["originalStart"]
        # "originalStart": "2026-12-03T09:00:00Z"; of an all-day event it has the date.
        if not begun or occurrence.original_start is None:
            raise ValueError("an occurrence without its original start")
        at = Day(begun[:10]) if occurrence.all_day else Moment(occurrence.original_start)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None
    return Part(events.parsed_to_move(mailbox, calendar_id, master), occurrence, at)


def _split(
    mailbox: Mailbox,
    calendar_id: str,
    event_id: str,
    master: GraphEvent,
    part: Part,
    changes: Changes,
    split: Split,
) -> Event:
    """Create the later part, then end the old one."""
    written = series_parts.later_part(part, changes)
    _require_none_deleted(mailbox, calendar_id, part)
    if master.get("hasAttachments"):
        raise series_parts.refused(
            "scope", f"must be occurrence or series: {PROVIDER} would drop the attachments of the series"
        )
    draft = series_parts.draft(event_id, changes, written, split.attempt)
    midnights = events.zone_for(mailbox, written)
    return split.finish(
        lambda: creation.insert(
            mailbox,
            calendar_id,
            draft,
            lambda transaction_id: _later_payload(mailbox, draft, master, transaction_id, midnights),
        ),
        lambda: _end(mailbox, calendar_id, master, part),
    )


def _later_payload(
    mailbox: Mailbox, draft: Draft, master: GraphEvent, transaction_id: str, midnights: str
) -> Json:
    """The JSON of the later part.

    :raise Unreadable: when it must take over a part of the series that cannot be read, such as an attendee
    """
    try:
        return writing.later_part_payload(draft, master, transaction_id, midnights)
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None


def _end(mailbox: Mailbox, calendar_id: str, master: GraphEvent, part: Part) -> None:
    """Give the series an end on the day before the occurrence."""
    ended = events.with_edges(part.master, Changes(recurrence=series_parts.rest(part)))
    events.patch(mailbox, calendar_id, part.master.id, master, ended)


def _require_none_deleted(mailbox: Mailbox, calendar_id: str, part: Part) -> None:
    """Refuse to split a series with deleted occurrences after it: a pattern cannot leave them out.

    https://learn.microsoft.com/en-us/graph/api/resources/event#properties (cancelledOccurrences)

    :raise EventRefused: when there are some
    """
    path = mailbox.event_path(calendar_id, part.master.id)
    found = mailbox.get(f"{path}?$select={quote('id,cancelledOccurrences')}")
    start = series_parts.edge_of(part.master, "start")
    first = naive(wall(part.at, clock_of(start))).date()
    try:
        # "OID.AAMkADQwMD=.2026-12-03"
        days = [date.fromisoformat(each[-10:]) for each in found.get("cancelledOccurrences") or ()]
    except SHAPE_ERRORS:
        raise unreadable(PROVIDER, mailbox.operation) from None
    if any(each > first for each in days):
        raise series_parts.refused(
            "scope",
            f"must be occurrence or series: {PROVIDER} would restore deleted occurrences after this one",
        )


def _continued(mailbox: Mailbox, calendar_id: str, event_id: str, changes: Changes) -> Event:
    """The later part that an earlier attempt of the request has created, whose answer was lost.

    :raise EventNotFound: when there is none
    """
    wanted = series_parts.draft(event_id, changes, changes).fingerprint
    found = events.find_by_meta_id(mailbox, calendar_id, wanted, properties.FOLLOWING)
    if found is None:
        raise EventNotFound(f"{PROVIDER} does not know this event", operation=mailbox.operation)
    return events.parsed(mailbox, calendar_id, found)
