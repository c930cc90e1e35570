"""The jobs that the web tier sends to the workers, and the replies to them.

Jobs that write events carry the event's content. A secret is never in a job
(``store.security.one_time_secrets``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from providers.base import PRIMARY, Calendar, Failed, Outcome, Read
from providers.changes import ChangePage
from providers.directory import Kind, Listing
from providers.events import Changes, Draft, Event, Response, Scope
from providers.oauth.registration_probe import Finding
from scheduling.intervals import Intervals
from store.cache.calendar_lists import ListedCalendar
from store.sql.queries.user_invitations import ConsentRefusal
from workers.execution.consent_gaps import Permission


class GrantRef(msgspec.Struct, frozen=True, array_like=True):
    """The organization grant by which a connection is read."""

    id: str
    provider: str


class ReadBusy(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read the busy periods of some calendars of one connection over ``[start, end)``, in milliseconds.

    ``calendars`` None means every calendar on the account's list. ``grant`` is that of a delegated
    connection whose main or listed calendars are read: such reads of one grant can be bundled
    (``workers.fanout.work``).
    """

    connection: str
    calendars: tuple[str, ...] | None
    start: int
    end: int
    grant: GrantRef | None = None

    @property
    def main_only(self) -> bool:
        """Whether it reads the main calendar and no other."""
        return self.calendars == (PRIMARY,)


class ReadBusyWithout(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read the busy periods of one calendar over ``[start, end)`` as if one event were not in it.

    The reply is for this question only, and is never cached.
    """

    connection: str
    calendar: str
    event: str
    start: int
    end: int


class ListCalendars(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read which calendars one connection has."""

    connection: str


class ShowCalendars(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read the calendars of one connection with all details."""

    connection: str


class ReadEvents(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read the events of some calendars of one connection over ``[start, end)``, in milliseconds."""

    connection: str
    calendars: tuple[str, ...]
    start: int
    end: int


class ReadChanges(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read a page of the changes of events over ``[start, end)``, in milliseconds, in one calendar.

    ``sync_token`` is that of the page before; it opens nothing without the account's tokens.
    """

    connection: str
    calendar: str
    start: int
    end: int
    sync_token: str | None = None


class GetEvent(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read one event; ``by_meta``: ``event`` is the metaId that it carries."""

    connection: str
    calendar: str
    event: str
    by_meta: bool = False


class CreateEvent(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Create an event in one calendar."""

    connection: str
    calendar: str
    draft: Draft


class UpdateEvent(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Change one event; ``by_meta`` as in :class:`GetEvent`. It must have this ``etag``, if there is one."""

    connection: str
    calendar: str
    event: str
    changes: Changes
    by_meta: bool = False
    etag: str | None = None


class ChangeSeries(UpdateEvent, frozen=True, tag=True, omit_defaults=True):
    """Change the series of an occurrence, or a part of it.

    It has a type of its own, so that a worker of the release before, which knows no scope, fails it.
    """

    scope: Scope = Scope.SERIES


class RespondToEvent(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Answer the invitation to one event as the account of the connection."""

    connection: str
    calendar: str
    event: str
    response: Response


class DeleteEvent(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Delete one event; ``by_meta`` as in :class:`GetEvent`, and then only the one of ``mark``, if given.

    The event must have this ``etag``, if there is one; not with ``by_meta``.
    """

    connection: str
    calendar: str
    event: str
    notify: bool | None = None
    by_meta: bool = False
    mark: str | None = None
    etag: str | None = None


class DeleteSeries(DeleteEvent, frozen=True, tag=True, omit_defaults=True):
    """Delete the series of an occurrence, or a part of it; a type of its own as :class:`ChangeSeries`."""

    scope: Scope = Scope.SERIES


class FreshToken(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Refresh one connection's access token if it is stale; the token itself stays in the database."""

    connection: str


class Revoke(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Revoke the grant of a removed connection; account and token are stored encrypted under a name."""

    secret_name: str = msgspec.field(name="revocation")
    connection: None = None


class StopChannels(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Close the notification channels of one connection at its provider."""

    connection: str


class ExchangeCode(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Exchange an authorization code; code and verifier are stored encrypted under a name."""

    secret_name: str = msgspec.field(name="authorization")
    connection: None = None


class OpenAccount(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Open the account that a form describes; the form is stored encrypted under a name."""

    secret_name: str = msgspec.field(name="form")
    connection: None = None


class CheckRegistration(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Test an OAuth registration at its provider; it is stored encrypted under a name."""

    secret_name: str = msgspec.field(name="proposal")
    connection: None = None


class CheckGrant(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Test the grant of an organization at its provider; it is stored encrypted under a name."""

    secret_name: str = msgspec.field(name="proposal")
    connection: None = None


class ReadDirectory(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Read the people or rooms that an organization's grant lists; ``part`` is of their name or address."""

    grant: str
    kind: Kind
    part: str = ""
    connection: None = None


class FindSignInPage(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Look up the page of the identity provider to which people are sent who sign in to the dashboard.

    ``fresh``: ask the provider, although its metadata are cached.
    """

    fresh: bool = False
    connection: None = None


class SignIn(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Sign a person in by a code of the identity provider; it is stored encrypted under a name."""

    secret_name: str
    connection: None = None


# Why a person is not signed in.
SignInRefusal = Literal[
    "unavailable", "busy", "notSet", "issuer", "client", "clock", "untrusted", "code", "role", "name"
]


class SignInResult(msgspec.Struct, frozen=True, array_like=True):
    """The result of ``FindSignInPage`` or ``SignIn``: the page, or the person; or why there is none."""

    page: str = ""
    administrator_id: int | None = None
    refused: SignInRefusal | None = None


class GrantCheck(msgspec.Struct, frozen=True, array_like=True):
    """The result of ``CheckGrant``: the scope that the provider names, or why it refuses the grant.

    ``refused`` is the part of the grant at fault; None when the provider accepts it. ``message`` says what
    the administrator does. ``scope`` is None when the provider does not name it.
    """

    scope: tuple[str, ...] | None = None
    refused: Literal["grant", "client", "subject"] | None = None
    message: str = ""


class FormCheck(msgspec.Struct, frozen=True, array_like=True):
    """The result of ``OpenAccount``: the name under which the account is stored encrypted.

    Or the field at fault, and what is wrong with it.
    """

    account_name: str = ""
    refused: str | None = None
    message: str = ""


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """Why ``ExchangeCode`` has stored no connection; ``missing`` are the permissions of ``INCOMPLETE``."""

    refusal: ConsentRefusal
    missing: tuple[Permission, ...] = ()


CalendarRead = (
    ReadBusy | ReadBusyWithout | ListCalendars | ShowCalendars | ReadEvents | ReadChanges | GetEvent
)
EventWrite = CreateEvent | UpdateEvent | ChangeSeries | DeleteEvent | DeleteSeries | RespondToEvent
Job = (
    ReadBusy
    | ReadBusyWithout
    | ListCalendars
    | ShowCalendars
    | ReadEvents
    | ReadChanges
    | GetEvent
    | CreateEvent
    | UpdateEvent
    | ChangeSeries
    | DeleteEvent
    | DeleteSeries
    | RespondToEvent
    | FreshToken
    | Revoke
    | StopChannels
    | ExchangeCode
    | OpenAccount
    | CheckRegistration
    | CheckGrant
    | ReadDirectory
    | FindSignInPage
    | SignIn
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one job. ``failed`` concerns the whole account; ``outcomes`` is for each calendar.

    ``listed`` is the account's calendar list if the job had to read it. ``read_at`` is the time, in
    milliseconds, before the provider was called. ``events`` has the calendar ids of the job as keys; ``made``
    is whether this job has created the event in it. ``finding`` is the result of ``CheckRegistration``,
    ``checked`` that of ``CheckGrant``, ``form`` that of ``OpenAccount``, ``changes`` that of ``ReadChanges``,
    ``sign_in`` that of ``FindSignInPage`` and ``SignIn``, ``directory`` that of ``ReadDirectory``.
    ``refused`` says why ``ExchangeCode`` has failed, unless the provider is the cause.
    """

    read_at: int = 0
    failed: Failed | None = None
    listed: tuple[ListedCalendar, ...] | None = None
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    calendars: tuple[Calendar, ...] = ()
    events: Mapping[str, tuple[Event, ...] | Failed] = field(default_factory=dict)
    made: bool = False
    finding: Finding | None = None
    checked: GrantCheck | None = None
    refused: Refused | None = None
    form: FormCheck | None = None
    changes: ChangePage | None = None
    sign_in: SignInResult | None = None
    directory: Listing | None = None

    def whole(self) -> bool:
        """Whether nothing has failed."""
        parts = (*self.outcomes.values(), *self.events.values())
        return self.failed is None and not any(isinstance(each, Failed) for each in parts)

    def failed_without_retry_time(self) -> bool:
        """Whether nothing was read, and the provider did not say when to retry."""
        failed = [each for each in self.outcomes.values() if isinstance(each, Failed)]
        if self.failed is not None:
            failed = [self.failed]
        elif len(failed) < len(self.outcomes):
            return False
        return bool(failed) and all(each.retry_after is None for each in failed)

    def read(self) -> Iterator[tuple[str, Intervals]]:
        """The calendars that were read, with their busy periods."""
        for calendar, outcome in self.outcomes.items():
            if isinstance(outcome, Read):
                yield calendar, outcome.busy
