"""Scopes to request for each level of access, and scopes that each operation requires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from providers.errors import InsufficientScopes


class Level(StrEnum):
    """The API's levels of access; each includes the ones above it here."""

    FREE_BUSY = "free-busy"
    READ = "read"
    WRITE = "write"


# `edit` is the old name of `write`.
LEVEL_NAMES = (*(str(level) for level in Level), "edit")


class Operation(StrEnum):
    """Provider calls by their names in the API, the same for all providers."""

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

# Clients of every provider may send it; only some providers have it.
OFFLINE = "offline_access"


def level(name: str) -> Level:
    """The level with that name; ``edit`` is the old name of ``write``.

    :raise ValueError: for any other word
    """
    return Level.WRITE if name == "edit" else Level(name)


def required_level(operation: str) -> Level:
    """The lowest level that allows an operation."""
    return REQUIRED_LEVEL[Operation(operation)]


@dataclass(frozen=True, eq=False)
class Scopes:
    """The scopes of one provider.

    ``levels`` are those to request for each level, ``valid`` those of which each operation needs one.
    ``address`` reveal the account's address, for clients that choose the other scopes themselves.
    ``settings`` are those of every level that reads of calendars need beside the calendar scopes.
    ``unchangeable`` says why calendars cannot be changed, where no scope allows it.
    ``offline`` makes the provider issue a refresh token, if a scope does. A scope may be written as a short
    name or with ``prefix``, in any case, and ``suffixes`` change nothing of what is allowed.
    """

    levels: Mapping[Level, tuple[str, ...]]
    valid: Mapping[Operation, tuple[str, ...]]
    address: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    offline: str | None = None
    prefix: str = ""
    suffixes: tuple[str, ...] = ()
    unchangeable: str = ""

    def expand_levels(self, scopes: Iterable[str]) -> list[str]:
        """These scopes without duplicates; a level expands to its calendar scopes, and those of settings."""
        expanded: list[str] = []
        for each in scopes:
            if each in LEVEL_NAMES:
                expanded += [scope for scope in self.level_scopes(each) if self.reaches_calendars([scope])]
                expanded += self.settings
            else:
                expanded.append(each)
        return list(dict.fromkeys(expanded))

    def to_request(self, wanted: str | Sequence[str], *, offline: bool) -> list[str]:
        """The scopes for a level of access, or the named ones and those for the account's address.

        :raise ValueError: for a word that is not a level
        """
        if isinstance(wanted, str):
            scopes = list(self.level_scopes(wanted))
        else:
            scopes = list(dict.fromkeys(wanted))
            scopes += [each for each in self.address if not self.has_scope(scopes, each)]
        scopes = [each for each in scopes if each.lower() != OFFLINE]
        return [*scopes, self.offline] if offline and self.offline else scopes

    def reaches_calendars(self, granted: Iterable[str]) -> bool:
        """Whether the scopes allow any calendar operation."""
        return bool(self.permitted(granted))

    def permitted(self, granted: Iterable[str]) -> frozenset[Operation]:
        """The operations that the scopes allow."""
        scopes = frozenset(granted)
        return frozenset(each for each in Operation if _allows(self, scopes, each))

    def shows_times(self, granted: Iterable[str]) -> bool:
        """Whether the scopes let a person's busy times be read, from events or without them.

        A connection without them answers no availability request.
        """
        return bool(self.permitted(granted) & {Operation.FREE_BUSY, Operation.LIST_EVENTS})

    def level_scopes(self, name: str) -> tuple[str, ...]:
        """The scopes to request for a level of access."""
        return self.levels[level(name)]

    def every_scope(self) -> tuple[str, ...]:
        """The scopes of all levels, without duplicates; an OAuth client has to allow all of them."""
        return tuple(dict.fromkeys(scope for each in Level for scope in self.levels[each]))

    def valid_scopes(self, operation: str) -> tuple[str, ...]:
        """The scopes that allow an operation; one of them suffices."""
        return self.valid[Operation(operation)]

    def allows(self, granted: Iterable[str], operation: str) -> bool:
        """Whether the granted scopes allow an operation."""
        return _allows(self, frozenset(granted), Operation(operation))

    def has_scope(self, granted: Iterable[str], scope: str) -> bool:
        """Whether ``scope`` is among those granted, compared in short form."""
        return self.short(scope) in {self.short(each) for each in granted}

    def insufficient(self, operation: str, *, delegated: bool = False) -> InsufficientScopes:
        """The error when the granted scopes do not allow an operation.

        ``delegated``: they are those of an organization grant, which the user cannot change.
        """
        needed = required_level(operation)
        if self.unchangeable and needed is Level.WRITE:
            return InsufficientScopes(self.unchangeable, operation=operation)
        if delegated:
            scopes = " ".join(self.expand_levels([needed]))
            remedy = f"the administrator of the organization has to enter its grant again with {scopes}"
        else:
            remedy = f"connect the account again and request {' '.join(self.level_scopes(needed))}"
        message = f"{operation} needs the scope level {needed}: {remedy}"
        return InsufficientScopes(message, operation=operation)

    def require(self, granted: Iterable[str], operation: str, *, delegated: bool = False) -> None:
        """Check that the granted scopes allow an operation; ``delegated`` as in ``insufficient``.

        :raise InsufficientScopes: when they do not
        """
        if not self.allows(granted, operation):
            raise self.insufficient(operation, delegated=delegated)

    def short(self, scope: str) -> str:
        """The scope in lower case without prefix, suffixes, and a slash too many on either side."""
        short = scope.lower().removeprefix(self.prefix).strip("/")
        for suffix in self.suffixes:
            short = short.removesuffix(suffix)
        return short


def one_scope(scope: str, highest: Level, *, unchangeable: str = "") -> Scopes:
    """The scopes of a provider that has none of its own: ``scope`` allows all up to a level, nothing more.

    ``unchangeable``: see ``Scopes``.
    """
    levels = list(Level)
    allowed = levels[: levels.index(highest) + 1]
    valid = {each: (scope,) if level in allowed else () for each, level in REQUIRED_LEVEL.items()}
    return Scopes(dict.fromkeys(Level, (scope,)), valid, unchangeable=unchangeable)


@lru_cache(maxsize=1024)
def _allows(scopes: Scopes, granted: frozenset[str], operation: Operation) -> bool:
    short = {scopes.short(each) for each in granted}
    return any(scopes.short(each) in short for each in scopes.valid[operation])
