"""The permissions, of users or of applications, that allow each call.

https://learn.microsoft.com/graph/permissions-reference
"""

from __future__ import annotations

from functools import lru_cache

PREFIX = "https://graph.microsoft.com/"
FULL_SCOPE = (
    *("Calendars.ReadWrite", "MailboxSettings.Read", "User.Read"),
    *("offline_access", "openid", "email", "profile"),
)
# Scopes of OpenID Connect, which have no prefix.
OPENID = frozenset(("offline_access", "openid", "email", "profile"))


@lru_cache(maxsize=4096)
def short_names(scopes: tuple[str, ...]) -> frozenset[str]:
    """Scopes in lower case and without prefix, which tokens and applications spell differently."""
    return frozenset(scope.removeprefix(PREFIX).lower() for scope in scopes)


def full_name(scope: str) -> str:
    """A scope as the token endpoint writes it."""
    return scope if scope in OPENID or scope.startswith(PREFIX) else PREFIX + scope


WRITE = short_names(("Calendars.ReadWrite", "Calendars.ReadWrite.Shared"))
READ = WRITE | short_names(("Calendars.Read", "Calendars.Read.Shared"))
READ_BASIC = READ | short_names(("Calendars.ReadBasic", "Calendars.ReadBasic.All"))
SETTINGS = short_names(("MailboxSettings.Read", "MailboxSettings.ReadWrite"))
LIST_USERS = short_names(("User.ReadBasic.All", "User.Read.All", "Directory.Read.All"))
LIST_PLACES = short_names(("Place.Read.All", "Place.ReadWrite.All"))
PROFILE = short_names(("User.Read", "User.ReadBasic.All", "User.Read.All", "User.ReadWrite"))
