"""The provider calls of two workers together, over sockets, as in production."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import update

from providers.base import Failed
from providers.errors import LocalResourceExhausted, RateLimited, Reason, TimedOut, Unavailable
from providers.sandbox.client import SandboxAccount
from store.coordination.provider_limits import Access, CallLimit, Circuit, record_key
from store.sql.models import OAuthConnection
from tests.app.days import MORNING, meeting, starts
from tests.waiting import until
from tests.workers.coalesced_reads import read, was_read
from tests.workers.conftest import DAY, put_work, replies, run_drain
from workers.execution import reads, writes
from workers.execution.call_policy import AccountCallReporter, calls
from workers.failures import is_internal
from workers.jobs import (
    CreateEvent,
    DeleteEvent,
    ExchangeCode,
    FreshToken,
    ReadBusy,
    ReadChanges,
    ReadEvents,
    Revoke,
)

pytestmark = pytest.mark.slow

GOOGLE, MICROSOFT = "google", "microsoft"


@pytest.fixture
def mailbox(sandbox: Any, connected: Callable[..., str]) -> Callable[[], str]:
    """Connect the same mailbox for another user."""
    account = sandbox.account("microsoft", "ada@contoso.example")
    return lambda: connected(account)


def test_a_mailbox_has_four_calls_at_once_over_all_users(new_worker, provider, mailbox):
    provider.seconds = 0.05
    users = [mailbox() for _ in range(3)]
    workers = [new_worker(), new_worker()]
    with ThreadPoolExecutor(4) as threads:
        asked = [
            threads.submit(read, workers[n % 2], f"f{n}", users * 3, seconds=30, week=n) for n in range(4)
        ]
        found = [reply for each in asked for reply in each.result()]
    assert len(found) == len(provider.asked) == 36
    assert all(map(was_read, found))
    assert provider.most == 4


def test_a_mailbox_that_is_full_does_not_block_other_accounts(
    new_worker, provider, mailbox, connected, runtime
):
    ends = (time.time() + 60) * 1000
    runtime.stores.redis.zadd("throttle:mailbox:ada@contoso.example", {f"busy:{n}": ends for n in range(4)})
    found = read(new_worker(), "f", [mailbox()] * 12 + [connected() for _ in range(20)], seconds=6)
    assert [was_read(reply) for reply in found] == [False] * 12 + [True] * 20
    assert {reply.failed.message for reply in found[:12]} == {"Microsoft 365 did not answer in time"}


def test_leases_are_given_back(new_worker, provider, mailbox, runtime):
    read(new_worker(), "f", [mailbox()] * 8)
    assert not runtime.stores.redis.keys("throttle:mailbox:*")


def test_a_worker_that_died_does_not_hold_a_mailbox_for_ever(new_worker, provider, mailbox, runtime):
    connection = mailbox()
    ends = (time.time() + 0.4) * 1000
    runtime.stores.redis.zadd("throttle:mailbox:ada@contoso.example", {f"dead:{n}": ends for n in range(4)})
    assert all(map(was_read, read(new_worker(), "f", [connection])))
    assert time.time() * 1000 >= ends


def test_lease_of_a_lost_reply_serves_the_repeated_request(new_worker, provider, mailbox, runtime):
    ends = (time.time() + 60) * 1000
    # The names of leases in the rate limiter: fan-out and number of the job.
    runtime.stores.redis.zadd("throttle:mailbox:ada@contoso.example", {f"f:{n}": ends for n in range(4)})
    assert all(map(was_read, read(new_worker(), "f", [mailbox()] * 4)))
    assert len(provider.asked) == 4


def test_retry_after_of_one_worker_applies_to_the_other(new_worker, provider, connected):
    provider.refusal = lambda: (429, {"Retry-After": "30"}, {})
    ada, bob = connected(), connected()
    first, second = new_worker(), new_worker()
    (refused,) = read(first, "one", [ada], seconds=5)
    assert (refused.failed.reason, refused.failed.retry_after) == (Reason.RATE_LIMITED, 30)
    provider.refusal = lambda: None
    same, other = read(second, "two", [ada, bob], seconds=5)
    assert same.failed.reason is Reason.RATE_LIMITED
    assert same.failed.message == refused.failed.message
    assert 20 < same.failed.retry_after <= 30
    assert was_read(other)
    assert len(provider.asked) == 2


PROJECT = "defaultPerMinutePerProject"


def refused_for_the_project(provider, **metadata):
    quota = {"reason": "RATE_LIMIT_EXCEEDED", "metadata": {"quota_limit": PROJECT} | metadata}
    provider.refusal = lambda: (403, {"Retry-After": "30"}, {"error": {"details": [quota]}})


@pytest.fixture
def obtained(connected, runtime) -> Callable[[], str]:
    """A connection whose grant this installation obtained by its own consent flow."""

    def make() -> str:
        connection = connected()
        with runtime.stores.database.writing() as session:
            session.execute(
                update(OAuthConnection).where(OAuthConnection.id == connection).values(obtained=True)
            )
        return connection

    return make


def test_a_limit_of_the_project_holds_for_every_account(new_worker, provider, obtained):
    refused_for_the_project(provider)
    read(new_worker(), "one", [obtained()], seconds=5)
    provider.refusal = lambda: None
    (reply,) = read(new_worker(), "two", [obtained()], seconds=5)
    assert reply.failed.reason is Reason.RATE_LIMITED
    assert len(provider.asked) == 1


@pytest.mark.parametrize("metadata", [{}, {"consumer": "projects/999"}])
def test_quota_of_foreign_project_pauses_only_its_account(
    metadata, new_worker, provider, connected, obtained
):
    posted = connected()
    refused_for_the_project(provider, **metadata)
    read(new_worker(), "one", [posted], seconds=5)
    provider.refusal = lambda: None
    held, *others = read(new_worker(), "two", [posted, connected(), obtained()], seconds=5)
    assert held.failed.reason is Reason.RATE_LIMITED
    assert all(map(was_read, others))


@pytest.mark.parametrize(("consumer", "held"), [("projects/4242", True), ("projects/42", False)])
def test_project_named_by_google_determines_the_quota(
    consumer, held, new_worker, provider, connected, obtained
):
    client = {"google_client_id": "4242-abc.apps.googleusercontent.com"}
    # The origin does not decide: a posted token may be of our project, an obtained one of an earlier client.
    refused = connected() if held else obtained()
    refused_for_the_project(provider, consumer=consumer)
    read(new_worker(client), "one", [refused], seconds=5)
    provider.refusal = lambda: None
    (other,) = read(new_worker(client), "two", [obtained()], seconds=5)
    assert was_read(other) is not held


@pytest.fixture
def written(connected, runtime) -> Callable[..., str]:
    """A connection of an account, with any e-mail that the API client has set."""

    def make(account: SandboxAccount, email: str | None) -> str:
        connection = connected(account)
        with runtime.stores.database.writing() as session:
            row = update(OAuthConnection).where(OAuthConnection.id == connection)
            session.execute(row.values(email=email))
        return connection

    return make


def test_two_spellings_of_a_mailbox_share_its_four_calls_at_once(new_worker, provider, sandbox, written):
    account = sandbox.account("microsoft", "ada@contoso.example")
    provider.seconds = 0.05
    spellings = ["Ada@Contoso.Example", "ada@contoso.example", "ada.lovelace@contoso.example", None]
    users = [written(account, each) for each in spellings]
    found = read(new_worker(), "f", users * 6, seconds=30)
    assert all(map(was_read, found))
    assert provider.most == 4


def test_the_email_of_a_connection_takes_no_leases_of_another_mailbox(
    new_worker, provider, sandbox, mailbox, written
):
    ada = mailbox()
    mallory = written(sandbox.account("microsoft", "mallory@contoso.example"), "ada@contoso.example")
    provider.seconds = 1.0
    found = read(new_worker(), "f", [mallory] * 8 + [ada] * 8, seconds=20)
    assert all(map(was_read, found))
    assert provider.most == 8


def test_short_retry_after_is_waited_for_without_a_thread(new_worker, provider, connected):
    refusals = iter([(429, {"Retry-After": "1"}, {})])
    provider.refusal = lambda: next(refusals, None)
    ada = connected()
    there = new_worker()
    began = time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        asking = threads.submit(read, there, "one", [ada], seconds=20)
        until(lambda: there.stores.redis.exists(record_key(Circuit("google", Access.READS), ada)))
        found = threads.submit(read, there, "two", [ada, connected()], seconds=20, week=1)
        assert all(map(was_read, [*asking.result(), *found.result()]))
    assert time.monotonic() - began > 1
    # One refused call, one of another account, and no other call before the pause was over.
    early = [moment for moment in provider.asked if moment < provider.asked[0] + 0.95]
    assert len(early) <= 2
    assert len(provider.asked) == 4


def test_a_large_organization_at_the_limit_is_paced_and_no_user_fails(new_worker, provider, connected):
    # 60 at once, then 60 in 1.2 seconds.
    limits = {"google": CallLimit(120, 1.2), "microsoft": CallLimit(10**6, 1)}
    workers = [new_worker(), new_worker()]
    for each in workers:
        each.stores.provider_limits._projects = limits
    members = [connected() for _ in range(150)]
    jobs = [ReadBusy(each, ("primary",), 0, 7 * DAY) for each in members]
    put_work(workers[0], "f", jobs)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda each: run_drain(each, "f", reads.perform, seconds=60), workers))
    found = [reply for _, reply in replies(workers[0], "f")]
    assert len(found) == 150
    assert all(map(was_read, found))
    assert len(provider.asked) == 150
    # 60 calls go at once, then 90 at intervals of 20 milliseconds.
    assert max(provider.asked) - min(provider.asked) > 1.5


def test_job_with_late_permit_fails_and_others_are_read(new_worker, provider, connected):
    there = new_worker({"google_per_minute": 10})
    found = read(there, "f", [connected() for _ in range(8)], seconds=2)
    assert [was_read(reply) for reply in found].count(True) == 5
    named = [reply.failed for reply in found if reply.failed is not None]
    assert {each.reason for each in named} == {Reason.RATE_LIMITED}
    own = "This installation has used up its quota of calls to Google Calendar"
    assert {each.message for each in named} == {own}
    assert all(each.retry_after > 1 for each in named)
    assert len(provider.asked) == 5


def test_writes_spend_from_the_same_limit(new_worker, provider, connected, runtime):
    there = new_worker({"google_per_minute_and_user": 4})
    ada = connected()
    put_work(there, "w", [DeleteEvent(ada, "primary", "event")])
    run_drain(there, "w", writes.perform, seconds=5)
    asked = len(provider.asked)
    (reply,) = read(there, "f", [ada], seconds=2)
    assert reply.failed.reason is Reason.RATE_LIMITED
    assert len(provider.asked) == asked


@pytest.mark.parametrize(
    ("provider_name", "job", "expected"),
    [
        (GOOGLE, ReadBusy("c", ("primary",), 0, 7 * DAY), 1),
        (GOOGLE, ReadBusy("c", None, 0, 7 * DAY), 2),
        (GOOGLE, ReadBusy("c", tuple(map(str, range(51))), 0, 61 * DAY), 4),
        (MICROSOFT, ReadBusy("c", ("primary",), 0, 7 * DAY), 2),
        (MICROSOFT, ReadBusy("c", None, 0, 7 * DAY), 4),
        (GOOGLE, ReadEvents("c", ("a", "b"), 0, DAY), 2),
        (GOOGLE, ReadChanges("c", "a", 0, DAY, "token"), 2),
        (GOOGLE, DeleteEvent("c", "primary", "e"), 2),
        (MICROSOFT, CreateEvent("c", "primary", None), 2),
        (GOOGLE, FreshToken("c"), 0),
        (GOOGLE, Revoke("c"), 0),
        (GOOGLE, ExchangeCode("a"), 0),
    ],
)
def test_what_a_job_costs(provider_name, job, expected):
    assert calls(provider_name, job) == expected


def test_a_lack_of_local_resources_opens_no_circuit(new_worker):
    there = new_worker(breaker_failures=1)
    circuit = Circuit("google", Access.READS)
    reporter = AccountCallReporter(
        there.stores.provider_limits,
        circuit,
        "ada",
        egress=there.egress,
        patience=2.0,
    )
    assert reporter.failed(LocalResourceExhausted("no file left"), 0.25, given_up=True) == 0.25
    assert is_internal(
        Failed.from_error(LocalResourceExhausted("no file left", operation="calendar.freebusy.query"))
    )
    assert not there.stores.redis.keys("pause:*")


def test_a_slow_account_has_its_full_time_before_it_counts(new_worker):
    there = new_worker(breaker_failures=1)
    circuit = Circuit("google", Access.READS)
    reporter = AccountCallReporter(
        there.stores.provider_limits,
        circuit,
        "ada",
        egress=there.egress,
        patience=2.0,
    )
    slow, hurried = TimedOut("late", waited=5.0), TimedOut("late", waited=0.5)
    assert reporter.failed(slow, 0.25, given_up=False) == 0.25
    assert reporter.failed(hurried, 0.25, given_up=True) == 0.25
    assert not there.stores.redis.keys("pause:*")
    assert reporter.failed(slow, 0.25, given_up=True) is None


@pytest.fixture
def reporter(new_worker):
    """Reports the calls of an account."""
    there = new_worker(breaker_failures=2)
    circuit, limits = Circuit("google", Access.READS), there.stores.provider_limits
    return AccountCallReporter(limits, circuit, "ada", egress=there.egress, patience=2.0)


def test_the_second_call_of_a_job_begins_with_the_answer_to_the_first(reporter, monkeypatch):
    """A job that began before a circuit breaker opened can close it with a later call."""
    durations = []
    monkeypatch.setattr(reporter._limits, "answered", lambda *_, duration: durations.append(duration))
    time.sleep(0.5)
    reporter.answered()
    reporter.answered()
    assert durations[1] < 0.5 <= durations[0]


@pytest.mark.parametrize("error", [RateLimited("slow down"), Unavailable("down")])
def test_a_retry_waits_for_the_time_that_the_provider_named_to_another_call(reporter, error):
    reporter._limits.throttled(reporter._circuit, "ada", 30.0, named=True)
    assert 25 < reporter.failed(error, 0.25, given_up=False) <= 30


def test_read_finished_after_deadline_serves_the_next_request(new_worker, provider, connected):
    provider.seconds = 3.0
    there = new_worker(fanout_deadline_seconds=20.0)
    ada = connected()
    put_work(there, "f", [ReadBusy(ada, ("primary",), 0, 7 * DAY)])
    draining = threading.Thread(target=run_drain, args=(there, "f", reads.perform), kwargs={"seconds": 0.5})
    draining.start()
    while not (early := replies(there, "f")):
        time.sleep(0.005)
    assert provider.running == 1
    draining.join()
    (number, reply), *more = early
    assert (number, reply.failed.reason, reply.failed.message, more) == (
        0,
        Reason.PROVIDER_ERROR,
        "Google Calendar did not answer in time",
        [],
    )
    # There is no second reply, and the result is cached.
    assert len(replies(there, "f")) == 1
    name = f"busy:{ada}:primary:0"
    assert there.stores.redis.exists(name)


def test_jobs_that_have_not_begun_at_the_deadline_are_not_performed(new_worker, provider, mailbox):
    provider.seconds = 4.0
    found = read(new_worker(fanout_deadline_seconds=20.0), "f", [mailbox()] * 6, seconds=2.0)
    assert [reply.failed.reason for reply in found] == [Reason.PROVIDER_ERROR] * 6
    assert {reply.failed.message for reply in found} == {"Microsoft 365 did not answer in time"}
    assert len(provider.asked) == 4


def test_a_provider_that_hangs_is_left_after_a_while(new_worker, provider, connected):
    provider.seconds = 30.0
    began = time.monotonic()
    (reply,) = read(new_worker(fanout_deadline_seconds=1.0), "f", [connected()], seconds=0.3)
    assert reply.failed.reason is Reason.PROVIDER_ERROR
    assert 0.7 < time.monotonic() - began < 15


@pytest.mark.usefixtures("worker")
def test_the_next_request_is_served_from_the_cache(api, sandbox, new_user, settings, stores):
    user = new_user(sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]))
    before = set(stores.redis.scan_iter("busy:*"))
    sandbox.fault(latency_ms=int(settings.fanout_deadline_seconds * 1000) + 300, times=1)
    late = api.get(f"/users/{user}/scheduling", **MORNING)
    assert (late.status_code, late.json["error"]) == (502, "Google Calendar did not answer in time")
    give_up = time.monotonic() + 20
    while set(stores.redis.scan_iter("busy:*")) <= before:
        assert time.monotonic() < give_up, "what came late was not kept"
        time.sleep(0.02)
    assert starts(api.get(f"/users/{user}/scheduling", **MORNING)) == ["10:00", "11:00"]
    assert sandbox.requests().by_operation == {"google.freebusy.query": 1}
