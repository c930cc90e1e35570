"""How jobs use the rate limiter and circuit breakers: their number of calls, and the failures they report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from providers import registry
from providers.base import PRIMARY, Failed
from providers.definition import Costs
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
from providers.http.calls import late
from providers.scopes import Operation
from store.coordination.provider_limits import (
    Access,
    AcquireRequest,
    Circuit,
    Permit,
    ProviderLimits,
    WaitReason,
)
from store.sql.queries.connection_rows import Credentials, SealedConnection
from workers.egress import Egress
from workers.jobs import (
    ChangeSeries,
    CreateEvent,
    DeleteEvent,
    DeleteSeries,
    EventWrite,
    GetEvent,
    Job,
    ListCalendars,
    ReadBusy,
    ReadBusyWithout,
    ReadChanges,
    ReadEvents,
    RespondToEvent,
    ShowCalendars,
    UpdateEvent,
)


class AccountCallReporter:
    """The ``CallReporter`` of one account for its reads or its writes. It shares outcomes with all workers.

    Create it when the job begins. A timeout counts as a failure of the provider only after ``patience``
    seconds. ``ours`` returns whether the limit of a Google Cloud project is this installation's, given the
    project's number if Google names it. ``egress`` is notified of answers and of calls without an answer.
    ``for_provider``: failures count for the provider's circuit breaker too.
    """

    def __init__(
        self,
        limits: ProviderLimits,
        circuit: Circuit,
        connection: str,
        *,
        egress: Egress,
        patience: float,
        ours: Callable[[str | None], bool] = lambda _project: True,
        for_provider: bool = True,
    ) -> None:
        self._limits = limits
        self._circuit = circuit
        self._connection = connection
        self._egress = egress
        self._patience = patience
        self._ours = ours
        self._for_provider = for_provider
        self._began = time.monotonic()

    def answered(self) -> None:
        """Report an answer of the provider to this account."""
        now = time.monotonic()
        self._egress.answered(self._circuit.provider)
        self._limits.answered(self._circuit, self._connection, duration=now - self._began)
        # The time of the next call counts from here.
        self._began = now

    def failed(self, error: ProviderError, pause: float, *, given_up: bool) -> float | None:
        """Report a failed call. Returns the seconds to wait before a retry, or None for no retry.

        A rate limit pauses this account; one of our own Google Cloud project pauses all accounts. Missing and
        unreadable answers and errors of the server count for the circuit breaker. A call also waits for
        pauses that the provider has named to any worker. It does not wait for our own estimates: its retry
        finds out whether the limit is over.
        """
        if isinstance(error, NoAnswer):
            if self._egress.failed(self._circuit.provider, error):
                return None
        elif not isinstance(error, LocalResourceExhausted):
            self._egress.answered(self._circuit.provider)
        named: float | None = 0.0
        if isinstance(error, RateLimited):
            self.answered()
            named = self._limits.throttled(
                self._circuit,
                self._connection,
                pause,
                named=error.retry_after is not None,
                project=isinstance(error, ProjectRateLimited) and self._ours(error.project),
            )
        elif self._counts_as_failure(error, given_up=given_up):
            named = self._limits.failed(
                self._circuit,
                self._connection,
                given_up=given_up,
                duration=time.monotonic() - self._began,
                for_provider=self._for_provider,
            )
        return None if named is None else max(pause, named)

    def _counts_as_failure(self, error: ProviderError, *, given_up: bool) -> bool:
        """Whether a failure counts for the circuit breaker. A short timeout does not."""
        if isinstance(error, LocalResourceExhausted):
            return False
        return not isinstance(error, TimedOut) or (given_up and error.waited >= self._patience)


def acquire_request(job: Job, row: SealedConnection, name: str) -> AcquireRequest | None:
    """The permit that a job needs from the rate limiter; None for a job that calls no calendar API."""
    cost = cost_of(job, row)
    if not cost:
        return None
    return AcquireRequest(Circuit(row.provider, access_of(job)), row.id, cost, leased_mailbox(row), name)


def cost_of(job: Job, row: SealedConnection | Credentials) -> int:
    """The calls of a job, with those for the main calendar of an account where it is not known."""
    cost = calls(row.provider, job)
    # The main calendar of a delegated connection is read by its address, without its id.
    by_address = row.grant is not None and isinstance(job, ReadBusy) and job.main_only
    if (
        cost
        and row.main_calendar_id is None
        and not by_address
        and registry.scopes(row.provider).allows(row.scope, Operation.LIST_CALENDARS)
    ):
        # The id of the main calendar is read too.
        cost += registry.definition(row.provider).costs.main_calendar
    return cost


def leased_mailbox(row: SealedConnection | Credentials) -> str | None:
    """The mailbox whose concurrent calls the provider limits; None if it limits none.

    The key is the mailbox address, or the main calendar's id, that Graph returned. It is not the e-mail of
    the connection, which the API client can choose: one tenant could take the leases of another tenant's
    mailbox. Until Graph has returned either, a connection has leases of its own.
    """
    if not registry.definition(row.provider).leases:
        return None
    return row.mailbox or row.main_calendar_id or row.id


def access_of(job: Job) -> Access:
    """Whether a job reads or writes."""
    return Access.WRITES if isinstance(job, EventWrite) else Access.READS


def calls(provider: str, job: Job) -> int:
    """The number of provider calls of a job, without retries and further pages."""
    costs = registry.definition(provider).costs
    match job:
        case ReadBusy():
            return _calls_for_busy(costs, job)
        case ListCalendars() | ShowCalendars():
            return costs.listing
        case ReadEvents():
            return len(job.calendars) + costs.zone
        case ReadChanges():
            # A page of changes, and the events that it only names.
            return 2 + costs.zone
        case GetEvent() | ReadBusyWithout():
            return costs.event
        case ChangeSeries() | DeleteSeries():
            # The occurrence, its series, the later part, and the end of the series.
            return 4
        case CreateEvent() | UpdateEvent() | DeleteEvent() | RespondToEvent():
            # The job reads the event before it changes it, or searches for it after it created it.
            return 2
    return 0


def _calls_for_busy(costs: Costs, job: ReadBusy) -> int:
    """All calendars on the list count as one: their number is not known yet."""
    queries = -(-len(job.calendars or (PRIMARY,)) // costs.calendars_per_query)
    if costs.range_per_query is not None:
        queries *= -(-(job.end - job.start) // costs.range_per_query)
    return queries + costs.zone + (costs.listing if job.calendars is None else 0)


def rate_limited_failure(row: SealedConnection, permit: Permit) -> Failed:
    """The failure of a job that gets no permit before its deadline. The job was not started."""
    if permit.why is WaitReason.MAILBOX:
        # Earlier calls to this mailbox have not finished.
        return timeout_failure(row)
    wait = None if permit.why is WaitReason.BACKOFF else permit.wait
    return Failed(Reason.RATE_LIMITED, rate_limited_message(row.provider, permit), retry_after=wait)


def rate_limited_message(provider: str, permit: Permit) -> str:
    """Whether the provider has refused calls, or the quota of this installation is used up."""
    title = registry.service(provider)
    if permit.why is WaitReason.PACE:
        return f"This installation has used up its quota of calls to {title}"
    return f"{title} asks us to slow down"


def circuit_open_failure(row: SealedConnection, permit: Permit) -> Failed:
    """The failure of a job while the circuit is open. The provider was not called."""
    return replace(Failed.from_error(circuit_open_error(row.provider, permit)), called=False)


def circuit_open_error(provider: str, permit: Permit) -> Unavailable:
    """The error for a call that is not made because the circuit is open."""
    message = f"{registry.service(provider)} has not been answering; try again in a moment"
    return Unavailable(message, retry_after=permit.wait)


def timeout_failure(row: SealedConnection) -> Failed:
    """The failure of a read without an answer at the deadline, worded as in the adapter."""
    return Failed.from_error(late(registry.service(row.provider), Operation.FREE_BUSY))
