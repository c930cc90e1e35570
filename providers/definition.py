"""The definition of a provider: the facts that other packages ask for, instead of comparing its name.

``Definition`` has what is known without settings. ``bind`` makes a ``Provider`` of one installation from the
provider's settings: its calendars, and the parts that it has. Code asks for a part, such as ``channels``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

from providers.base import (
    CalendarProvider,
    Channels,
    IssuedTokens,
    MainCalendar,
    MemberCalendars,
    Token,
    WritableCalendars,
)
from providers.changes import ChangeFeed
from providers.directory import Directory
from providers.errors import ProviderNotConfigured
from providers.event_writes import EventFields
from providers.scopes import Scopes

if TYPE_CHECKING:
    from providers.oauth.client import OAuth

Part = TypeVar("Part")


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


@dataclass(frozen=True, slots=True)
class Field:
    """A required input of a form; one of the kind ``password`` is a secret.

    ``name`` is a field of the API's body too, and none that this body has for all providers.
    """

    name: str
    title: str
    kind: Literal["url", "text", "password"]
    help: str = ""


@dataclass(frozen=True, slots=True)
class Preset:
    """A known service behind a form: values to fill in, and where a person makes a password for it."""

    name: str
    values: Mapping[str, str]
    help: str = ""


@dataclass(frozen=True, slots=True)
class FormGuide:
    """The form with which a person connects an account; ``type`` is that of its connections in answers.

    The type ``basic`` is called "user name and password" where people read it, ``feed`` "an address".
    ``renewal`` says what a person does when the server does not accept the account any more. ``shown`` has
    the values of the form that the stored credentials hold, without secret ones.
    """

    type: Literal["basic", "feed"]
    fields: tuple[Field, ...]
    presets: tuple[Preset, ...] = ()
    renewal: str = ""
    shown: Callable[[Token], Mapping[str, str]] = lambda _: {}


@dataclass(frozen=True, slots=True)
class OpenedAccount:
    """The account that a form leads to.

    ``account_id`` is the provider's, the same whenever this account is opened, of at most 256 characters, and
    no other server's account has it. ``credentials`` are stored encrypted, and are what ``Account.tokens``
    supplies to the adapter. ``scope`` is of the provider's scopes.
    """

    account_id: str
    email: str | None
    credentials: Token
    scope: tuple[str, ...]
    main: MainCalendar | None = None


class Form(Protocol):
    """Opens accounts by the values of a form."""

    def open(
        self,
        values: Mapping[str, str],
        main_calendars: Mapping[str, str],
        *,
        reconnects: str | None = None,
        deadline: float,
    ) -> OpenedAccount:
        """Read the account once. ``values`` has a value for each field of the ``FormGuide``.

        ``main_calendars`` has the main calendars of accounts that are connected already, by the ids of the
        accounts. One of them stays the main calendar while it exists, unless the values name another one.
        ``reconnects`` is the id of the account that a person connects again, perhaps at another address.

        :raise AuthorizationInvalid: when the credentials are wrong
        :raise FieldRefused: when there is no calendar behind the value of a field, or not the account to
            connect again
        :raise ProviderError: for any other failure
        """
        ...


@dataclass(frozen=True, slots=True)
class Costs:
    """The number of provider calls of each kind of job, without retries and further pages.

    One query reads busy times of ``calendars_per_query`` calendars in ``range_per_query`` milliseconds.
    ``zone``: the calls of a job for the time zone of the mailbox. ``event`` is for reading one event, or
    busy times without one event; reading a list of events has one call for each calendar, and a write two.
    ``main_calendar`` to find the id of the main calendar, when it is not known.
    """

    listing: int = 1
    main_calendar: int = 1
    event: int = 1
    zone: int = 0
    calendars_per_query: int = 1
    range_per_query: int | None = None
    # The most calendars whose events one job reads, and the most calendars of members in one request.
    calendars_of_events: int = 50
    calendars_of_members: int = 1


@dataclass(frozen=True, slots=True)
class OwnSetting:
    """A setting of a provider: the variable ``ALMANAC_<PROVIDER>_<NAME>``, with both names in capitals.

    ``help`` is Markdown. ``default_text`` is documented in place of a default that is computed. A secret is
    never shown. The slash at the end of a URL is removed. ``lines``: the value has several lines. ``check``
    returns the value, or raises ``ValueError`` with what it must be.
    """

    name: str
    default: str | int
    help: str
    default_text: str = ""
    secret: bool = False
    is_url: bool = False
    lines: bool = False
    check: Callable[[str], str] | None = None
    minimum: int | None = None
    maximum: int | None = None

    def __post_init__(self) -> None:
        """
        :raise ValueError: if a number is to be checked as a text
        """
        if (self.is_url or self.check is not None) and not isinstance(self.default, str):
            raise ValueError(f"The setting {self.name} is no text, and cannot have is_url or check")


class CallQuota(NamedTuple):
    """At most ``calls`` in any window of ``seconds``."""

    calls: int
    seconds: float


class Quotas(NamedTuple):
    """The quotas of a provider: for the calls of the whole installation, and for those of one account."""

    installation: CallQuota | None = None
    account: CallQuota | None = None


def client_settings(title: str) -> tuple[OwnSetting, OwnSetting]:
    """The settings of the OAuth client at a provider."""
    saved = "the one saved in the dashboard"
    told = "Without id and secret, expired access tokens cannot be refreshed"
    return (
        OwnSetting("client_id", "", f"The OAuth client id at {title}. {told}", default_text=saved),
        OwnSetting(
            "client_secret", "", f"The OAuth client secret at {title}", default_text=saved, secret=True
        ),
    )


@dataclass(frozen=True, slots=True)
class ConsentGuide:
    """How an administrator registers this installation for consents, step by step, and where."""

    console: str
    steps: tuple[str, ...]
    # The setting with the address of the consent page.
    page: str
    # The registration belongs to a tenant.
    has_tenant: bool = False
    # Whether a check of the registration, without a user's consent, shows that the secret is right.
    proves_secret: bool = True


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
    """A provider of one installation: its calendars, and the parts that it has.

    ``oauth`` is for accounts that are connected by consent; ``configured``: the installation is registered
    there. ``writes`` are the same calendars where events can be written. ``changes`` reads what has changed
    in a calendar, ``channels`` send change notifications, ``grants`` are those of organizations, ``members``
    reads calendars of several of their members at once, ``directory`` lists the people and rooms that a grant
    may read, and ``form`` opens accounts from fields that a person fills in.
    """

    calendars: CalendarProvider
    oauth: OAuth | None = None
    configured: bool = False
    writes: WritableCalendars | None = None
    changes: ChangeFeed | None = None
    channels: Channels | None = None
    grants: Grants | None = None
    members: MemberCalendars | None = None
    directory: Directory | None = None
    form: Form | None = None


def required(part: Part | None, title: str) -> Part:
    """A part that a call needs.

    :raise ProviderNotConfigured: if the provider has none
    """
    if part is None:
        raise ProviderNotConfigured(f"{title} does not offer this")
    return part


@dataclass(frozen=True, eq=False)
class Definition:
    """One provider; ``name`` is spelled so in URLs, answers and names of settings: at most 16 of a to z and 0
    to 9. ``title`` is the name for people, ``service`` that of its calendars.

    ``global_ids``: an id of a calendar is valid in every account, and that of a main calendar is the address
    of its account. Otherwise ids are valid in one mailbox only, and a shared calendar names its owner.
    ``hosts`` names the settings with one address of each host that the jobs of all accounts call; there are
    none where each account names its own server. ``leases``: the provider limits the concurrent calls of one
    mailbox. ``revocable``: an application can
    revoke a grant. ``takes_event_ids``: a client may choose the id of a new event. ``floating``: a calendar
    may state no zone, and days and times without one then count in that of the person. ``bind`` takes the
    settings of the provider by the end of their names, such as ``client_id``. ``consent``, ``grant`` and
    ``form`` describe the parts ``oauth``, ``grants`` and ``form`` of :class:`Provider`: both are there, or
    neither.
    """

    name: str
    title: str
    service: str
    scopes: Scopes
    bind: Callable[[Mapping[str, Any]], Provider]
    costs: Costs = field(default_factory=Costs)
    consent: ConsentGuide | None = None
    grant: GrantGuide | None = None
    form: FormGuide | None = None
    # In the order of the reference.
    settings: tuple[OwnSetting, ...] = ()
    # Of the same settings as ``bind``.
    quotas: Callable[[Mapping[str, Any]], Quotas] = lambda _: Quotas()
    hosts: tuple[str, ...] = ()
    global_ids: bool = False
    leases: bool = False
    revocable: bool = False
    takes_event_ids: bool = False
    floating: bool = False
    # The values of event fields that not every provider stores.
    event_fields: EventFields = field(default_factory=EventFields)
    # Whether two ids are spellings of one.
    same_id: Callable[[str, str], bool] = field(default=str.__eq__)
