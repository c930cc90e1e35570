"""What a worker reads for one connection."""

from __future__ import annotations

import time

from providers.base import Account, CalendarProvider, Failed, Outcome
from providers.errors import ProviderError
from store.calendar_lists import ListedCalendar
from store.queries.connections import Credentials
from workers.accounts import minding_the_grant, open_account
from workers.jobs import Job, ListCalendars, ReadBusy, Reply
from workers.runtime import Runtime


def perform(runtime: Runtime, job: Job, credentials: Credentials, deadline: float) -> Reply:
    """Do one job of the reads queue. An expected failure is in the reply, never raised."""
    if not isinstance(job, ReadBusy | ListCalendars):
        raise TypeError(f"{job!r} is not a read")
    provider, account = open_account(runtime, credentials)
    read_at = time.time_ns() // 1_000_000
    listed: tuple[ListedCalendar, ...] | None = None
    outcomes: dict[str, Outcome] = {}
    try:
        with minding_the_grant(runtime, credentials.id):
            if isinstance(job, ListCalendars) or job.calendars is None:
                listed = _list(provider, account, deadline)
            if isinstance(job, ReadBusy):
                calendars = job.calendars or tuple(calendar.asked_as for calendar in listed or ())
                if calendars:
                    outcomes = provider.busy(account, calendars, job.start, job.end, deadline=deadline)
    except ProviderError as error:
        # With the list, when that much was read: then each calendar can be named.
        return Reply(read_at, failed=Failed.because(error), listed=listed)
    return Reply(read_at, listed=listed, outcomes=outcomes)


def _list(provider: CalendarProvider, account: Account, deadline: float) -> tuple[ListedCalendar, ...]:
    return tuple(
        ListedCalendar(calendar.id, calendar.primary)
        for calendar in provider.calendars(account, deadline=deadline)
    )
