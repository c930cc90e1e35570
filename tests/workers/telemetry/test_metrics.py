"""The counters for the calls that workers make."""

from __future__ import annotations

import time

import pytest

from providers.base import Failed, Read
from providers.errors import Problem, Reason
from scheduling.intervals import Intervals
from store.coordination.provider_limits import Access, Circuit
from store.metrics.counters import Counts, together
from tests.installation.processes import running_worker
from tests.workers.conftest import DAY, put_work, run_drain
from workers.jobs import (
    DeleteEvent,
    FreshToken,
    GetEvent,
    ListCalendars,
    ReadBusy,
    ReadBusyWithout,
    ReadChanges,
    ReadEvents,
    Reply,
    ShowCalendars,
    StopChannels,
)
from workers.queues import Queue

NOTHING = Read(Intervals.of([]))
DENIED = Failed(Reason.ACCESS_DENIED, "It may not be seen")
MISSING = Failed(Reason.NOT_FOUND, "It is not there")


def counted(runtime) -> Counts:
    runtime.stores.counters.flush()
    now = time.time_ns() // 1_000_000
    return together(each.counts for each in runtime.stores.counters.points(now - DAY, now + DAY))


@pytest.fixture
def after(runtime, connected):
    """The counters after a job of a Google connection with this reply."""

    def drain(reply, make=lambda connection: ReadBusy(connection, ("a", "b"), 0, 7 * DAY)):
        put_work(runtime, "counted", [make(connected())])
        run_drain(runtime, "counted", lambda *_: reply)
        return counted(runtime)

    return drain


READS = [
    lambda connection: ReadBusy(connection, None, 0, 1),
    ListCalendars,
    ShowCalendars,
    lambda connection: ReadEvents(connection, ("a",), 0, 1),
    lambda connection: ReadChanges(connection, "a", 0, 1),
    lambda connection: GetEvent(connection, "a", "e"),
    lambda connection: ReadBusyWithout(connection, "a", "e", 0, 1),
]
OTHERS = [FreshToken, StopChannels]


@pytest.mark.parametrize("make", READS)
def test_whatever_reads_calendars_is_a_read(after, make):
    found = after(Reply(), make)

    assert (found.reads("google").total, found.reads().total, found.writes().total) == (1, 1, 0)


def test_what_changes_an_event_is_a_write(after):
    found = after(Reply(), lambda connection: DeleteEvent(connection, "a", "e"))

    assert (found.writes("google").total, found.reads().total) == (1, 0)


@pytest.mark.parametrize("make", OTHERS)
def test_what_concerns_a_grant_or_a_channel_is_neither(after, make):
    assert after(Reply(failed=DENIED), make) == Counts()


def test_a_failure_of_the_account_is_counted_and_so_is_its_read(after):
    found = after(Reply(failed=DENIED))

    assert found.failures("google") == {"accessDenied": 1}
    assert found.reads("google").total == 1


def test_each_reason_counts_once_however_many_calendars_it_concerns(after):
    outcomes = {"a": DENIED, "b": DENIED, "c": MISSING, "d": NOTHING}

    assert after(Reply(outcomes=outcomes)).failures() == {"accessDenied": 1, "notFound": 1}


def test_failed_lists_of_events_count_by_their_calendars(after):
    found = after(Reply(events={"a": (), "b": MISSING}), READS[3])

    assert found.failures() == {"notFound": 1}


def test_what_is_wrong_with_an_event_is_no_failure_of_the_provider(after):
    refused = Failed(Reason.PROVIDER_ERROR, "It ends first", problem=Problem.EVENT_REFUSED)

    found = after(Reply(failed=refused), lambda connection: DeleteEvent(connection, "a", "e"))

    assert found.failures() == {}
    assert found.writes().total == 1


def test_a_fault_of_our_own_is_not_the_providers(runtime, connected, caplog):
    def fail(*_):
        raise ValueError("ours")

    put_work(runtime, "broken", [ListCalendars(connected())])
    run_drain(runtime, "broken", fail)

    assert counted(runtime) == Counts()
    assert "failed unexpectedly" in caplog.text


def test_a_job_without_a_permit_in_time_is_counted_as_a_failure(runtime, connected, sandbox):
    connection = connected(sandbox.account("google", "ada@example.com"))
    runtime.stores.provider_limits.throttled(Circuit("google", Access.READS), connection, 60.0, named=True)
    put_work(runtime, "throttled", [ReadBusy(connection, ("primary",), 0, 7 * DAY)])

    run_drain(runtime, "throttled", lambda *_: Reply(), seconds=1.0)

    found = counted(runtime)
    assert found.failures("google") == {"rateLimited": 1}
    assert found.reads().total == 0


def test_how_long_a_read_took_is_counted(runtime, connected):
    put_work(runtime, "slow", [ListCalendars(connected())])

    def read(*_):
        time.sleep(0.06)
        return Reply()

    run_drain(runtime, "slow", read)

    assert 50 < counted(runtime).reads("google").percentile(50) <= 10_000


@pytest.mark.long
def test_a_worker_that_is_stopped_writes_down_what_it_counted_last(
    runtime, connected, sandbox, fanout, celery, environment
):
    connection = connected(sandbox.account("google", "ada@example.com"))
    own = environment | {"ALMANAC_DATA_DIR": str(runtime.settings.data_dir)}
    with running_worker(runtime.settings, own, "ending"):
        job = ReadBusy(connection, ("primary",), 0, 7 * DAY)
        (reply,) = fanout.gather([job], queue=Queue.READS, deadline=time.monotonic() + 10)

    assert reply.whole()
    assert counted(runtime).reads("google").total == 1
