"""What a worker reads for one connection."""

from __future__ import annotations

import time

from providers.base import PRIMARY, Account, CalendarProvider, Failed, Outcome
from providers.errors import ProviderError
from store.calendar_lists import ListedCalendar
from store.queries.connections import Credentials
from workers.accounts import minding_the_grant, open_account
from workers.jobs import Job, ListCalendars, ReadBusy, Reply
from workers.runtime import Runtime


def perform(runtime: Runtime, job: Job, credentials: Credentials, deadline: float) -> Reply:
    """Do one job of the reads queue. An expected failure is in the reply, never raised."""
    provider, account = open_account(runtime, credentials)
    try:
        with minding_the_grant(runtime, credentials.id):
            match job:
                case ReadBusy():
                    return _read_busy(provider, account, job, deadline)
                case ListCalendars():
                    return Reply(listed=_list(provider, account, deadline))
                case _:
                    raise TypeError(f"{job!r} is not a read")
    except ProviderError as error:
        return Reply(failed=Failed.because(error))


def _read_busy(provider: CalendarProvider, account: Account, job: ReadBusy, deadline: float) -> Reply:
    read_at = time.time_ns() // 1_000_000
    listed = _list(provider, account, deadline) if job.calendars is None else None
    calendars = job.calendars or tuple(asked_as(calendar) for calendar in listed or ())
    outcomes: dict[str, Outcome] = {}
    if calendars:
        outcomes = provider.busy(account, calendars, job.start, job.end, deadline=deadline)
    return Reply(read_at=read_at, listed=listed, outcomes=outcomes)


def _list(provider: CalendarProvider, account: Account, deadline: float) -> tuple[ListedCalendar, ...]:
    return tuple(
        ListedCalendar(calendar.id, calendar.primary)
        for calendar in provider.calendars(account, deadline=deadline)
    )


def asked_as(calendar: ListedCalendar) -> str:
    """The id a calendar is read and cached under: the main one by its alias, so it is cached once."""
    return PRIMARY if calendar.primary else calendar.id
