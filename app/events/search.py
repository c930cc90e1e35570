"""Filters of the list of events: they apply to events that were read, so all providers have the same."""

from __future__ import annotations

from collections.abc import Iterator

from providers.events import Event


def matches(event: Event, text: str | None, since: int | None) -> bool:
    """Whether an event has ``text``, in any letter case, and was changed since ``since`` (UTC milliseconds).

    An event whose last change the provider does not give counts as changed.
    """
    if since is not None and event.updated_at is not None and event.updated_at < since:
        return False
    return text is None or any(text.casefold() in each.casefold() for each in _texts(event))


def _texts(event: Event) -> Iterator[str]:
    yield event.subject
    yield event.description
    for attendee in event.attendees:
        yield attendee.email
        yield attendee.name or ""
