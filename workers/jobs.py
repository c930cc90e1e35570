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
from providers.events import Changes, Draft, Event
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


class CheckRegistration(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Test an OAuth registration at its provider; it is stored encrypted under a name."""

    secret_name: str = msgspec.field(name="proposal")
    connection: None = None


class CheckGrant(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Test the grant of an organization at its provider; it is stored encrypted under a name."""

    secret_name: str = msgspec.field(name="proposal")
    connection: None = None


class GrantCheck(msgspec.Struct, frozen=True, array_like=True):
    """The result of ``CheckGrant``: the scope that the provider names, or why it refuses the grant.

    ``refused`` is the part of the grant at fault; None when the provider accepts it. ``message`` says what
    the administrator does. ``scope`` is None when the provider does not name it.
    """

    scope: tuple[str, ...] | None = None
    refused: Literal["grant", "client", "subject"] | None = None
    message: str = ""


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """Why ``ExchangeCode`` has stored no connection; ``missing`` are the permissions of ``INCOMPLETE``."""

    refusal: ConsentRefusal
    missing: tuple[Permission, ...] = ()


CalendarRead = ReadBusy | ReadBusyWithout | ListCalendars | ShowCalendars | ReadEvents | GetEvent
EventWrite = CreateEvent | UpdateEvent | DeleteEvent
Job = (
    ReadBusy
    | ReadBusyWithout
    | ListCalendars
    | ShowCalendars
    | ReadEvents
    | GetEvent
    | CreateEvent
    | UpdateEvent
    | DeleteEvent
    | FreshToken
    | Revoke
    | StopChannels
    | ExchangeCode
    | CheckRegistration
    | CheckGrant
)


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of one job. ``failed`` concerns the whole account; ``outcomes`` is for each calendar.

    ``listed`` is the account's calendar list if the job had to read it. ``read_at`` is the time, in
    milliseconds, before the provider was called. ``events`` has the calendar ids of the job as keys; ``made``
    is whether this job has created the event in it. ``finding`` is the result of ``CheckRegistration``,
    ``checked`` that of ``CheckGrant``. ``refused`` says why ``ExchangeCode`` has failed,
    unless the provider is the cause.
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
