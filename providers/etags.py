"""Etags of events, and the outcome of a write that requires one.

Almanac answers every etag in the weak form (``W/"…"``): a proxy that compresses an answer weakens or changes
a strong one, and passes a weak one on. Google's own are strong, Graph's are weak.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from providers.contents import has_changes
from providers.errors import EventChanged, EventNotFound, ProviderError
from providers.events import Changes, Event

# https://www.rfc-editor.org/rfc/rfc9110#name-etag; other texts cannot be sent in a header.
ENTITY_TAG = re.compile(r'(?:W/)?"[!#-~]{0,1024}"')


def weak(etag: str | None) -> str | None:
    """The weak form of a provider's etag; None when the provider gives none that a header can carry."""
    return f"W/{strong(etag)}" if etag is not None and ENTITY_TAG.fullmatch(etag) else None


def strong(etag: str) -> str:
    """The form without ``W/``."""
    return etag.removeprefix("W/")


def has_etag(known: str | None, required: str | None) -> bool:
    """Whether an event with the etag ``known`` has the required one, if any; both in either form."""
    return required is None or strong(known or "") == strong(required)


def changed(provider: str, operation: str, *, repeated: bool = False) -> EventChanged:
    """The error for an event that no longer has the required etag.

    ``repeated``: an earlier attempt of the write got no answer, so this write may be what changed the event.
    """
    perhaps = ", perhaps by this request" if repeated else ""
    error = EventChanged(
        f"The event in {provider} has changed since it was read{perhaps}", operation=operation
    )
    error.repeated = repeated
    return error


def after_refused_update(
    conflict: ProviderError, changes: Changes, provider: str, read: Callable[[], Event]
) -> Event:
    """The outcome of an update that the provider refused with ``conflict`` because of the required etag.

    The refused attempt may follow one without an answer, which has changed the etag itself: then the event
    has the changes already, and the update has succeeded.

    :raise EventNotFound: when the event was deleted
    :raise EventChanged: otherwise
    """
    event = _current(read)
    if conflict.repeated and event is not None and has_changes(event, changes):
        return event
    raise changed(provider, conflict.operation or "", repeated=conflict.repeated)


def written_before(conflict: ProviderError, changes: Changes, read: Callable[[], Event]) -> Event | None:
    """The event, if an attempt without an answer has written the changes that ``conflict`` refuses."""
    event = _current(read) if conflict.repeated else None
    return event if event is not None and has_changes(event, changes) else None


def after_refused_delete(conflict: ProviderError, provider: str, read: Callable[[], Event]) -> None:
    """As :func:`after_refused_update`, for a delete.

    It has succeeded when an earlier attempt has deleted the event.

    :raise EventNotFound, EventChanged: as there
    """
    try:
        _current(read)
    except EventNotFound:
        if conflict.repeated:
            return
        raise
    raise changed(provider, conflict.operation or "", repeated=conflict.repeated)


def _current(read: Callable[[], Event]) -> Event | None:
    """The event as it is now, None when it cannot be read.

    :raise EventNotFound: when it was deleted
    """
    try:
        return read()
    except EventNotFound:
        raise
    except ProviderError:
        return None
