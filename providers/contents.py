"""Compares an event with the content that a create or an update writes; pure functions.

Providers normalize what is written: white space, fractions of a second, the account itself among the
attendees. None of these counts as a difference.
"""

from __future__ import annotations

from dataclasses import replace

from providers import recurrence, series_parts
from providers.events import Attendee, Changes, Day, Event, Guest, Moment, Recurrence, When
from providers.recurrence import BadRecurrence, Series

_SECOND = 1000


def has_content(event: Event, content: Changes) -> bool:
    """Whether the event has the requested content.

    A location that was not sent, and the provider's own online meeting, are not compared.
    """
    everything = replace(
        content,
        subject=content.subject or "",
        description=content.description or "",
        attendees=content.attendees or (),
        meeting=False,
        meta_id=None,
    )
    return has_changes(event, everything)


def has_changes(event: Event, changes: Changes) -> bool:
    """Whether the event has the value of every field that an update writes."""
    return (
        _is_text(event.subject, changes.subject)
        and _is_text(event.description, changes.description)
        and _is_text(event.location, changes.location)
        and changes.meta_id in (None, event.meta_id)
        and changes.meeting_url in (None, event.meeting_url)
        and not (changes.meeting and event.meeting_url is None)
        and _are_invited(event, changes.guests)
        and changes.show_as in (None, event.shown_as)
        and changes.visibility in (None, event.visibility)
        and changes.reminders in (None, event.reminders)
        and _recurs_like(event, changes.recurrence)
        and _is_at(event, event.start, "start", changes.start)
        and _is_at(event, event.end, "end", changes.end)
    )


def _is_text(known: str, written: str | None) -> bool:
    return written is None or known.split() == written.split()


def _are_invited(event: Event, guests: list[Guest] | None) -> bool:
    """Names are not compared: providers replace them by those of their directories."""
    if guests is None:
        return True
    own = {each.email.lower() for each in event.attendees if each.is_self}
    known = {each.email.lower(): each for each in event.attendees if not each.is_self}
    invited = {each.email.lower(): each for each in guests if each.email.lower() not in own}
    return known.keys() == invited.keys() and all(_is_like(known[email], invited[email]) for email in known)


def _is_like(known: Attendee, guest: Guest) -> bool:
    return guest.optional in (None, known.optional) and guest.resource in (None, known.resource)


def _recurs_like(event: Event, wanted: Recurrence | None) -> bool:
    """Whether a series has the occurrences of a recurrence: providers write rules in other words."""
    if wanted is None:
        return True
    start = series_parts.edge_of(event, "start")
    if not event.recurrence or (isinstance(start, Moment) and start.zone is None):
        return False
    try:
        known = recurrence.parse(event.recurrence, event.time_zone)
        return Series(start, known).is_like(Series(start, wanted))
    except BadRecurrence:
        return False


def _is_at(event: Event, at: int, name: str, wanted: When | None) -> bool:
    match wanted:
        case None:
            return True
        case Day(date):
            edge = event.original[name]
            # Google has a date, Graph the midnight that starts it.
            return event.all_day and (edge.get("date") or edge["dateTime"][:10]) == date
        case _:
            return not event.all_day and at // _SECOND == wanted.at // _SECOND
