"""Scopes to request for each level of access, and scopes that each operation requires."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from providers.errors import InsufficientScopes

GOOGLE, MICROSOFT = "google", "microsoft"


class Level(StrEnum):
    """The API's levels of access; each includes the ones above it here."""

    FREE_BUSY = "free-busy"
    READ = "read"
    WRITE = "write"


# `edit` is the old name of `write`.
LEVEL_NAMES = (*(str(level) for level in Level), "edit")


class Operation(StrEnum):
    """Provider calls by their names in the API, the same for both providers."""

    LIST_CALENDARS = "calendar.calendarList.list"
    FREE_BUSY = "calendar.freebusy.query"
    LIST_EVENTS = "calendar.events.list"
    GET_EVENT = "calendar.events.get"
    INSERT_EVENT = "calendar.events.insert"
    UPDATE_EVENT = "calendar.events.update"
    DELETE_EVENT = "calendar.events.delete"
    WATCH_EVENTS = "calendar.events.watch"


REQUIRED_LEVEL = {
    Operation.LIST_CALENDARS: Level.FREE_BUSY,
    Operation.FREE_BUSY: Level.FREE_BUSY,
    Operation.LIST_EVENTS: Level.READ,
    Operation.GET_EVENT: Level.READ,
    Operation.INSERT_EVENT: Level.WRITE,
    Operation.UPDATE_EVENT: Level.WRITE,
    Operation.DELETE_EVENT: Level.WRITE,
    Operation.WATCH_EVENTS: Level.READ,
}

_GOOGLE_PREFIX = "https://www.googleapis.com/auth/"
_MICROSOFT_PREFIX = "https://graph.microsoft.com/"


def _google(*names: str) -> tuple[str, ...]:
    return tuple(_GOOGLE_PREFIX + name for name in names)


# For the account's e-mail address, which identifies its own attendee entry.
_GOOGLE_IDENTITY = ("openid", "email")
# MailboxSettings.Read: the mailbox's zone, which decides when an all-day event begins.
_MICROSOFT_IDENTITY = ("offline_access", "openid", "email", "profile", "User.Read", "MailboxSettings.Read")

_LEVEL_SCOPES = {
    (GOOGLE, Level.FREE_BUSY): (
        *_google("calendar.freebusy", "calendar.calendarlist.readonly"),
        *_GOOGLE_IDENTITY,
    ),
    (GOOGLE, Level.READ): (*_google("calendar.readonly"), *_GOOGLE_IDENTITY),
    (GOOGLE, Level.WRITE): (*_google("calendar"), *_GOOGLE_IDENTITY),
    (MICROSOFT, Level.FREE_BUSY): ("Calendars.ReadBasic", *_MICROSOFT_IDENTITY),
    (MICROSOFT, Level.READ): ("Calendars.Read", *_MICROSOFT_IDENTITY),
    (MICROSOFT, Level.WRITE): ("Calendars.ReadWrite", *_MICROSOFT_IDENTITY),
}

# https://developers.google.com/workspace/calendar/api/v3/reference (discovery document 20261030).
# calendar.events allows neither calendarList.list nor freebusy.query.
_GOOGLE_READ = _google(
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
_GOOGLE_WRITE = _google("calendar", "calendar.app.created", "calendar.events", "calendar.events.owned")

# https://learn.microsoft.com/en-us/graph/permissions-reference
_MICROSOFT_BY_LEVEL = {
    Level.FREE_BUSY: ("Calendars.ReadBasic", "Calendars.Read", "Calendars.ReadWrite"),
    Level.READ: ("Calendars.Read", "Calendars.ReadWrite"),
    Level.WRITE: ("Calendars.ReadWrite",),
}

_VALID = {
    (GOOGLE, Operation.LIST_CALENDARS): _google(
        "calendar", "calendar.calendarlist", "calendar.calendarlist.readonly", "calendar.readonly"
    ),
    (GOOGLE, Operation.FREE_BUSY): _google(
        "calendar", "calendar.events.freebusy", "calendar.freebusy", "calendar.readonly"
    ),
    (GOOGLE, Operation.LIST_EVENTS): _GOOGLE_READ,
    (GOOGLE, Operation.GET_EVENT): _GOOGLE_READ,
    (GOOGLE, Operation.INSERT_EVENT): _GOOGLE_WRITE,
    (GOOGLE, Operation.UPDATE_EVENT): _GOOGLE_WRITE,
    (GOOGLE, Operation.DELETE_EVENT): _GOOGLE_WRITE,
    (GOOGLE, Operation.WATCH_EVENTS): _GOOGLE_READ,
} | {(MICROSOFT, operation): _MICROSOFT_BY_LEVEL[level] for operation, level in REQUIRED_LEVEL.items()}


def level(name: str) -> Level:
    """The level with that name; ``edit`` is the old name of ``write``.

    :raise ValueError: for any other word
    """
    return Level.WRITE if name == "edit" else Level(name)


def expand_levels(provider: str, scopes: Iterable[str]) -> list[str]:
    """The provider's scopes, without duplicates; a level expands to its calendar scopes."""
    expanded: list[str] = []
    for each in scopes:
        if each in LEVEL_NAMES:
            expanded += [
                scope for scope in level_scopes(provider, each) if reaches_calendars(provider, [scope])
            ]
        else:
            expanded.append(each)
    return list(dict.fromkeys(expanded))


def reaches_calendars(provider: str, granted: Iterable[str]) -> bool:
    """Whether the scopes allow any calendar operation."""
    scopes = frozenset(granted)
    return any(_allows(provider, scopes, operation) for operation in Operation)


def permitted(provider: str, granted: Iterable[str]) -> frozenset[Operation]:
    """The operations that the scopes allow."""
    scopes = frozenset(granted)
    return frozenset(each for each in Operation if _allows(provider, scopes, each))


def shows_times(provider: str, granted: Iterable[str]) -> bool:
    """Whether the scopes let a person's busy times be read, from events or without them.

    A connection without them answers no availability request.
    """
    return bool(permitted(provider, granted) & {Operation.FREE_BUSY, Operation.LIST_EVENTS})


def level_scopes(provider: str, name: str) -> tuple[str, ...]:
    """The scopes to request for a level of access."""
    return _LEVEL_SCOPES[provider, level(name)]


def every_scope(provider: str) -> tuple[str, ...]:
    """The scopes of all levels, without duplicates; an OAuth client has to allow all of them."""
    return tuple(dict.fromkeys(scope for each in Level for scope in _LEVEL_SCOPES[provider, each]))


def required_level(operation: str) -> Level:
    """The lowest level that allows an operation."""
    return REQUIRED_LEVEL[Operation(operation)]


def valid_scopes(provider: str, operation: str) -> tuple[str, ...]:
    """The provider's scopes that allow an operation; one of them suffices."""
    return _VALID[provider, Operation(operation)]


def allows(provider: str, granted: Iterable[str], operation: str) -> bool:
    """Whether the granted scopes allow an operation; scopes may be short names or URLs, in any case."""
    return _allows(provider, frozenset(granted), Operation(operation))


def has_scope(provider: str, granted: Iterable[str], scope: str) -> bool:
    """Whether ``scope`` is among those granted, compared in short form."""
    return _short(provider, scope) in {_short(provider, each) for each in granted}


def insufficient(provider: str, operation: str) -> InsufficientScopes:
    """The error when the granted scopes do not allow an operation."""
    needed = required_level(operation)
    scopes = " ".join(level_scopes(provider, needed))
    return InsufficientScopes(
        f"{operation} needs the scope level {needed}: connect the account again and request {scopes}",
        operation=operation,
    )


def require(provider: str, granted: Iterable[str], operation: str) -> None:
    """Check that the granted scopes allow an operation.

    :raise InsufficientScopes: when they do not
    """
    if not allows(provider, granted, operation):
        raise insufficient(provider, operation)


@lru_cache(maxsize=1024)
def _allows(provider: str, granted: frozenset[str], operation: Operation) -> bool:
    short = {_short(provider, scope) for scope in granted}
    return any(_short(provider, scope) in short for scope in _VALID[provider, operation])


def _short(provider: str, scope: str) -> str:
    """The scope in lower case without its URL prefix, and without a slash too many on either side.

    A resource whose name ends with a slash makes "https://graph.microsoft.com//Calendars.Read":
    https://learn.microsoft.com/en-us/entra/identity-platform/scopes-oidc#trailing-slash-and-default
    Microsoft's "shared" scopes include the plain ones. An application permission has the name of the
    delegated one, except ``Calendars.ReadBasic.All``:
    https://learn.microsoft.com/en-us/graph/permissions-reference#calendarsreadbasicall
    """
    prefix = _GOOGLE_PREFIX if provider == GOOGLE else _MICROSOFT_PREFIX
    short = scope.lower().removeprefix(prefix).strip("/")
    return short.removesuffix(".shared").removesuffix(".all") if provider == MICROSOFT else short
