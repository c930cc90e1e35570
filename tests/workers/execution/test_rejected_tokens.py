"""A token that the provider rejects although it has just issued it: when that ends a connection."""

from __future__ import annotations

import time

import pytest

from providers.base import Failed
from providers.caldav.definition import bind
from providers.errors import Reason
from store.coordination import provider_limits
from store.sql.models import OAuthConnection
from tests.providers.caldav.conftest import opened as found_account
from tests.providers.caldav.scripted import CALENDAR, scripted
from workers.execution import reads, writes
from workers.execution.accounts import REJECTED
from workers.fanout import reports
from workers.fanout.reports import Reporter
from workers.fanout.work import FanoutRequest, FinishedJob, TakenJob
from workers.jobs import DeleteEvent, ReadBusy, ReadEvents
from workers.runtime import Runtime

START, END = 1_796_256_000_000, 1_796_342_400_000  # 2026-12-03 to 2026-12-04
CALLS = {"google": ["google.freebusy.query", "google.events.list"], "microsoft": ["microsoft.batch"]}


@pytest.fixture
def do(runtime, opened):
    """Perform one job of the reads queue, and report its result."""

    def perform(job):
        request = FanoutRequest("request", time.monotonic() + 30)
        reply = reads.perform(runtime, job, opened(job.connection), request.deadline)
        taken = TakenJob(0, job, "request:0")
        report, _ = reports.finished(request, [FinishedJob(taken, reply, b"")])
        reporter = Reporter(runtime.stores, runtime.pool.locks)
        reporter.report(report)
        reporter.stop()
        reporter.join(10)
        return reply

    return perform


@pytest.fixture(params=["google", "microsoft"])
def connection(request, sandbox, connected):
    """A connection, and faults that reject every token."""
    made = connected(sandbox.account(request.param, "ada@example.com"))
    for operation in CALLS[request.param]:
        sandbox.fault(operation=operation, status=401)
    return made


@pytest.fixture
def is_alive(runtime):
    """Whether a connection is alive."""

    def look(connection):
        with runtime.stores.database.reading() as session:
            return session.get(OAuthConnection, connection).alive

    return look


@pytest.fixture
def later(runtime, monkeypatch):
    """Let minutes pass for the memory of rejected tokens."""

    began = time.time()

    def wait(minutes):
        now = began + minutes * 60
        monkeypatch.setattr(provider_limits.time, "time", lambda: now)

    return wait


@pytest.fixture
def caldav(runtime, connected, monkeypatch):
    """A connection whose password was entered in a form, and the script of its server."""
    known = {"caldav": bind({"allow_private": True})}
    monkeypatch.setattr(Runtime, "provider", lambda _, name: known[name])
    with scripted() as script:
        found = found_account(script.url)
        made = connected(
            provider="caldav",
            access_token=found.credentials.reveal,
            refresh_token=None,
            scope=" ".join(found.scope),
        )
        yield made, script


def busy(connection):
    return ReadBusy(connection, ("primary",), START, END)


def test_rejections_in_a_row_do_not_end_a_connection(do, connection, is_alive, later):
    for minutes in (0, 1, 9):
        later(minutes)
        assert do(busy(connection)).failed.reason is Reason.AUTHORIZATION_INVALID
        assert is_alive(connection)


@pytest.mark.parametrize("job", [busy, lambda connection: ReadEvents(connection, ("primary",), START, END)])
def test_a_rejection_ten_minutes_later_ends_it(do, connection, is_alive, later, job):
    do(busy(connection))
    later(11)
    assert do(job(connection)).failed.reason is Reason.AUTHORIZATION_INVALID
    assert not is_alive(connection)


def test_a_read_in_between_shows_that_the_grant_is_valid(sandbox, do, connection, is_alive, later):
    do(busy(connection))
    sandbox.clear_faults()
    assert do(busy(connection)).failed is None
    for operation in [*CALLS["google"], *CALLS["microsoft"]]:
        sandbox.fault(operation=operation, status=401)
    later(11)
    do(busy(connection))
    assert is_alive(connection)


NO = (401, b"", {"WWW-Authenticate": 'Basic realm="x"'})
# Of a calendar that another person shares with the account.
SHARED, SHARED_ID = "/home/shared/", "L2hvbWUvc2hhcmVkLw"


def test_a_password_ends_a_connection_when_it_is_rejected_ten_minutes_later_too(do, caldav, is_alive, later):
    connection, script = caldav
    good = script.answers["REPORT", CALENDAR]
    for minutes in (0, 9):
        script.say("REPORT", CALENDAR, NO)
        later(minutes)
        failed = do(busy(connection)).failed
        assert (failed.reason, failed.message) == (Reason.AUTHORIZATION_INVALID, REJECTED)
        assert is_alive(connection)
    script.say("REPORT", CALENDAR, good)
    assert do(busy(connection)).failed is None
    script.say("REPORT", CALENDAR, NO)
    for minutes, alive in ((20, True), (31, False)):
        later(minutes)
        assert do(busy(connection)).failed.reason is Reason.AUTHORIZATION_INVALID
        assert is_alive(connection) is alive


@pytest.mark.parametrize("calendars", [("primary", SHARED_ID), (SHARED_ID, "primary")])
@pytest.mark.parametrize("read", ["busy", "events"])
def test_a_shared_calendar_that_wants_another_password_ends_no_connection(
    do, caldav, is_alive, later, calendars, read
):
    connection, script = caldav
    script.say("REPORT", SHARED, NO)
    for minutes in (0, 11, 22):
        later(minutes)
        if read == "busy":
            reply = do(ReadBusy(connection, calendars, START, END))
            outcomes = reply.outcomes
        else:
            reply = do(ReadEvents(connection, calendars, START, END))
            outcomes = reply.events
        assert reply.failed is None
        assert outcomes[SHARED_ID].reason is Reason.ACCESS_DENIED
        assert not isinstance(outcomes["primary"], Failed)
        assert is_alive(connection)


def test_a_write_that_is_rejected_ends_no_connection(runtime, opened, caldav, is_alive, later):
    connection, script = caldav
    script.say("REPORT", CALENDAR, NO)
    for minutes in (0, 11):
        later(minutes)
        job = DeleteEvent(connection, "primary", "one", None)
        failed = writes.perform(runtime, job, opened(connection), time.monotonic() + 30).failed
        assert failed.reason is Reason.AUTHORIZATION_INVALID
    assert is_alive(connection)
