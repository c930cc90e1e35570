"""Compares an event with the content that a create requests; pure functions.

Providers normalize what is written: white space, fractions of a second, the account itself among the
attendees. None of these counts as a difference.
"""

from __future__ import annotations

from providers.events import Changes, Day, Event, When

_SECOND = 1000


def has_content(event: Event, content: Changes) -> bool:
    """Whether the event has the requested content.

    A location that was not sent, and the provider's own online meeting, are not compared.
    """
    return (
        _text(event.subject) == _text(content.subject)
        and _text(event.description) == _text(content.description)
        and (content.location is None or _text(content.location) == _text(event.location))
        and content.meeting_url in (None, event.meeting_url)
        and _guests(event) == {email.lower() for email in content.attendees or ()} - _own(event)
        and _is_at(event, event.start, "start", content.start)
        and _is_at(event, event.end, "end", content.end)
    )


def _text(value: str | None) -> str:
    return " ".join((value or "").split())


def _own(event: Event) -> set[str]:
    return {each.email.lower() for each in event.attendees if each.is_self}


def _guests(event: Event) -> set[str]:
    return {each.email.lower() for each in event.attendees if not each.is_self}


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
