"""Google's scopes.

https://developers.google.com/workspace/calendar/api/v3/reference (discovery document 20261030)
"""

from __future__ import annotations

from providers.scopes import Level, Operation, Scopes

PREFIX = "https://www.googleapis.com/auth/"


def _full(*names: str) -> tuple[str, ...]:
    return tuple(PREFIX + name for name in names)


# For the account's e-mail address, which identifies its own attendee entry.
_IDENTITY = ("openid", "email")

# calendar.events allows neither calendarList.list nor freebusy.query.
_READ = _full(
    "calendar",
    "calendar.app.created",
    "calendar.events",
    "calendar.events.freebusy",
    "calendar.events.owned",
    "calendar.events.owned.readonly",
    "calendar.events.public.readonly",
    "calendar.events.readonly",
    "calendar.readonly",
)
_WRITE = _full("calendar", "calendar.app.created", "calendar.events", "calendar.events.owned")

SCOPES = Scopes(
    levels={
        Level.FREE_BUSY: (*_full("calendar.freebusy", "calendar.calendarlist.readonly"), *_IDENTITY),
        Level.READ: (*_full("calendar.readonly"), *_IDENTITY),
        Level.WRITE: (*_full("calendar"), *_IDENTITY),
    },
    valid={
        Operation.LIST_CALENDARS: _full(
            "calendar", "calendar.calendarlist", "calendar.calendarlist.readonly", "calendar.readonly"
        ),
        Operation.FREE_BUSY: _full(
            "calendar", "calendar.events.freebusy", "calendar.freebusy", "calendar.readonly"
        ),
        Operation.LIST_EVENTS: _READ,
        Operation.GET_EVENT: _READ,
        Operation.INSERT_EVENT: _WRITE,
        Operation.UPDATE_EVENT: _WRITE,
        Operation.DELETE_EVENT: _WRITE,
        Operation.WATCH_EVENTS: _READ,
    },
    address=_IDENTITY,
    prefix=PREFIX,
)
