"""The state of a connection as a word and a badge."""

from __future__ import annotations

from collections.abc import Iterable

from app.accounts import oauth_result_page
from providers.names import ProviderName
from providers.scopes import Level, Operation, allows
from store.sql.models import OAuthConnection, now

# The levels of access that can be requested from a user, the widest first: most integrations need it.
LEVELS = {
    Level.WRITE: "Reading and writing",
    Level.READ: "Reading",
    Level.FREE_BUSY: "Free and busy times only",
}

# A grant that allows this operation includes the level.
_PROVES = {
    Level.WRITE: Operation.INSERT_EVENT,
    Level.READ: Operation.LIST_EVENTS,
    Level.FREE_BUSY: Operation.FREE_BUSY,
}

_TITLES = {ProviderName.GOOGLE: "Google", ProviderName.MICROSOFT: "Microsoft"}

ENDED, RUN_OUT, NO_CALENDARS, CONNECTED = "ended", "run out", "no calendars", "connected"
_BADGES = {ENDED: "bad", RUN_OUT: "warn", NO_CALENDARS: "warn", CONNECTED: "good"}


def title(provider: str) -> str:
    """A provider's name as people know it, whether it is set up or not."""
    return _TITLES[ProviderName(provider)]


def health(connection: OAuthConnection) -> str:
    """``ENDED``, ``RUN_OUT``, ``NO_CALENDARS`` or ``CONNECTED``."""
    if not connection.usable:
        return ENDED
    ends = connection.expires_at
    if connection.sealed_refresh_token is None and ends is not None and ends <= now():
        return RUN_OUT
    return CONNECTED if access(connection) else NO_CALENDARS


def access(connection: OAuthConnection) -> str | None:
    """The granted access, in words; None when it reaches no calendar."""
    return access_of(connection.provider, connection.scope)


def access_of(provider: str, scopes: Iterable[str]) -> str | None:
    """The access that scopes grant, in words; None when they reach no calendar."""
    return oauth_result_page.access(ProviderName(provider), scopes)


def level(connection: OAuthConnection) -> Level:
    """The level to request when the user connects again: the one that was granted."""
    provider, scopes = ProviderName(connection.provider), connection.scope
    return next((level for level, each in _PROVES.items() if allows(provider, scopes, each)), Level.WRITE)


def badge(connection: OAuthConnection) -> tuple[str, str]:
    """The CSS class and the word of a connection's badge."""
    word = health(connection)
    return _BADGES[word], word


def badge_of(connection: OAuthConnection) -> tuple[str, str]:
    """As ``badge``, with the provider's name before the word."""
    kind, word = badge(connection)
    return kind, f"{title(connection.provider)}: {word}"
