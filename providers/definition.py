"""The definition of a provider: the facts that other packages ask for, instead of comparing its name.

``Definition`` has what is known without settings. ``bind`` makes a ``Provider`` of one installation from the
provider's settings: its calendars, and the parts that it has. Code asks for a part, such as ``channels``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from providers.base import CalendarProvider, Channels, IssuedTokens
from providers.oauth.client import OAuth
from providers.scopes import Scopes


class GrantCredential(Protocol):
    """The grant of an organization, as its administrator has entered it."""

    @property
    def secret(self) -> str | None: ...
    @property
    def tenant(self) -> str | None: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def scope(self) -> Collection[str]: ...


class Grants(Protocol):
    """Issues access tokens for an organization's grant."""

    def token(self, grant: GrantCredential, subject: str | None, *, deadline: float) -> IssuedTokens:
        """An access token; ``subject`` is the account to impersonate, where the provider impersonates.

        :raise GrantRefused: when the administrator of the organization has to act
        :raise SubjectRefused: when the account does not exist or is suspended
        :raise ProviderNotConfigured: when the grant needs the installation's registration and there is none
        :raise Unavailable: when the same call may succeed later
        """
        ...


class CallCosts(Protocol):
    """The number of provider calls of each kind of job, without retries and further pages."""

    # To find the id of the main calendar, when it is not known.
    main_calendar: int
    listing: int
    # One event, or busy times without one event.
    event: int
    # The most calendars whose events one job reads, and the most calendars of members in one request.
    calendars_of_events: int
    calendars_of_members: int

    def busy(self, calendars: int | None, milliseconds: int) -> int:
        """For busy times of some calendars, or of all on the list."""
        ...

    def events(self, calendars: int) -> int:
        """For the events of some calendars."""
        ...


@dataclass(frozen=True, slots=True)
class ConsentGuide:
    """How an administrator registers this installation, step by step, and where."""

    console: str
    steps: tuple[str, ...]
    # The registration belongs to a tenant.
    has_tenant: bool = False


@dataclass(frozen=True, slots=True)
class GrantGuide:
    """How an administrator grants an organization's calendars, and how the grant works.

    ``impersonates``: a token is for one account, the grant has an account of its own that reads busy times of
    the others, and members have addresses in its domain. Otherwise one token is for every mailbox.
    """

    steps: tuple[str, ...]
    impersonates: bool


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of one installation.

    ``configured``: the operator has set its OAuth client. ``hosts`` are one address of each host that jobs
    call, ``consent_page`` that of its consent page.
    """

    calendars: CalendarProvider
    channels: Channels
    oauth: OAuth
    grants: Grants
    configured: bool
    hosts: tuple[str, ...]
    consent_page: str


@dataclass(frozen=True, eq=False)
class Definition:
    """One provider; ``name`` is spelled so in URLs, answers and names of settings. ``title`` is the name for
    people, ``service`` that of its calendars.

    ``global_ids``: an id of a calendar is valid in every account, and that of a main calendar is the address
    of its account. Otherwise ids are valid in one mailbox only, and a shared calendar names its owner.
    ``leases``: the provider limits the concurrent calls of one mailbox. ``revocable``: an application can
    revoke a grant. ``takes_event_ids``: a client may choose the id of a new event. ``bind`` takes the
    settings of the provider by the end of their names, such as ``client_id``.
    """

    name: str
    title: str
    service: str
    scopes: Scopes
    costs: CallCosts
    bind: Callable[[Mapping[str, str]], Provider]
    consent: ConsentGuide
    grant: GrantGuide
    global_ids: bool = False
    leases: bool = False
    revocable: bool = False
    takes_event_ids: bool = False
    # Whether two ids are spellings of one.
    same_id: Callable[[str, str], bool] = field(default=str.__eq__)
