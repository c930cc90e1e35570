"""Microsoft's scopes: the permissions of Graph for calendars.

https://learn.microsoft.com/en-us/graph/permissions-reference
"""

from __future__ import annotations

from collections.abc import Iterable

from providers.scopes import OFFLINE, REQUIRED_LEVEL, Level, Scopes

PREFIX = "https://graph.microsoft.com/"

# The mailbox's zone, which decides when an all-day event begins.
_SETTINGS = "MailboxSettings.Read"
_IDENTITY = (OFFLINE, "openid", "email", "profile", "User.Read", _SETTINGS)

_BY_LEVEL = {
    Level.FREE_BUSY: ("Calendars.ReadBasic", "Calendars.Read", "Calendars.ReadWrite"),
    Level.READ: ("Calendars.Read", "Calendars.ReadWrite"),
    Level.WRITE: ("Calendars.ReadWrite",),
}

# A resource whose name ends with a slash makes "https://graph.microsoft.com//Calendars.Read":
# https://learn.microsoft.com/en-us/entra/identity-platform/scopes-oidc#trailing-slash-and-default
# "shared" scopes include the plain ones. An application permission has the name of the delegated one, except
# Calendars.ReadBasic.All: https://learn.microsoft.com/en-us/graph/permissions-reference#calendarsreadbasicall
SCOPES = Scopes(
    levels={
        Level.FREE_BUSY: ("Calendars.ReadBasic", *_IDENTITY),
        Level.READ: ("Calendars.Read", *_IDENTITY),
        Level.WRITE: ("Calendars.ReadWrite", *_IDENTITY),
    },
    valid={operation: _BY_LEVEL[level] for operation, level in REQUIRED_LEVEL.items()},
    address=("openid", "email", "profile"),
    settings=(_SETTINGS,),
    offline=OFFLINE,
    prefix=PREFIX,
    suffixes=(".shared", ".all"),
)


def may_read_zone(granted: Iterable[str]) -> bool:
    """Whether the scopes allow the settings of the mailbox to be read, which have its zone."""
    scopes = list(granted)
    return any(SCOPES.has_scope(scopes, each) for each in (_SETTINGS, "MailboxSettings.ReadWrite"))
