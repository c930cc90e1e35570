"""The interface of every calendar provider, and its value types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import numpy as np

from providers.errors import EventRefused, Problem, ProviderError, Reason, Unavailable
from providers.events import Changes, CreateResult, Draft, Event, Response, Scope
from scheduling.intervals import Groups, Intervals, merge_each

# Alias of an account's main calendar, whatever its real id; all adapters accept it.
PRIMARY = "primary"

# Start and end in UTC milliseconds.
Period = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, refresh token or client secret; ``repr`` never shows it."""

    reveal: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class IssuedTokens:
    """Tokens that a token endpoint issued.

    ``refresh_token`` is None when the provider sent none: the old one stays valid (Google never
    rotates, Microsoft always does). ``scope`` is None when the answer does not name the scopes.
    """

    access_token: Token
    refresh_token: Token | None
    expires_at: datetime
    scope: tuple[str, ...] | None


class TokenSource(Protocol):
    """Supplies an adapter with the access tokens of one account; the adapter does not know their storage."""

    def access_token(self, *, deadline: float) -> Token:
        """An access token that is not known to be stale.

        :raise AuthorizationInvalid: when the grant has ended
        """
        ...

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        """A token newer than ``rejected``, which the provider has just answered with 401.

        :raise AuthorizationInvalid: when the token cannot be refreshed
        """
        ...


class CallReporter(Protocol):
    """Reports the results of one account's calls to the state that all workers share."""

    def answered(self) -> None:
        """Record a call that the provider answered, an error answer included."""
        ...

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        """Record a failed call that would be retried in ``pause`` seconds, or is ``given_up``.

        Returns the seconds to wait before the retry, more than ``pause`` when other workers wait too. None
        means no retry, because the provider answers no worker.
        """
        ...


@dataclass(frozen=True, slots=True)
class Account:
    """A connected account as an adapter sees it; ``scopes`` are the granted ones in the provider's spelling.

    ``grace``: seconds by which the first call of an operation may exceed the deadline. The request has
    ended by then, but the answer fills the cache for later requests.
    ``request_id``: id of the API request that the calls are made for, None without one.
    ``delegated``: an organization's grant reads it, and its token may be for other mailboxes too.
    ``mailbox``: the mailbox's address as the provider has returned it, if known. ``email`` may be another
    one, with which the person signs in.
    ``former_calendars``: earlier ids of the main calendar.
    ``time_zone``: the IANA name of the person's, for days and times in a calendar that states none.
    """

    email: str | None
    scopes: frozenset[str]
    tokens: TokenSource
    reporter: CallReporter | None = None
    grace: float = 0.0
    request_id: str | None = None
    delegated: bool = False
    mailbox: str | None = None
    former_calendars: AbstractSet[str] = frozenset()
    time_zone: str | None = None

    @property
    def zone(self) -> ZoneInfo | None:
        """The person's time zone, if known."""
        return ZoneInfo(self.time_zone) if self.time_zone else None

    @property
    def addresses(self) -> frozenset[str]:
        """The known addresses of the person, in lower case."""
        return frozenset(each.lower() for each in (self.email, self.mailbox) if each)


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an organization grant and the calendars to read, in a call for several members.

    ``reporter`` receives the provider's answers about only this member.
    """

    address: str
    reporter: CallReporter | None = None
    calendars: tuple[str, ...] = (PRIMARY,)


@dataclass(frozen=True, slots=True)
class Calendar:
    """One calendar of an account; ``original`` is the provider's record, unchanged.

    ``access_role`` is ``freeBusyReader``, ``reader``, ``writer`` or ``owner``. ``selected``: the provider's
    own pages show the calendar. The colours are like ``#9fe1e7``, and ``time_zone`` is an IANA name.
    """

    id: str
    provider: str
    subject: str
    access_role: str
    primary: bool
    selected: bool
    background_color: str
    foreground_color: str
    time_zone: str
    original: dict[str, Any] = field(repr=False)
    # The owner's e-mail address, where the provider gives it (Microsoft).
    owner: str = ""

    @property
    def known_time_zone(self) -> str:
        """Its zone, "" if that is not known.

        In Microsoft's list, UTC also stands for a mailbox's zone that could not be read.
        """
        is_unclear = self.provider == "microsoft" and self.time_zone == "UTC"
        return "" if is_unclear else self.time_zone


@dataclass(frozen=True, slots=True)
class MainCalendar:
    """The main calendar of an account; ``address`` is its owner's, ``""`` when the provider gives none.

    ``time_zone`` is a name from the provider, not checked yet; ``""`` when it is not known.
    """

    id: str
    address: str
    time_zone: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """A calendar that was read: its busy periods, clipped to the requested range, sorted and merged.

    ``age`` is the number of seconds since the provider was read, if the adapter kept what it had read.
    """

    busy: Intervals
    age: float = 0.0

    @classmethod
    def of_each(cls, calendars: Mapping[str, Sequence[Period]], start: int, end: int) -> dict[str, Read]:
        """Clip the periods of each calendar to ``[start, end)`` and merge them, all calendars in one pass.

        Empty periods block nothing.
        """
        rows = np.array([period for each in calendars.values() for period in each], np.int64).reshape(-1, 2)
        starts, ends = np.maximum(rows[:, 0], start), np.minimum(rows[:, 1], end)
        sizes = [len(each) for each in calendars.values()]
        merged = merge_each(Groups.sized(starts, ends, sizes), (start, end))
        return {calendar: cls(merged.group(owner)) for owner, calendar in enumerate(calendars)}


@dataclass(frozen=True, slots=True)
class Failed:
    """A calendar, or a whole account, that could not be read. It never stands for an empty calendar."""

    reason: Reason
    message: str
    operation: str | None = None
    retry_after: float | None = None
    problem: Problem | None = None
    # An earlier attempt of the call got no answer, or nothing could record its outcome, so the provider may
    # have executed it.
    repeated: bool = False
    # False: a circuit breaker refused the call, or a write was not begun. True where no such thing is known,
    # so also for a failure before the call.
    called: bool = True
    # True: no connection to the provider could be opened, so the last call was not sent.
    unsent: bool = False
    # True: the provider is unreachable from this worker, and another may reach it.
    elsewhere: bool = False
    # The field of the request that has to be corrected.
    param: str | None = None

    @classmethod
    def from_error(cls, error: ProviderError) -> Failed:
        """The value form of an adapter's exception."""
        retry_after = error.retry_after if isinstance(error, Unavailable) else None
        return cls(
            error.reason,
            error.message,
            error.operation,
            retry_after,
            error.problem,
            error.repeated,
            unsent=error.unsent,
            param=error.param if isinstance(error, EventRefused) else None,
        )


Outcome = Read | Failed


@dataclass(frozen=True, slots=True)
class ReadAlone:
    """A member whom a call for several members could not read, but a call for only this member may.

    ``failed`` is the failure to report when there is no time for that call.
    """

    failed: Failed


# The outcome of each calendar of a member.
MemberOutcome = Mapping[str, Outcome] | ReadAlone


class MemberCalendars(Protocol):
    """Reads the calendars of the members of an organization's grant."""

    def busy_of_members(
        self, account: Account, members: Sequence[Member], start: int, end: int, *, deadline: float
    ) -> list[MemberOutcome]:
        """The calendars of several members of one grant, in one request; an outcome for each member.

        ``account`` makes the request. No member waits for a retry that another one needs: the outcome of
        such a member is ``ReadAlone``.
        """
        ...


class CalendarProvider(Protocol):
    """Reads the calendars of one provider.

    ``deadline`` is a value of ``time.monotonic()``; no call runs past it. A failure of the whole account,
    such as a server that is down for all calendars, is raised as a ``ProviderError``. A failure of one
    calendar is returned as that calendar's ``Failed``. Each method begins with ``Scopes.require``.
    """

    name: str

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """All calendars on the account's list, from every page."""
        ...

    def main_calendar(self, account: Account, *, deadline: float) -> MainCalendar:
        """The real id of the main calendar, and the e-mail address that the provider has for the account."""
        ...

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome for every requested calendar, over ``[start, end)`` in UTC milliseconds.

        Keys are ``calendar_ids`` as given (``primary`` answers under ``primary``).
        """
        ...

    def busy_without(
        self, account: Account, calendar_id: str, event_id: str, start: int, end: int, *, deadline: float
    ) -> Read:
        """The busy periods of one calendar as if one event, or one occurrence of a series, were not in it.

        Other events in its time still count. They are read one by one: an answer with only busy periods has
        merged them.
        """
        ...

    def events(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, tuple[Event, ...] | Failed]:
        """The events of every calendar that overlap ``[start, end)``, by start; keys as in :meth:`busy`.

        Series are expanded, with their exceptions; cancelled events are left out.
        """
        ...

    def event(self, account: Account, calendar_id: str, event_id: str, *, deadline: float) -> Event:
        """One event or one occurrence of a series.

        :raise EventNotFound: when the calendar has no such event, or it was cancelled
        :raise NotFound, InvalidCalendarId: when the calendar itself does not exist
        """
        ...

    def find_event(self, account: Account, calendar_id: str, meta_id: str, *, deadline: float) -> Event:
        """The event of a calendar whose metaId is ``meta_id``, compared case-sensitively.

        :raise EventNotFound: when no event has it
        """
        ...


class WritableCalendars(CalendarProvider, Protocol):
    """Calendars in which events can be written, too."""

    def create_event(
        self, account: Account, calendar_id: str, draft: Draft, *, deadline: float
    ) -> CreateResult:
        """Create an event. Safe to repeat: the same draft never makes two events.

        :raise EventExists: when ``draft.id`` is in use, or the key is in use by an event with other content
        :raise EventRefused: when the provider rejects the content
        :raise EventUnreadable: when the event was created and the answer cannot be parsed
        """
        ...

    def update_event(
        self,
        account: Account,
        calendar_id: str,
        event_id: str,
        changes: Changes,
        *,
        scope: Scope = Scope.OCCURRENCE,
        etag: str | None = None,
        deadline: float,
    ) -> Event:
        """Write ``changes`` and nothing else, only to an event with this ``etag`` if given; safe to repeat.

        ``scope`` is the part of its series, if it is an occurrence. For ``FOLLOWING`` the later part becomes
        a series of its own, which is returned.

        :raise EventNotFound, EventRefused, EventUnreadable: as above
        :raise EventChanged: when the event has another etag
        """
        ...

    def respond_to_event(
        self, account: Account, calendar_id: str, event_id: str, response: Response, *, deadline: float
    ) -> Event:
        """Answer the invitation to an event as the account; the event with the answer, also if it is gone.

        :raise EventNotFound, EventUnreadable: as above
        :raise EventRefused: when the account is not invited, or the provider takes no answer from it
        """
        ...

    def delete_event(
        self,
        account: Account,
        calendar_id: str,
        event_id: str,
        *,
        notify: bool | None,
        scope: Scope = Scope.OCCURRENCE,
        verified: bool = False,
        etag: str | None = None,
        deadline: float,
    ) -> None:
        """Delete an event, only one with this ``etag`` if given; ``scope`` as for an update.

        ``verified``: the caller has just found it in this calendar; then there is no ``etag``.

        :raise EventNotFound: when the calendar has no such event, or it was deleted before
        :raise EventChanged: when the event has another etag
        """
        ...


@dataclass(frozen=True, slots=True)
class ChannelRequest:
    """A channel to open. Almanac chooses ``id`` and ``secret``; every notification carries them."""

    id: str
    secret: Token
    address: str


@dataclass(frozen=True, slots=True)
class OpenChannel:
    """An open channel; ids are the provider's. ``confirmed``: it has already reached our address."""

    id: str
    resource: str
    expires_at: datetime
    confirmed: bool


class Channels(Protocol):
    """Subscribes to changes in calendars at one provider. Errors and deadlines as in ``CalendarProvider``."""

    def open(
        self, account: Account, calendar_id: str, wanted: ChannelRequest, *, deadline: float
    ) -> OpenChannel:
        """Open a channel for the changes in a calendar, for the longest time that the provider allows.

        :raise ProviderError: not retryable when the provider cannot watch this calendar
        """
        ...

    def extend(self, account: Account, channel_id: str, *, deadline: float) -> datetime | None:
        """The new expiry of a channel; None when a new channel has to be opened instead.

        :raise NotFound: when the provider no longer knows the channel
        """
        ...

    def close(self, account: Account, channel_id: str, resource: str, *, deadline: float) -> None:
        """Close a channel; a channel that is already closed counts as success."""
        ...
