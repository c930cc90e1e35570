"""A token that the provider rejects although it has just issued it: when that ends a connection."""

from __future__ import annotations

import time

import pytest

from providers.errors import Reason
from store.coordination import provider_limits
from store.sql.models import OAuthConnection
from workers.execution import reads
from workers.fanout import reports
from workers.fanout.reports import Reporter
from workers.fanout.work import FinishedJob, Request, TakenJob
from workers.jobs import ReadBusy, ReadEvents

START, END = 1_796_256_000_000, 1_796_342_400_000  # 2026-12-03 to 2026-12-04
CALLS = {"google": ["google.freebusy.query", "google.events.list"], "microsoft": ["microsoft.batch"]}


@pytest.fixture
def do(runtime, opened):
    """Perform one job of the reads queue, and report its result."""

    def perform(job):
        request = Request("request", time.monotonic() + 30)
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
