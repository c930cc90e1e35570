"""Accounts of either provider, and the grants that let an application read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from providers.sandbox.calendars import Calendar

Provider = Literal["google", "microsoft"]

# The main calendar, whatever its real id.
PRIMARY = "primary"


@dataclass(eq=False)
class Account:
    """A user's account; ``calendars`` are in the order of the list."""

    provider: Provider
    email: str
    time_zone: str
    calendars: dict[str, Calendar] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)

    def has_granted(self, client_id: str) -> bool:
        """Whether an application has a live grant of this account."""
        return any(grant.alive and grant.client_id == client_id for grant in self.grants)

    def revoke(self, client_id: str | None = None) -> None:
        """Revoke every token of one application, or of all applications."""
        for grant in self.grants:
            if client_id in (None, grant.client_id):
                grant.alive = False

    @property
    def primary(self) -> Calendar | None:
        """The main calendar; an account without a mailbox has none."""
        return next((calendar for calendar in self.calendars.values() if calendar.primary), None)

    def calendar(self, name: str) -> Calendar | None:
        """The calendar with an id, or with the alias ``primary``."""
        return self.primary if name == PRIMARY else self.calendars.get(name)

    def names(self, name: str) -> frozenset[str]:
        """All names of the calendar ``name``: a fault may use ``primary`` or the real id."""
        calendar = self.calendar(name)
        if calendar is None:
            return frozenset((name,))
        return frozenset((calendar.id, PRIMARY)) if calendar.primary else frozenset((calendar.id,))


@dataclass(eq=False, slots=True)
class Grant:
    """One consent to one application.

    At Google all consents of an account to one application are one grant: revoking one of its tokens revokes
    all of them. A later consent is valid again.
    """

    account: Account
    scopes: tuple[str, ...]
    client_id: str
    alive: bool = True


@dataclass(eq=False, slots=True)
class Access:
    """An access token: its grant, its scopes, and its expiry (seconds since 1970)."""

    grant: Grant
    scopes: tuple[str, ...]
    expires_at: float
