"""The answers of CalDAV servers that refuse a request."""

from __future__ import annotations

from dataclasses import replace

from providers.caldav import xml
from providers.changes import token_expired
from providers.errors import EventRefused, ProviderError
from providers.http import errors
from providers.http.calls import HttpReply

PROVIDER = "CalDAV"


class Redirected(ProviderError):
    """The resource is at another address."""

    def __init__(self, location: str, *, operation: str) -> None:
        super().__init__(f"{PROVIDER} redirects to another address", operation=operation)
        self.location = location


class PreconditionFailed(ProviderError):
    """The condition of a write does not hold: the resource has changed, or there is one (or none) already."""


class UidConflict(ProviderError):
    """The calendar has an event with the same UID at another address (RFC 4791, 5.3.2.1)."""


# The errors in the content of a write (RFC 4791, 5.3.2.1).
_REFUSED = {
    f"{xml.CALDAV}valid-calendar-data": "says that the event is not valid",
    f"{xml.CALDAV}valid-calendar-object-resource": "says that the event is not valid",
    f"{xml.CALDAV}supported-calendar-data": "does not accept events in this form",
    f"{xml.CALDAV}supported-calendar-component": "says that this calendar holds no events",
    f"{xml.CALDAV}max-resource-size": "says that the event is too long",
    f"{xml.CALDAV}min-date-time": "does not accept an event so early",
    f"{xml.CALDAV}max-date-time": "does not accept an event so late",
    f"{xml.CALDAV}max-instances": "does not accept a series with so many occurrences",
    f"{xml.CALDAV}max-attendees-per-instance": "does not accept so many attendees",
}


def error_for(reply: HttpReply) -> ProviderError:
    """The exception for an answer that is not 2xx."""
    if 300 <= reply.status < 400 and reply.location:
        return Redirected(reply.location, operation=reply.operation)
    if f"{xml.DAV}valid-sync-token" in xml.preconditions((reply.body or {}).get("root")):
        # RFC 6578, 3.2
        return token_expired(PROVIDER, reply.operation)
    # 501: a web server without the methods of WebDAV (RFC 9110, 15.6.2), which is not down.
    refusal = errors.by_status(405 if reply.status == 501 else reply.status)
    return errors.error(PROVIDER, refusal, operation=reply.operation, retry_after=reply.retry_after)


def write_error_for(reply: HttpReply) -> ProviderError:
    """The exception for a refused write."""
    violated = xml.preconditions((reply.body or {}).get("root"))
    if f"{xml.CALDAV}no-uid-conflict" in violated:
        return UidConflict(f"{PROVIDER} has this event at another address", operation=reply.operation)
    for name, words in _REFUSED.items():
        if name in violated:
            return EventRefused(f"{PROVIDER} {words}", operation=reply.operation)
    if reply.status == 412:
        return PreconditionFailed(f"{PROVIDER} has another version of the event", operation=reply.operation)
    if reply.status == 409:
        # RFC 4918, 9.7.1: there is no such collection.
        reply = replace(reply, status=404)
    if reply.status in (400, 413, 415, 422):
        return EventRefused(f"{PROVIDER} does not accept the event", operation=reply.operation)
    return error_for(reply)


def of_status(status: int, operation: str) -> ProviderError:
    """The exception for a part of an answer."""
    return errors.error(PROVIDER, errors.by_status(status), operation=operation)
