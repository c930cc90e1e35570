"""Performs the jobs of the reads queue."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from providers import registry
from providers.base import PRIMARY, Account, Calendar, CalendarProvider, Failed, Outcome, Read
from providers.changes import ChangePage
from providers.definition import required
from providers.errors import AuthorizationInvalid, ProviderError, RateLimited, Reason, TokenRejected
from store.cache.busy_cache import CalendarKey, now_ms
from store.cache.cache_tags import Tags
from store.cache.calendar_lists import ListedCalendar
from store.sql.queries.connection_rows import Credentials, SealedConnection
from store.stores import Stores
from workers.execution import identity
from workers.execution.accounts import mark_dead_on_revoked_grant, open_account
from workers.execution.call_policy import access_of
from workers.jobs import (
    GetEvent,
    Job,
    ListCalendars,
    ReadBusy,
    ReadBusyWithout,
    ReadChanges,
    ReadEvents,
    Reply,
    ShowCalendars,
)
from workers.runtime import Runtime

log = logging.getLogger(__name__)

# The share of the time that a read may spend on the provider's ids for the account.
IDENTITY_FRACTION = 0.4


def begin_reads(
    stores: Stores, reads: Iterable[tuple[ReadBusy, SealedConnection | Credentials]]
) -> Mapping[str, bytes]:
    """The generations of these connections' caches, looked up before their busy periods are read.

    Also registers the connections as readers of the calendars' cache tags, as far as those are known.
    """
    ids: list[str] = []
    tags: dict[CalendarKey, Tags] = {}
    for job, row in reads:
        ids.append(row.id)
        tags |= identity.known_tags(row, job.calendars or ()) or {}
    return stores.busy.begin_reads(ids, tags)


def perform(runtime: Runtime, job: Job, credentials: Credentials | None, deadline: float) -> Reply:
    """Do one job of the reads queue. An expected failure is in the reply, never raised.

    For a read of busy periods, :func:`begin_reads` must have been called.
    """
    if credentials is None:
        raise TypeError(f"{job!r} is not a read")
    grace = runtime.grace if continues_past_deadline(job) else 0.0
    provider, account = open_account(runtime, credentials, access_of(job), grace=grace)
    reader = _Reader(runtime, credentials, provider, account, deadline)
    if isinstance(job, ReadBusy):
        return reader.busy(job)
    try:
        with mark_dead_on_revoked_grant(runtime, credentials.id, reads=True):
            return reader.read(job)
    except ProviderError as error:
        return Reply(failed=Failed.from_error(error))


def continues_past_deadline(job: Job) -> bool:
    """Whether a job in flight at its deadline continues, to fill the cache.

    A job that lists the calendars first does not: it must answer in time with the list that it has.
    """
    return isinstance(job, ReadBusy) and job.calendars is not None


class _Reader:
    """One job's calls to a provider."""

    def __init__(
        self,
        runtime: Runtime,
        credentials: Credentials,
        provider: CalendarProvider,
        account: Account,
        deadline: float,
    ) -> None:
        self._runtime = runtime
        self._credentials = credentials
        self._provider = provider
        self._account = account
        self._deadline = deadline
        # The provider's list does not have the main calendar.
        self._main_is_unlisted = False

    def busy(self, job: ReadBusy) -> Reply:
        """The busy periods of calendars, and the list of calendars if the job needs it."""
        read_at = now_ms()
        listed: tuple[ListedCalendar, ...] | None = None
        outcomes: dict[str, Outcome] = {}
        try:
            with mark_dead_on_revoked_grant(self._runtime, job.connection, reads=True):
                if job.calendars is None:
                    # The list includes the main calendar.
                    listed = self._list()
                calendars = job.calendars or tuple(calendar.read_id for calendar in listed or ())
                if calendars:
                    if job.calendars is None or identity.known_tags(self._credentials, calendars) is None:
                        self._prepare(calendars)
                    outcomes = self._provider.busy(
                        self._account, calendars, job.start, job.end, deadline=self._deadline
                    )
        except ProviderError as error:
            # With the list, if it was read, the failure can be reported for each calendar.
            return Reply(read_at, failed=Failed.from_error(error), listed=listed)
        main = outcomes.get(PRIMARY)
        if self._main_is_unlisted and isinstance(main, Failed) and main.reason is Reason.NOT_FOUND:
            # Neither on the list nor known by its alias: the account has no main calendar.
            listed = tuple(each for each in listed or () if not each.primary)
            outcomes = {calendar: each for calendar, each in outcomes.items() if calendar != PRIMARY}
        return Reply(_kept_at(read_at, outcomes), listed=listed, outcomes=outcomes)

    def read(self, job: Job) -> Reply:
        """Any read that is not for the cache of busy periods."""
        provider, deadline = self._provider, self._deadline
        match job:
            case ReadBusyWithout():
                read_at = now_ms()
                busy = provider.busy_without(
                    self._account, job.calendar, job.event, job.start, job.end, deadline=deadline
                )
                outcomes: dict[str, Outcome] = {job.calendar: busy}
                return Reply(_kept_at(read_at, outcomes), outcomes=outcomes)
            case ListCalendars():
                return Reply(now_ms(), listed=self._list())
            case ShowCalendars():
                return Reply(calendars=self._calendars())
            case ReadEvents():
                self._identify_if_possible()
                return Reply(
                    events=provider.events(
                        self._account, job.calendars, job.start, job.end, deadline=deadline
                    )
                )
            case ReadChanges():
                self._identify_if_possible()
                return Reply(changes=self._changes(job))
            case GetEvent():
                self._identify_if_possible()
                read = provider.find_event if job.by_meta else provider.event
                found = read(self._account, job.calendar, job.event, deadline=deadline)
                return Reply(events={job.calendar: (found,)})
        raise TypeError(f"{job!r} is not a read")

    def _changes(self, job: ReadChanges) -> ChangePage:
        name = self._credentials.provider
        feed = required(self._runtime.provider(name).changes, registry.title(name))
        return feed.changes(
            self._account, job.calendar, job.start, job.end, job.sync_token, deadline=self._deadline
        )

    def _prepare(self, calendars: Sequence[str]) -> None:
        """Register this connection as a reader of the cache tags that ``begin_reads`` did not know.

        If the tags are unknown, a write through another connection could not invalidate this read. The
        generation of the connection is then replaced, so that this read is neither cached nor joined by later
        requests.
        """
        if not self._succeeds(lambda: self._register_reader(calendars)):
            self._runtime.stores.busy.invalidate_connections([self._credentials.id])

    def _identify_if_possible(self) -> None:
        """Read the id of the main calendar for the answer, which is also valid without it."""
        self._succeeds(self._identify)

    def _succeeds(self, identify: Callable[[], None]) -> bool:
        """Whether ``identify`` could read the provider's ids for the account. The read can do without."""
        stores, connection = self._runtime.stores, self._credentials.id
        if (
            self._credentials.main_calendar_id is None
            and identity.paused(stores, connection) == identity.FAILED
        ):
            return False
        try:
            identify()
        except ProviderError as error:
            # The read would be a call within the pause that the provider has asked for.
            if isinstance(error, RateLimited):
                raise
            # A token that is rejected for this call may be accepted for the read, which tells otherwise.
            refused = isinstance(error, TokenRejected)
            if isinstance(error, AuthorizationInvalid) and not refused:
                raise
            log.info("account not identified: %s", error.reason, extra={"connection": connection})
            if error.retryable or refused:
                identity.pause(stores, connection, identity.FAILED)
            return False
        return True

    def _identify(self) -> None:
        self._credentials = identity.with_main_calendar(
            self._runtime.stores,
            self._credentials,
            self._provider,
            self._account,
            deadline=self._identity_deadline(),
        )
        self._account = replace(self._account, mailbox=self._credentials.mailbox)

    def _identity_deadline(self) -> float:
        """An earlier deadline for calls that must leave time for the read itself."""
        now = time.monotonic()
        return now + max(0.0, self._deadline - now) * IDENTITY_FRACTION

    def _list(self) -> tuple[ListedCalendar, ...]:
        found = self._calendars()
        if not any(each.primary for each in found):
            # Its id is needed to recognize it: a list may also have it without the mark. No call follows.
            with suppress(RateLimited):
                self._identify_if_possible()
        listed = identity.listing(self._credentials, found)
        self._main_is_unlisted = len(listed) > len(found)
        return listed

    def _calendars(self) -> tuple[Calendar, ...]:
        found = self._provider.calendars(self._account, deadline=self._deadline)
        self._credentials = identity.note_list(self._runtime.stores, self._credentials, found)
        return tuple(found)

    def _register_reader(self, calendars: Sequence[str]) -> None:
        """Identify the account, and register the connection as a reader of the calendars' cache tags.

        Call this after the worker has looked up the generation, and before the provider is called.
        """
        self._identify()
        stores = self._runtime.stores
        owners = identity.owners(
            stores,
            self._credentials,
            self._provider,
            self._account,
            calendars,
            deadline=self._identity_deadline(),
        )
        identity.register_readers(stores, self._credentials, self._account, calendars, owners)


def _kept_at(read_at: int, outcomes: Mapping[str, Outcome]) -> int:
    """When the oldest of these was read, so that ``Age`` is true for what an adapter has kept."""
    ages = [each.age for each in outcomes.values() if isinstance(each, Read)]
    return read_at - int(1000 * max(ages, default=0.0))
