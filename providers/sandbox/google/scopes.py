"""The scopes that allow each method, from the discovery document.

https://www.googleapis.com/discovery/v1/apis/calendar/v3/rest
"""

from __future__ import annotations

PREFIX = "https://www.googleapis.com/auth/"
FULL_SCOPE = ("openid", PREFIX + "userinfo.email", PREFIX + "calendar")


def _named(*names: str) -> frozenset[str]:
    return frozenset(PREFIX + name for name in names)


READ_LIST = _named("calendar", "calendar.calendarlist", "calendar.calendarlist.readonly", "calendar.readonly")
READ_ENTRY = READ_LIST | _named("calendar.app.created")
READ_CALENDAR = _named(
    "calendar",
    "calendar.app.created",
    "calendar.calendars",
    "calendar.calendars.readonly",
    "calendar.readonly",
)
READ_BUSY = _named("calendar", "calendar.events.freebusy", "calendar.freebusy", "calendar.readonly")
READ_EVENTS = _named(
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
WRITE_EVENTS = _named("calendar", "calendar.app.created", "calendar.events", "calendar.events.owned")
STOP_CHANNELS = (
    READ_LIST
    | READ_EVENTS
    | _named("calendar.acls", "calendar.acls.readonly", "calendar.settings", "calendar.settings.readonly")
)
LIST_USERS = _named("admin.directory.user", "admin.directory.user.readonly")
LIST_ROOMS = _named("admin.directory.resource.calendar", "admin.directory.resource.calendar.readonly")
READ_SETTINGS = _named("calendar", "calendar.readonly", "calendar.settings", "calendar.settings.readonly")


def full_name(scope: str) -> str:
    """A scope as Google writes it in its answers; accepts short names such as ``calendar.readonly``."""
    if scope in ("email", "profile"):
        return f"{PREFIX}userinfo.{scope}"
    return PREFIX + scope if scope.partition(".")[0] in ("calendar", "admin") else scope
