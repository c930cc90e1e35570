"""What every calendar provider offers, in our own words rather than a vendor's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from providers.errors import Problem, ProviderError, Reason, Unavailable
from providers.events import Changes, Created, Draft, Event
from providers.names import ProviderName
from scheduling.intervals import Intervals

# The main calendar of an account, whatever its real id; both providers know it by this alias.
PRIMARY = "primary"


@dataclass(frozen=True, slots=True)
class Token:
    """An access token, refresh token or client secret; printing it never shows it."""

    reveal: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token endpoint answered.

    ``refresh_token`` is None when the provider sent none: the old one stays in force (Google never
    rotates, Microsoft always does). ``scope`` is None when the answer did not say.
    """

    access_token: Token
    refresh_token: Token | None
    expires_at: datetime
    scope: tuple[str, ...] | None


class TokenSource(Protocol):
    """Where an adapter gets the tokens of one account; it never learns where they live."""

    def access_token(self, *, deadline: float) -> Token:
        """A token that is not known to be stale.

        :raise AuthorizationInvalid: if the grant is gone
        """
        ...

    def renewed(self, rejected: Token, *, deadline: float) -> Token:
        """A token newer than ``rejected``, which the provider has just answered with 401.

        :raise AuthorizationInvalid: if none can be had
        """
        ...


class Traffic(Protocol):
    """What the calls of one account have to do with everybody else's."""

    def answered(self) -> None:
        """Hear of a call that was answered, if only with a refusal."""
        ...

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        """Hear of a call that failed and would be made again in ``pause`` seconds, or is ``given_up``.

        Returns how long to wait before: longer while others have been told to. None when it is not to be
        made again, because nobody is answered.
        """
        ...


@dataclass(frozen=True, slots=True)
class Account:
    """A connected account as an adapter sees it; ``scopes`` are those granted, as the provider wrote them.

    ``grace`` is for how many seconds the first call of an operation may go on after the deadline: nobody
    waits for it any more, but its answer will serve the next who asks.
    ``request_id`` is that of the request that the calls are made for, if any.
    """

    email: str | None
    scopes: frozenset[str]
    tokens: TokenSource
    traffic: Traffic | None = None
    grace: float = 0.0
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Calendar:
    """One calendar of an account; ``original`` is the provider's record, untouched."""

    id: str
    provider: ProviderName
    subject: str
    access_role: str
    primary: bool
    selected: bool
    background_color: str
    foreground_color: str
    time_zone: str
    original: dict[str, Any] = field(repr=False)
    # The address of its owner, where the provider names it (Microsoft).
    owner: str = ""


@dataclass(frozen=True, slots=True)
class MainCalendar:
    """The main calendar of an account; ``address`` is that of its owner, ``""`` if that is not named."""

    id: str
    address: str


@dataclass(frozen=True, slots=True)
class Read:
    """A calendar that was read: its busy periods, clipped to the range asked for, sorted and merged."""

    busy: Intervals


@dataclass(frozen=True, slots=True)
class Failed:
    """A calendar, or a whole account, that could not be read. Never the same as "nothing there"."""

    reason: Reason
    message: str
    operation: str | None = None
    retry_after: float | None = None
    problem: Problem | None = None
    # The call had been sent before without an answer, and may have been done then.
    repeated: bool = False
    # False: the provider was not asked at all.
    asked: bool = True
    # True: no connection to the provider could be opened, so the last call was not sent.
    unsent: bool = False

    @classmethod
    def because(cls, error: ProviderError) -> Failed:
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
        )


Outcome = Read | Failed


class CalendarProvider(Protocol):
    """Reads and writes the calendars of one provider.

    ``deadline`` is a moment of ``time.monotonic()``; no call goes on after it. What concerns the whole
    account is raised as a ``ProviderError``; what concerns one calendar is that calendar's ``Failed``.
    """

    name: ProviderName

    def calendars(self, account: Account, *, deadline: float) -> list[Calendar]:
        """Every calendar on the account's list, each page followed."""
        ...

    def main_calendar(self, account: Account, *, deadline: float) -> MainCalendar:
        """The real id of the main calendar, and the address that the provider knows the account by."""
        ...

    def busy(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, Outcome]:
        """The outcome of every calendar asked for, over ``[start, end)`` in UTC milliseconds.

        A key for each of ``calendar_ids``, as it was asked (``primary`` answers under ``primary``).
        """
        ...

    def events(
        self, account: Account, calendar_ids: Sequence[str], start: int, end: int, *, deadline: float
    ) -> dict[str, tuple[Event, ...] | Failed]:
        """The events of every calendar that overlap ``[start, end)``, by start; keys as in :meth:`busy`.

        Series are expanded, their exceptions in place; what is cancelled is left out.
        """
        ...

    def event(self, account: Account, calendar_id: str, event_id: str, *, deadline: float) -> Event:
        """One event, an occurrence of a series included.

        :raise EventNotFound: when the calendar has no such event, or it was cancelled
        :raise NotFound, InvalidCalendarId: when it is the calendar that is not there
        """
        ...

    def find_event(self, account: Account, calendar_id: str, meta_id: str, *, deadline: float) -> Event:
        """The event of a calendar that carries ``meta_id``, in exactly this spelling.

        :raise EventNotFound: when none does
        """
        ...

    def create_event(self, account: Account, calendar_id: str, draft: Draft, *, deadline: float) -> Created:
        """Create an event. Safe to repeat: the same draft never makes two.

        :raise EventExists: when ``draft.id``, or an event of the same key with other content, is there
        :raise EventRefused: when the provider finds fault with what was written
        :raise EventUnreadable: when it was created and its answer makes no sense
        """
        ...

    def update_event(
        self, account: Account, calendar_id: str, event_id: str, changes: Changes, *, deadline: float
    ) -> Event:
        """Write ``changes`` and nothing else; safe to repeat.

        :raise EventNotFound, EventRefused, EventUnreadable: as above
        """
        ...

    def delete_event(
        self,
        account: Account,
        calendar_id: str,
        event_id: str,
        *,
        notify: bool | None,
        verified: bool = False,
        deadline: float,
    ) -> None:
        """Delete an event. ``verified``: the caller has just found it in this calendar.

        :raise EventNotFound: when the calendar has no such event, one deleted before included
        """
        ...


@dataclass(frozen=True, slots=True)
class ChannelWanted:
    """A channel to be opened: ``id`` and ``secret`` are ours, and come back with every notification."""

    id: str
    secret: Token
    address: str


@dataclass(frozen=True, slots=True)
class ChannelOpened:
    """A channel by the provider's own names. ``confirmed``: it has reached our address already."""

    id: str
    resource: str
    expires_at: datetime
    confirmed: bool


class Channels(Protocol):
    """Has one provider tell us of changes in calendars. Errors and deadlines as in ``CalendarProvider``."""

    def open(
        self, account: Account, calendar_id: str, wanted: ChannelWanted, *, deadline: float
    ) -> ChannelOpened:
        """Have the changes in a calendar told, for as long as the provider lets us.

        :raise ProviderError: not retryable for a calendar that cannot be watched
        """
        ...

    def extend(self, account: Account, channel_id: str, *, deadline: float) -> datetime | None:
        """The new end of a channel; None where another has to be opened in its place.

        :raise NotFound: when the provider knows the channel no longer
        """
        ...

    def close(self, account: Account, channel_id: str, resource: str, *, deadline: float) -> None:
        """End a channel; one that is gone already is a success."""
        ...


class OAuthServer(Protocol):
    """The token endpoints of one provider."""

    def refresh(self, refresh_token: Token, *, deadline: float) -> Grant:
        """Trade a refresh token for a new access token.

        :raise GrantGone: when only a new consent helps
        :raise ProviderNotConfigured: without client id and secret
        :raise Misconfigured: when the provider refuses them
        :raise Unavailable: when the same call may work later
        """
        ...

    def revoke(self, token: Token, *, deadline: float) -> None:
        """End the grant at the provider where it can be ended; a grant already gone is a success."""
        ...
