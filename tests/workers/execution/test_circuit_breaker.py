"""Circuit breakers: no worker calls a provider that does not answer. Over sockets, with the sandbox."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from providers.base import Read
from providers.errors import Reason, Unavailable
from providers.events import Changes, Draft
from providers.sandbox.client import Sandbox
from store.config.settings import Settings
from store.coordination.provider_limits import Access, Circuit, CircuitState, record_key
from tests.workers.coalesced_reads import read, was_read
from tests.workers.conftest import DAY, put_work, replies, run_drain
from workers.execution import reads, writes
from workers.fanout.pool import StepPool
from workers.jobs import CreateEvent, Job, ReadBusy, Reply
from workers.runtime import Runtime
from workers.upkeep.rate_limit import acquire

pytestmark = pytest.mark.slow

ACCOUNTS, FAILURES = 4, 2
DEAD = pytest.mark.parametrize("fault", [{"status": 503}, {"body": "reset"}, {"body": "html"}], ids=str)
BOTH = pytest.mark.parametrize("provider_name", ["google", "microsoft"])
OTHER = {"google": "microsoft", "microsoft": "google"}
TITLES = {"google": "Google Calendar", "microsoft": "Microsoft 365"}


@pytest.fixture
def at_sandbox(apart: Settings, runtime: Runtime) -> Iterator[Callable[..., Runtime]]:
    """Make a separate worker with circuit breakers."""
    made: list[Runtime] = []

    def make(**changed: Any) -> Runtime:
        chosen = {
            "breaker_accounts": ACCOUNTS,
            "breaker_failures": 0,
            "breaker_pause_seconds": 60.0,
        } | changed
        made.append(Runtime(replace(apart, **chosen)))
        made[-1].__dict__["pool"] = StepPool(64, made[-1].stores)
        return made[-1]

    yield make
    for each in made:
        each.stores.close()


@pytest.fixture
def people(sandbox: Sandbox, connected: Callable[..., str]) -> Callable[..., list[str]]:
    """Connect ``count`` accounts of a provider, named after ``name``; returns the connections."""

    def make(provider: str, count: int, name: str = "p") -> list[str]:
        return [connected(sandbox.account(provider, f"{name}{n}@example.com")) for n in range(count)]

    return make


def not_called(reply: Reply) -> bool:
    return reply.failed is not None and not reply.failed.called


def pause_passes(runtime: Runtime, provider: str, account: str | None = None) -> None:
    """End the pause of a provider's open circuit, or of one account's."""
    circuit = Circuit(provider, Access.READS)
    key = record_key(circuit, account)
    until, *rest = runtime.stores.redis.get(key).decode().split()
    assert float(until)
    runtime.stores.redis.set(key, " ".join(["0", *rest]), keepttl=True)


def state(runtime: Runtime, provider: str, access: Access = Access.READS) -> CircuitState:
    circuit = Circuit(provider, access)
    return runtime.stores.provider_limits.states([circuit])[circuit]


def calls(sandbox: Sandbox, provider: str) -> int:
    """HTTP requests to a provider: each read here makes one."""
    operation = {"google": "google.freebusy.query", "microsoft": "microsoft.batch"}[provider]
    return sandbox.requests().by_operation.get(operation, 0)


@DEAD
@BOTH
def test_a_circuit_that_one_worker_opens_is_open_for_the_other(
    at_sandbox, sandbox, people, provider_name, fault
):
    first, second = at_sandbox(), at_sandbox()
    dead, well = people(provider_name, ACCOUNTS), people(OTHER[provider_name], 2)
    sandbox.fault(provider=provider_name, **fault)
    found = read(first, "one", dead + well)
    assert [was_read(each) for each in found] == [False] * ACCOUNTS + [True] * 2
    assert not any(not_called(each) for each in found)
    assert state(second, provider_name).open
    assert not state(second, OTHER[provider_name]).open

    sandbox.forget_requests()
    found = read(second, "two", dead + well, week=1)
    assert [not_called(each) for each in found] == [True] * ACCOUNTS + [False] * 2
    assert all(was_read(each) for each in found[ACCOUNTS:])
    assert calls(sandbox, provider_name) == 0
    failed = found[0].failed
    assert (failed.reason, failed.message) == (
        Reason.PROVIDER_ERROR,
        f"{TITLES[provider_name]} has not been answering; try again in a moment",
    )
    assert 50 < failed.retry_after <= 60


def test_a_provider_that_hangs_costs_one_deadline_and_no_second(at_sandbox, sandbox, people):
    there = at_sandbox(fanout_deadline_seconds=1.0)
    dead = people("google", ACCOUNTS)
    sandbox.fault(provider="google", latency_ms=60_000)
    assert not any(map(not_called, read(there, "one", dead, seconds=1.0)))
    assert state(there, "google").open
    sandbox.forget_requests()
    assert all(map(not_called, read(there, "two", dead, seconds=60.0, week=1)))
    assert sandbox.requests().total == 0


@BOTH
def test_hanging_accounts_do_not_open_circuit_of_healthy_ones(at_sandbox, sandbox, people, provider_name):
    there = at_sandbox(fanout_deadline_seconds=3.0)
    hanging, well = people(provider_name, 2 * ACCOUNTS, name="hung"), people(provider_name, 3)
    for n in range(len(hanging)):
        sandbox.fault(email=f"hung{n}@example.com", latency_ms=60_000)
    for n in range(len(well)):
        # Long enough for all calls to begin, even on a busy machine.
        sandbox.fault(email=f"p{n}@example.com", latency_ms=700)
    for week in range(2):
        found = read(there, f"f{week}", hanging + well, seconds=3.0, week=week)
        assert [was_read(each) for each in found] == [False] * len(hanging) + [True] * len(well)
        assert not any(map(not_called, found))
    assert not state(there, provider_name).open


@DEAD
@BOTH
def test_one_probe_is_made_after_the_pause_and_recovery_closes(
    at_sandbox, sandbox, people, provider_name, fault
):
    workers = [at_sandbox(), at_sandbox()]
    dead, others = people(provider_name, ACCOUNTS), people(provider_name, 6, name="new")
    sandbox.fault(provider=provider_name, **fault)
    read(workers[0], "one", dead)
    pause_passes(workers[0], provider_name)

    sandbox.forget_requests()
    found = read(workers[0], "two", others)
    assert [not_called(each) for each in found].count(False) == 1
    # The others are refused, and the probe is not retried.
    assert calls(sandbox, provider_name) == 1
    assert all(map(not_called, read(workers[1], "three", others, week=1)))
    assert calls(sandbox, provider_name) == 1
    assert 50 < state(workers[1], provider_name).due <= 60

    sandbox.clear_faults()
    pause_passes(workers[0], provider_name)
    assert was_read(*read(workers[1], "four", others[:1], week=2))
    assert not state(workers[0], provider_name).open
    # The next fan-out is complete, including the accounts that failed before.
    assert all(map(was_read, read(workers[1], "five", dead + others, week=3)))


def test_while_a_probe_hangs_other_reads_are_refused(at_sandbox, sandbox, people, ask, serve):
    there, seconds = at_sandbox(), 10.0
    sandbox.fault(provider="google", status=503)
    read(there, "one", people("google", ACCOUNTS))
    pause_passes(there, "google")
    sandbox.clear_faults()
    sandbox.fault(provider="google", latency_ms=60_000)
    sandbox.forget_requests()
    others = people("google", 2, name="new")
    first, second = (ReadBusy(each, ("primary",), 0, 7 * DAY) for each in others)

    def timed(job: Job) -> tuple[Reply, float]:
        began = time.monotonic()
        (reply,) = ask([job], seconds=seconds)
        return reply, time.monotonic() - began

    with ThreadPoolExecutor(1) as threads:
        serve(reads.perform)
        probing = threads.submit(timed, first)
        while not calls(sandbox, "google"):
            assert not probing.done()
            time.sleep(0.01)
        serve(reads.perform)
        refused, took = timed(second)
        assert not_called(refused)
        assert took < seconds / 2
        assert refused.failed.retry_after == 1
        assert not probing.done()
        assert calls(sandbox, "google") == 1
        # The probe itself has its full time.
        assert probing.result()[0].failed.called


def test_a_probe_that_never_came_to_call_leaves_its_turn_to_the_next(at_sandbox, sandbox, people, connected):
    there = at_sandbox()
    sandbox.fault(provider="google", status=503)
    read(there, "one", people("google", ACCOUNTS))
    sandbox.clear_faults()
    pause_passes(there, "google")
    # Its token has to be refreshed first, and the provider refuses that.
    (ended,) = read(there, "two", [connected(access_token="", refresh_token=None)])
    assert ended.failed.reason is Reason.AUTHORIZATION_INVALID
    assert state(there, "google").open
    assert was_read(*read(there, "three", people("google", 1, name="new")))
    assert not state(there, "google").open


def test_upkeep_may_probe_too(at_sandbox, sandbox, people, opened):
    there = at_sandbox()
    sandbox.fault(provider="google", status=503)
    read(there, "one", people("google", ACCOUNTS))
    pause_passes(there, "google")
    other, another = people("google", 2, name="new")
    # The first probe has no result.
    with acquire(there, opened(other), 1, Access.READS, deadline=time.monotonic() + 60):
        assert state(there, "google").probed
    with acquire(there, opened(another), 1, Access.READS, deadline=time.monotonic() + 60):
        there.stores.provider_limits.answered(Circuit("google", Access.READS), another)
    assert not state(there, "google").open


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 401},
        {"status": 403},
        {"status": 404},
        {"status": 400},
        {"status": 429, "retry_after": 60},
        # Such an answer comes without delay.
        {"status": 503, "retry_after": 60},
    ],
    ids=str,
)
@BOTH
def test_a_refusal_opens_nothing(at_sandbox, sandbox, people, provider_name, fault):
    there = at_sandbox(breaker_failures=1)
    sandbox.fault(provider=provider_name, **fault)
    refused = read(there, "one", people(provider_name, ACCOUNTS))
    assert not any(map(was_read, refused))
    assert state(there, provider_name) == CircuitState()


@BOTH
def test_one_dead_mailbox_opens_only_itself(at_sandbox, sandbox, people, provider_name):
    there = at_sandbox(breaker_failures=FAILURES, breaker_accounts=2)
    dead, *well = people(provider_name, 3)
    sandbox.fault(email="p0@example.com", status=503)
    for week in range(FAILURES):
        found = read(there, f"f{week}", [dead, *well], week=week)
        assert [was_read(each) for each in found] == [False, True, True]
    sandbox.forget_requests()
    found = read(there, "last", [dead, *well], week=FAILURES)
    assert [not_called(each) for each in found] == [True, False, False]
    assert calls(sandbox, provider_name) == 2
    assert state(there, provider_name).accounts == 1
    assert not state(there, provider_name).open

    sandbox.clear_faults()
    pause_passes(there, provider_name, dead)
    assert was_read(*read(there, "mended", [dead], week=FAILURES + 1))
    assert state(there, provider_name).accounts == 0


def test_a_mailbox_that_fails_inside_batches_that_succeed_is_dead_too(at_sandbox, sandbox, people):
    there = at_sandbox(breaker_failures=FAILURES)
    (dead,) = people("microsoft", 1)
    sandbox.fault(email="p0@example.com", operation="microsoft.calendarView.list", status=503)
    sandbox.fault(email="p0@example.com", operation="microsoft.mailboxSettings.get", status=503)
    for week in range(FAILURES):
        assert not was_read(*read(there, f"f{week}", [dead], week=week))
    assert not_called(*read(there, "last", [dead], week=FAILURES))


@BOTH
def test_a_calendar_that_fails_by_itself_opens_nothing(at_sandbox, sandbox, connected, provider_name):
    there = at_sandbox(breaker_failures=1, breaker_accounts=1)
    calendars = [{"id": "main@example.com", "primary": True}, {"id": "side@example.com"}]
    account = connected(sandbox.account(provider_name, "ada@example.com", calendars=calendars))
    sandbox.fault(
        calendar_id="side@example.com",
        **({"reason": "backendError"} if provider_name == "google" else {"status": 503}),
    )
    put_work(there, "f", [ReadBusy(account, ("primary", "side@example.com"), 0, 7 * DAY)])
    run_drain(there, "f", reads.perform, seconds=10)
    ((_, reply),) = replies(there, "f")
    assert [isinstance(each, Read) for each in reply.outcomes.values()] == [True, False]
    assert not there.stores.redis.keys("pause:*")


def test_five_of_a_hundred_calls_that_fail_open_nothing(new_worker, provider, connected):
    chance = random.Random(5)
    provider.refusal = lambda: (503, {}, {}) if chance.random() < 0.05 else None
    provider.seconds = 0.01
    there = new_worker(breaker_accounts=2, breaker_failures=2)
    people = [connected() for _ in range(60)]
    for week in range(2):
        found = read(there, f"f{week}", people, seconds=60, week=week)
        assert not any(map(not_called, found))
    # Some calls failed and were retried.
    assert len(provider.asked) > 120
    assert not state(there, "google").open
    assert state(there, "google").accounts == 0


def test_writes_that_fail_shut_no_reads(at_sandbox, sandbox, people):
    there = at_sandbox(breaker_failures=FAILURES)
    dead = people("google", ACCOUNTS)
    sandbox.fault(provider="google", status=503)
    draft = Draft(Changes(subject="Planning"), "0" * 64, "1" * 64)
    for each in ("one", "two"):
        done(there, each, [CreateEvent(one, "primary", draft) for one in dead])
    assert state(there, "google", Access.WRITES).open
    sandbox.clear_faults()
    assert all(map(was_read, read(there, "busy", dead)))
    assert state(there, "google") == CircuitState()


def done(runtime: Runtime, fanout: str, jobs: list[Job]) -> list[Reply]:
    """Perform jobs of one queue in one fan-out."""
    put_work(runtime, fanout, jobs)
    perform = writes.perform if isinstance(jobs[0], CreateEvent) else reads.perform
    run_drain(runtime, fanout, perform, seconds=10)
    return [reply for _, reply in replies(runtime, fanout)]


def test_upkeep_leaves_it_alone_too(at_sandbox, sandbox, people, opened):
    there = at_sandbox()
    sandbox.fault(provider="google", status=503)
    dead = people("google", ACCOUNTS)
    read(there, "one", dead)
    with (
        pytest.raises(Unavailable, match="has not been answering") as refused,
        acquire(there, opened(dead[0]), 1, Access.READS, deadline=1e9),
    ):
        pytest.fail("it has its turn")
    assert refused.value.retry_after > 50
