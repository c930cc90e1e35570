"""What a worker reads for one connection."""

from __future__ import annotations

import time
from dataclasses import replace

from providers.base import Account, CalendarProvider, Failed, Outcome
from providers.errors import ProviderError
from store.breakers import Family
from store.calendar_lists import ListedCalendar
from store.queries.connections import Credentials
from workers.accounts import minding_the_grant, open_account, traffic_of
from workers.jobs import GetEvent, Job, ListCalendars, ReadBusy, ReadEvents, Reply, ShowCalendars
from workers.runtime import Runtime
from workers.traffic import family


def perform(runtime: Runtime, job: Job, credentials: Credentials | None, deadline: float) -> Reply:
    """Do one job of the reads queue. An expected failure is in the reply, never raised."""
    if credentials is None:
        raise TypeError(f"{job!r} is not a read")
    grace = runtime.grace if goes_on(job) else 0.0
    provider, account = open_account(runtime, credentials, family(job), grace=grace)
    if isinstance(job, ReadBusy):
        # A list that is not to be had says nothing of busy periods, nor one that is.
        lister = replace(account, traffic=traffic_of(runtime, credentials, Family.CALENDARS))
        return _read_busy(runtime, provider, account, lister, job, deadline)
    try:
        with minding_the_grant(runtime, credentials.id):
            return _read(provider, account, job, deadline)
    except ProviderError as error:
        return Reply(failed=Failed.because(error))


def goes_on(job: Job) -> bool:
    """Whether a job that is under way at its deadline goes on for the cache's sake.

    One that lists the calendars first does not: the list that it has by then is a part of the answer.
    """
    return isinstance(job, ReadBusy) and job.calendars is not None


def _read_busy(
    runtime: Runtime,
    provider: CalendarProvider,
    account: Account,
    lister: Account,
    job: ReadBusy,
    deadline: float,
) -> Reply:
    read_at = _now()
    listed: tuple[ListedCalendar, ...] | None = None
    outcomes: dict[str, Outcome] = {}
    try:
        with minding_the_grant(runtime, job.connection):
            if job.calendars is None:
                listed = _list(provider, lister, deadline)
            calendars = job.calendars or tuple(calendar.asked_as for calendar in listed or ())
            if calendars:
                outcomes = provider.busy(account, calendars, job.start, job.end, deadline=deadline)
    except ProviderError as error:
        # With the list, when that much was read: then each calendar can be named.
        return Reply(read_at, failed=Failed.because(error), listed=listed)
    return Reply(read_at, listed=listed, outcomes=outcomes)


def _read(provider: CalendarProvider, account: Account, job: Job, deadline: float) -> Reply:
    match job:
        case ListCalendars():
            return Reply(_now(), listed=_list(provider, account, deadline))
        case ShowCalendars():
            return Reply(calendars=tuple(provider.calendars(account, deadline=deadline)))
        case ReadEvents():
            return Reply(
                events=provider.events(account, job.calendars, job.start, job.end, deadline=deadline)
            )
        case GetEvent():
            read = provider.find_event if job.by_meta else provider.event
            return Reply(events={job.calendar: (read(account, job.calendar, job.event, deadline=deadline),)})
    raise TypeError(f"{job!r} is not a read")


def _list(provider: CalendarProvider, account: Account, deadline: float) -> tuple[ListedCalendar, ...]:
    return tuple(
        ListedCalendar(calendar.id, calendar.primary)
        for calendar in provider.calendars(account, deadline=deadline)
    )


def _now() -> int:
    return time.time_ns() // 1_000_000
