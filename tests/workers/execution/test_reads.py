"""The jobs of the reads queue."""

from __future__ import annotations

import time

import pytest

from providers.base import Read
from providers.errors import Reason
from store.cache.calendar_lists import ListedCalendar
from tests.app.days import PROVIDERS, meeting
from workers.execution import reads, writes
from workers.jobs import FreshToken, ListCalendars, ReadBusy

START, END = 1_796_256_000_000, 1_796_342_400_000  # 2026-12-03 to 2026-12-04
CALENDARS = [{"primary": True}, {"id": "team"}]
LATENCY = 400


@pytest.fixture
def do(runtime, opened):
    """Perform one job of the reads queue."""
    return lambda job: reads.perform(runtime, job, opened(job.connection), time.monotonic() + 5)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_read_of_all_calendars_has_main_calendar_by_alias(sandbox, connected, do, provider):
    events = [meeting("09:00", "10:00"), meeting("11:00", "12:00", calendarId="team")]
    account = sandbox.account(provider, "ada@example.com", calendars=CALENDARS, events=events)
    before = time.time_ns() // 1_000_000
    reply = do(ReadBusy(connected(account), None, START, END))
    assert reply.failed is None
    assert [calendar.primary for calendar in reply.listed] == [True, False]
    hour = 3_600_000
    assert {name: outcome.busy.pairs() for name, outcome in reply.outcomes.items()} == {
        "primary": [(START + 9 * hour, START + 10 * hour)],
        "team": [(START + 11 * hour, START + 12 * hour)],
    }
    assert before <= reply.read_at <= time.time_ns() // 1_000_000


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("job", "status"),
    [
        pytest.param(lambda each: ReadBusy(each, None, START, END), None, id="everything"),
        pytest.param(lambda each: ReadBusy(each, ("primary",), START, END), None, id="one calendar"),
        pytest.param(lambda each: ReadBusy(each, ("primary",), START, END), 403, id="a refusal"),
        pytest.param(ListCalendars, None, id="the list"),
    ],
)
def test_read_time_is_before_the_provider_call(sandbox, connected, do, provider, job, status):
    connection = connected(sandbox.account(provider, "ada@example.com"))
    sandbox.fault(latency_ms=LATENCY, status=status)

    reply = do(job(connection))
    after = time.time_ns() // 1_000_000

    assert (reply.failed is None) == (status is None)
    assert reply.read_at <= after - LATENCY


def test_an_account_without_calendars_is_read(sandbox, connected, do):
    """Its main calendar is neither on the list nor known by its alias."""
    account = sandbox.account("google", "ada@example.com", calendars=[])
    reply = do(ReadBusy(connected(account), None, START, END))
    assert (reply.failed, reply.listed, reply.outcomes) == (None, (), {})


def test_an_unlisted_main_calendar_that_cannot_be_read_is_named(sandbox, connected, do):
    connection = connected(sandbox.account("google", "ada@example.com", calendars=[]))
    sandbox.fault(calendar_id="primary", reason="internalError")
    reply = do(ReadBusy(connection, None, START, END))
    assert reply.listed == (ListedCalendar("ada@example.com", True, unlisted=True),)
    assert reply.outcomes["primary"].reason is Reason.PROVIDER_ERROR


def test_named_calendars_need_no_list(sandbox, connected, do):
    account = sandbox.account("google", "ada@example.com", calendars=CALENDARS)
    reply = do(ReadBusy(connected(account), ("team", "gone"), START, END))
    assert reply.listed is None
    assert isinstance(reply.outcomes["team"], Read)
    assert reply.outcomes["gone"].reason is Reason.NOT_FOUND
    assert sandbox.requests().by_operation == {"google.freebusy.query": 1}


def test_the_calendar_list_is_in_the_reply_although_reading_failed(sandbox, connected, do):
    account = sandbox.account("google", "ada@example.com", calendars=CALENDARS)
    sandbox.fault(operation="google.freebusy.query", status=403)
    reply = do(ReadBusy(connected(account), None, START, END))
    assert reply.failed.reason is Reason.ACCESS_DENIED
    assert reply.listed == (ListedCalendar("ada@example.com", True), ListedCalendar("team", False))


def test_a_read_that_lists_the_calendars_first_ends_at_its_deadline(sandbox, connected, runtime, opened):
    """Other reads wait longer, to fill the cache. This one has to answer with the list that it has."""
    connection = connected(sandbox.account("google", "ada@example.com"))
    sandbox.fault(operation="google.calendarList.list", latency_ms=1000)

    job = ReadBusy(connection, None, START, END)
    reply = reads.perform(runtime, job, opened(connection), time.monotonic() + 0.5)

    assert (reply.failed.reason, reply.listed) == (Reason.PROVIDER_ERROR, None)


def test_listing_alone_reads_no_calendar(sandbox, connected, do):
    reply = do(ListCalendars(connected(sandbox.account("google", "ada@example.com"))))
    assert reply.listed == (ListedCalendar("ada@example.com", True),)
    assert sandbox.requests().by_operation == {"google.calendarList.list": 1}


def test_each_queue_refuses_the_others_jobs(sandbox, connected, runtime, opened):
    connection = connected(sandbox.account("google", "ada@example.com"))
    foreign = ((reads.perform, FreshToken(connection)), (writes.perform, ListCalendars(connection)))
    for perform, job in foreign:
        with pytest.raises(TypeError):
            perform(runtime, job, opened(connection), time.monotonic() + 5)
    assert sandbox.requests().total == 0
