"""Accounts of either provider, their domains, and the grants that let an application read them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from joserfc.jwk import RSAKey

from providers.sandbox.calendars import Calendar

Provider = Literal["google", "microsoft"]
# Whether colleagues of the domain may read a member's free/busy.
Sharing = Literal["domain", "none"]

# The main calendar, whatever its real id.
PRIMARY = "primary"


@dataclass(eq=False)
class Account:
    """A user's account; ``calendars`` are in the order of the list.

    The account of a domain's application has no calendars. ``sharing`` None means that of the domain. An
    access policy keeps Microsoft's applications out of an ``excluded`` mailbox. ``administrator``: it may
    read the directory (Google); None is not yet decided. A ``guest`` is one of Microsoft's tenant.
    """

    provider: Provider
    email: str
    time_zone: str
    calendars: dict[str, Calendar] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    suspended: bool = False
    excluded: bool = False
    sharing: Sharing | None = None
    administrator: bool | None = None
    guest: bool = False

    def has_granted(self, client_id: str) -> bool:
        """Whether an application has a live grant of this account."""
        return any(grant.alive and grant.client_id == client_id for grant in self.grants)

    def revoke(self, client_id: str | None = None) -> None:
        """Revoke every token of one application, or of all applications to which the user consented."""
        for grant in self.grants:
            if client_id == grant.client_id or (client_id is None and grant.domain is None):
                grant.alive = False

    def close(self) -> None:
        """Invalidate every token of this account."""
        for grant in self.grants:
            grant.alive = False

    @property
    def domain_name(self) -> str:
        """The domain of the address, in lower case."""
        return self.email.rpartition("@")[2].lower()

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


@dataclass(frozen=True, slots=True)
class Room:
    """A room in the directory of a domain; ``category`` is Google's."""

    id: str
    email: str
    name: str
    building: str = ""
    capacity: int = 0
    category: str = "CONFERENCE_ROOM"


def shown_name(email: str) -> str:
    """The full name of the person at an address."""
    return email.partition("@")[0].replace(".", " ").title()


@dataclass(eq=False)
class Domain:
    """A Google Workspace domain or a Microsoft 365 tenant, and its grant to one application.

    Every account whose address is in the domain is a member. ``application`` is the account of the service
    account (Google) or of the service principal (Microsoft). The administrator withdraws the grant.
    """

    provider: Provider
    name: str
    scopes: tuple[str, ...]
    client_id: str
    application: Account
    sharing: Sharing = "domain"
    withdrawn: bool = False
    # Google: the service account's key. Its public part verifies assertions.
    key: RSAKey | None = None
    # Microsoft: the directory's id, and the application's client secret.
    tenant: str = ""
    secret: str = field(default="", repr=False)
    secret_expired: bool = False
    rooms: tuple[Room, ...] = ()

    def has(self, account: Account) -> bool:
        """Whether an account is a member."""
        return account.provider == self.provider and account.domain_name == self.name

    def shares(self, account: Account) -> bool:
        """Whether colleagues may read a member's free/busy."""
        return not account.suspended and (account.sharing or self.sharing) == "domain"


@dataclass(eq=False, slots=True)
class Grant:
    """One consent to one application, by the user or, with a ``domain``, by its administrator.

    At Google all consents of an account to one application are one grant: revoking one of its tokens revokes
    all of them. A later consent is valid again.
    """

    account: Account
    scopes: tuple[str, ...]
    client_id: str
    alive: bool = True
    domain: Domain | None = None

    @property
    def is_valid(self) -> bool:
        """Whether its tokens may still be used."""
        withdrawn = self.domain is not None and self.domain.withdrawn
        return self.alive and not withdrawn and not self.account.suspended


@dataclass(eq=False, slots=True)
class Access:
    """An access token: its grant, its scopes, and its expiry (seconds since 1970)."""

    grant: Grant
    scopes: tuple[str, ...]
    expires_at: float
