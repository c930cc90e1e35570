"""How a job takes part in the throttling: how often it calls, on whose account, who hears of refusals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from providers.base import Failed
from providers.errors import (
    LocalResourceExhausted,
    NoAnswer,
    ProjectRateLimited,
    ProviderError,
    RateLimited,
    Reason,
    TimedOut,
    Unavailable,
)
from providers.google import errors as google
from providers.google.client import CALENDARS_PER_QUERY, RANGE_PER_QUERY
from providers.http.send import late
from providers.microsoft import errors as microsoft
from providers.names import ProviderName
from providers.scopes import Operation, allows
from store.coordination.circuit_breaker import CircuitBreakers, CircuitKey, Family
from store.coordination.provider_rate_limiter import AcquireRequest, Permit, ProviderRateLimiter, WaitReason
from store.sql.queries.connections import Credentials, SealedConnection
from workers.fanout.egress import Egress
from workers.fanout.jobs import (
    CreateEvent,
    DeleteEvent,
    GetEvent,
    Job,
    ListCalendars,
    ReadBusy,
    ReadEvents,
    ShowCalendars,
    UpdateEvent,
)

TITLES: dict[str, str] = {
    ProviderName.GOOGLE: google.PROVIDER,
    ProviderName.MICROSOFT: microsoft.PROVIDER,
}


class AccountTraffic:
    """The ``Traffic`` of one account, for one family of calls: what happens to it is heard by all workers.

    Made as its job begins. ``patience``: who has not waited for so many seconds cannot say that nobody
    answers. ``ours`` says whether the limit of a Google Cloud project is this installation's, by the number
    of the project if Google names it. ``egress`` learns of answers and of calls that get none.
    """

    def __init__(
        self,
        throttle: ProviderRateLimiter,
        breakers: CircuitBreakers,
        guarded: CircuitKey,
        connection: str,
        *,
        egress: Egress,
        patience: float,
        ours: Callable[[str | None], bool] = lambda _project: True,
    ) -> None:
        self._throttle = throttle
        self._breakers = breakers
        self._guarded = guarded
        self._connection = connection
        self._egress = egress
        self._patience = patience
        self._ours = ours
        self._began = time.monotonic()

    def answered(self) -> None:
        """The provider answers, to this account at least."""
        # The next call is another one.
        self._began = time.monotonic()
        self._egress.answered(self._guarded.provider)
        self._breakers.answered(self._guarded, self._connection)

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        """Hold the account, or all accounts, when the provider throttles; count it when it does not answer.

        The limit of another project than ours holds the account that answered so, and no other.
        The call itself waits for what the provider has told anyone, but not for others' guesses: it is how
        we learn that the throttling is over.
        """
        if isinstance(error, NoAnswer):
            if self._egress.failed(self._guarded.provider, error):
                return None
        elif not isinstance(error, LocalResourceExhausted):
            self._egress.answered(self._guarded.provider)
        if isinstance(error, RateLimited):
            self.answered()
        elif self._tells(error, given_up=given_up) and self._breakers.failed(
            self._guarded, self._connection, given_up=given_up, took=time.monotonic() - self._began
        ):
            return None
        held = self._throttle.hold(
            self._guarded.provider,
            self._connection,
            pause if isinstance(error, RateLimited) else 0.0,
            named=isinstance(error, RateLimited) and error.retry_after is not None,
            project=isinstance(error, ProjectRateLimited) and self._ours(error.project),
        )
        return max(pause, held)

    def _tells(self, error: ProviderError, *, given_up: bool) -> bool:
        """Whether a failure tells of the provider: one that is slow answers when it is given more time."""
        if isinstance(error, LocalResourceExhausted):
            return False
        return not isinstance(error, TimedOut) or (given_up and error.waited >= self._patience)


def ask(job: Job, row: SealedConnection, lease: str) -> AcquireRequest | None:
    """What to ask of the throttle before a job; None for one that calls no calendar."""
    cost = calls(ProviderName(row.provider), job)
    if not cost:
        return None
    if row.main_calendar_id is None and allows(
        ProviderName(row.provider), row.scope, Operation.LIST_CALENDARS
    ):
        # The call that learns it.
        cost += 1
    return AcquireRequest(row.provider, row.id, cost, leased_mailbox(row), lease, family(job))


def leased_mailbox(row: SealedConnection | Credentials) -> str | None:
    """The mailbox whose calls at once are limited, which only Graph does; None for a Google account.

    The key is the address, or the main calendar's id, that Graph has named. The e-mail of a connection is
    what its caller wrote: keyed by that, one tenant could take the leases of another tenant's mailbox. Until
    Graph has named the mailbox, a connection has leases of its own.
    """
    if row.provider != ProviderName.MICROSOFT:
        return None
    return row.mailbox or row.main_calendar_id or row.id


def family(job: Job) -> Family:
    """What a job is after; a list of calendars that it reads on its way is no part of that."""
    match job:
        case ListCalendars() | ShowCalendars():
            return Family.CALENDARS
        case ReadEvents() | GetEvent():
            return Family.EVENTS
        case CreateEvent() | UpdateEvent() | DeleteEvent():
            return Family.WRITES
    return Family.BUSY


def calls(provider: ProviderName, job: Job) -> int:
    """How many calls a job makes when none has to be made again and no page has a next one.

    Each part of a batch of Graph counts as one.
    """
    microsoft = provider == ProviderName.MICROSOFT
    match job:
        case ReadBusy():
            number = len(job.calendars or ("primary",))
            if microsoft:
                # With each batch, or with the list, goes a question for the mailbox's zone.
                return number + 1 if job.calendars else number + 3
            queries = -(-number // CALENDARS_PER_QUERY) * -(-(job.end - job.start) // RANGE_PER_QUERY)
            return queries if job.calendars else queries + 1
        case ListCalendars() | ShowCalendars():
            return 2 if microsoft else 1
        case ReadEvents():
            return len(job.calendars) + microsoft
        case GetEvent():
            return 1 + microsoft
        case CreateEvent() | UpdateEvent() | DeleteEvent():
            # The event is read before it is changed, or looked for after it was created.
            return 2
    return 0


def throttled(row: SealedConnection, answer: Permit) -> Failed:
    """What has become of a job that has no turn before its deadline; nothing of it was done."""
    if answer.why is WaitReason.PROBED:
        return refused(row, answer)
    if answer.why is WaitReason.MAILBOX:
        # The calls before it have not come to an end.
        return overdue(row)
    wait = None if answer.why is WaitReason.BACKOFF else answer.wait
    return Failed(Reason.RATE_LIMITED, f"{TITLES[row.provider]} asks us to slow down", retry_after=wait)


def refused(row: SealedConnection, answer: Permit) -> Failed:
    """What becomes of a job while nobody is asked."""
    return replace(Failed.because(unanswered(row.provider, answer)), asked=False)


def unanswered(provider: str, answer: Permit) -> Unavailable:
    """The error for a call that is not made, as those before it were not answered."""
    message = f"{TITLES[provider]} has not been answering; try again in a moment"
    return Unavailable(message, retry_after=answer.wait)


def overdue(row: SealedConnection) -> Failed:
    """A read that has no answer at the deadline, as the adapter puts it."""
    return Failed.because(late(TITLES[row.provider], Operation.FREE_BUSY))
