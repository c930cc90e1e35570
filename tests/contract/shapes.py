"""The shapes of the specification's field tables, written by hand: nothing here is taken from our schemas.

A shape is a type, a set of words, a pattern, None, a list of one shape (an empty one: the list is empty), or
an object: it must have exactly these names, and those with ``?`` at the end are optional. ``Either`` is one
of several shapes.
"""

from __future__ import annotations

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
COLOR = re.compile(r"#[0-9a-f]{6}")


class Either(tuple[Any, ...]):
    """One of several shapes."""


def nullable(shape: Any) -> Either:
    return Either((shape, None))


# Accounts of all kinds, as other tests connect them too.
PROVIDER = frozenset({"google", "microsoft", "caldav", "ics"})
TYPE = frozenset({"oauth2", "delegated", "basic", "feed"})
REASON = frozenset(
    {
        *("accessDenied", "authorizationInvalid", "insufficientScopes", "invalidCalendarId"),
        *("mailboxUnavailable", "notFound", "providerError", "providerNotConfigured", "rateLimited"),
        "tooManyCalendars",
    }
)
CONNECTION_ID = re.compile(r"[0-9a-f]{32}")
ANSWERED = frozenset({"accepted", "declined", "needsAction", "tentative"})

FAILED_CALENDAR = {
    "calendarId": str,
    "provider": PROVIDER,
    "connectionId": CONNECTION_ID,
    "code": REASON,
    "reason": REASON,
    "message": str,
}
FAILED_USER = {
    "customId": str,
    "userId": str,
    "code": str,
    "reason": REASON,
    "message": str,
    "failedCalendars": [FAILED_CALENDAR],
}

CONNECTION = {
    "provider": PROVIDER,
    "email": nullable(str),
    "alive": bool,
    "expiresAt": nullable(TIME),
    "scope": [str],
    "type": TYPE,
    "accessToken": nullable(str),
    "refreshToken": nullable(str),
}
USER_CONNECTION = {
    "id": CONNECTION_ID,
    "provider": PROVIDER,
    "type": TYPE,
    "email": nullable(str),
    "label": nullable(str),
    "default": bool,
    "alive": bool,
    "scope": [str],
    "expiresAt": nullable(TIME),
    "createdAt": TIME,
    "lastRead": nullable({"at": TIME, "ok": bool, "reason?": REASON, "message?": str, "since?": TIME}),
}
ORGANIZATION = {
    "slug": str,
    "name": nullable(str),
    "createdAt": TIME,
    "members": [{"id": str, "createdAt": TIME}],
}
WEBHOOK = {
    "id": re.compile(r"wh_[0-9a-f]{24}"),
    "url": str,
    "events": [
        frozenset(
            {
                *("calendar.changed", "connection.expired", "connection.restored"),
                *("grant.expired", "grant.restored"),
            }
        )
    ],
    "createdAt": TIME,
    "paused": bool,
    "content": bool,
}
DELIVERY = {
    "id": re.compile(r"msg_[0-9a-f]{32}"),
    "status": frozenset({"pending", "delivered", "failed"}),
    "payload": {
        "type": frozenset({"calendar.changed"}),
        "timestamp": TIME,
        "data": {"userId": str, "provider": PROVIDER, "connectionId": CONNECTION_ID, "calendarId": str},
    },
    "attempts": int,
    "createdAt": TIME,
    "lastAttemptAt": nullable(TIME),
    "nextAttemptAt": nullable(TIME),
    "deliveredAt": nullable(TIME),
    "lastStatus": nullable(int),
    "lastError": nullable(str),
}
USER = {
    "id": str,
    "createdAt": TIME,
    "oauthConnections": [CONNECTION],
    "organizations": [ORGANIZATION],
}
# In a list of users an organization has at most 100 members.
LISTED_USER = USER | {"organizations": [ORGANIZATION | {"membersTruncated?": bool, "memberCount?": int}]}
CALENDAR = {
    "id": str,
    "provider": PROVIDER,
    "connectionId": CONNECTION_ID,
    "subject": str,
    "accessRole": frozenset({"freeBusyReader", "reader", "writer", "owner"}),
    "primary": bool,
    "selected": bool,
    "backgroundColor": COLOR,
    "foregroundColor": COLOR,
    "timeZone": str,
    "original": nullable(dict),
}
ETAG = re.compile(r'W/"[!#-~]*"')
# Where the event is, and what the provider gives with it.
COPY = {
    "id": str,
    "calendarId": str,
    "provider": PROVIDER,
    "organizer": {"email": str, "self": bool, "name?": str},
    "webLink": str,
    "recurringEventId?": str,
    "seriesId?": str,
    "originalStart?": TIME,
    "updatedAt": TIME,
    "etag": ETAG,
}
WHAT = {
    "subject": str,
    "description": str,
    "descriptionHtml?": str,
    "location": str,
    "start": TIME,
    "end": TIME,
    "allDay?": bool,
    "meetingUrl?": str,
    "status": frozenset({"confirmed", "tentative"}),
    "showAs": frozenset({"busy", "free", "tentative", "outOfOffice", "workingElsewhere"}),
    "visibility": frozenset({"default", "public", "private"}),
    "reminders": nullable([int]),
    "timeZone?": str,
    "recurrence?": [str],
}
ATTENDEE = {
    "email": str,
    "self": bool,
    "responseStatus": ANSWERED,
    "name?": str,
    "optional?": frozenset({True}),
    "resource?": frozenset({True}),
    "original": nullable(dict),
}
EVENT = {
    **WHAT,
    **COPY,
    "metaId?": str,
    "attendees": [ATTENDEE],
    "original": nullable(dict),
}
# Exactly one of the last two.
CHANGE = {"type": str, "calendarId": str, "connectionId": str, "event?": EVENT, "id?": str}
UNIFIED = {
    **WHAT,
    "metaId": str,
    "attendees": [{"email": str, "self": bool, "originals": [dict]}],
    "originals": [dict],
    "events": [COPY],
}
PERIOD = {"start": TIME, "end": TIME}
OPTIONS = {
    **PERIOD,
    "maxOverlaps": int,
    "padding": int,
    "slotDuration": int,
    "timeZone": str,
    "earliestTimeEachDay?": CLOCK,
    "latestTimeEachDay?": CLOCK,
    "paddingBefore?": int,
    "paddingAfter?": int,
    "minimumNotice?": int,
    "limit?": int,
    "overrides?": [{"date": str, "windows": [{"start": CLOCK, "end": CLOCK}]}],
}
SLOTS = {"availableSlots": [PERIOD], "options": OPTIONS}
BLOCKING = {
    **PERIOD,
    "calendarId": str,
    "provider": PROVIDER,
    "connectionId": CONNECTION_ID,
    "email": nullable(str),
    "paddedStart": TIME,
    "paddedEnd": TIME,
}
EXPLAINED = {
    "offered": bool,
    "reason": frozenset(
        {
            *("offered", "outsideRange", "outsideWindow", "busy", "padding", "tooManyOverlaps", "tooShort"),
            *("remainder", "betweenSlots", "calendarUnread", "noCalendars", "tooSoon", "beyondLimit"),
        }
    ),
    "sentence": str,
    "slot": nullable(PERIOD),
    "startsSlot": bool,
    "free": nullable(PERIOD),
    "window": nullable(PERIOD),
    "nextSlot": nullable(PERIOD),
    "previousSlot": nullable(PERIOD),
    "blockedBy": [BLOCKING],
    "heldBy?": [PERIOD | {"paddedStart": TIME, "paddedEnd": TIME, "expiresAt": TIME}],
}
USER_EXPLAINED = {"at": TIME, **EXPLAINED, "options": OPTIONS}
MEMBERS_EXPLAINED = {
    "at": TIME,
    "offeredBy": [str],
    "members": [{"userId": str, **EXPLAINED}],
    "options": OPTIONS,
}
CLOCK_OPTIONS = {**OPTIONS, "align": frozenset({"clock"})}
SHARED_SLOTS = {"availableSlots": [{**PERIOD, "users": [str]}], "options": CLOCK_OPTIONS}
MISSING_USER = {"userId": str, **EXPLAINED, "at": TIME}
GROUP_EXPLAINED = {
    "at": TIME,
    "offered": bool,
    "reason": frozenset(
        {
            *("offered", "outsideRange", "outsideWindow", "tooSoon", "tooShort", "remainder", "betweenSlots"),
            *("beyondLimit", "notEnoughFree"),
        }
    ),
    "sentence": str,
    "slot": nullable(PERIOD),
    "groups": [{"required": int, "free": [str], "missing": [MISSING_USER]}],
    "options": CLOCK_OPTIONS,
}
WINDOW = {"days": [str], "start": CLOCK, "end": CLOCK}
ENTRY = Either(
    (
        {
            "userId": str,
            "status": frozenset({"ok"}),
            **SLOTS,
            "calendarIds": [str],
            "schedules": [WINDOW],
            "failedCalendars": [FAILED_CALENDAR],
        },
        {
            "userId": str,
            "status": frozenset({"error"}),
            "error": str,
            "code": frozenset({"userNotFound", "noConnectedCalendars"}) | REASON,
            "reason?": REASON,
            "failedCalendars": [FAILED_CALENDAR],
        },
    )
)

DONE = {"success": frozenset({True})}
ERROR = {"data": None, "error": str, "code": str}


def data(shape: Any, **beside: Any) -> dict[str, Any]:
    """A success, with the fields beside its data."""
    return {"data": shape, **beside}


def shape_errors(value: Any, shape: Any, path: str = "$") -> list[str]:
    """The places where a value does not have a shape."""
    match shape:
        case Either():
            found = [shape_errors(value, each, path) for each in shape]
            return [] if [] in found else min(found, key=len)
        case dict():
            return _object(value, shape, path)
        case []:
            fits = value == []
        case [of]:
            if not isinstance(value, list):
                return [f"{path} is no array"]
            return [fault for n, each in enumerate(value) for fault in shape_errors(each, of, f"{path}[{n}]")]
        case None:
            fits = value is None
        case frozenset():
            fits = value in shape
        case re.Pattern():
            fits = isinstance(value, str) and shape.fullmatch(value) is not None
        case _:
            fits = type(value) is shape
    return [] if fits else [f"{path} is {value!r}"]


def _object(value: Any, shape: dict[str, Any], path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path} is no object"]
    known = {name.removesuffix("?"): name for name in shape}
    faults = [f"{path}.{name} is unknown" for name in value.keys() - known.keys()]
    for name, spelt in known.items():
        if name in value:
            faults += shape_errors(value[name], shape[spelt], f"{path}.{name}")
        elif spelt == name:
            faults.append(f"{path}.{name} is missing")
    return faults
