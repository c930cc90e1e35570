"""A worker that is alive and cannot reach the providers, or is slow, beside two healthy workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.server import commands
from app.server.supervisor import sandbox_environment
from tests.faults import proxy
from tests.faults.measured import AT_ONCE, BACK
from tests.faults.questions import Verdict
from tests.installation.processes import free_port
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

LATE = {"502", Verdict.PARTIAL}
THIRD = "worker3"

# Seconds after which a worker that cannot reach the providers must be noticed, and the time looked at then.
NOTICED = 10.0
LOOK = 12.0


@contextmanager
def third_worker(world, **environment):
    """A third worker, with variables of its own."""
    made = world.installation
    world.repair()
    made.commands[THIRD] = commands.worker(made.settings, THIRD)
    made.start(THIRD, **environment)
    try:
        until(lambda: any(name.startswith(THIRD) for name in world.present().workers), BACK)
        yield
    finally:
        del made.commands[THIRD]
        made.stop(THIRD)


@pytest.fixture
def way(world):
    """The way of a third worker to the providers."""
    beyond = urlsplit(world.sandbox.url).port
    with (
        proxy.network(free_port(), beyond) as made,
        third_worker(world, **sandbox_environment(f"http://127.0.0.1:{made.port}")),
    ):
        yield made


def isolated(world):
    """The providers from which the third worker is isolated, as the heartbeats say."""
    return {
        provider
        for worker, providers in world.present().isolated().items()
        if worker.startswith(THIRD)
        for provider in providers
    }


def troubles(case, since):
    """The answers to requests sent after a moment that were not right."""
    return [each for each in case.witness.seen if each.sent > since and each.outcome != Verdict.RIGHT]


def no_request_fails(world, case):
    """After ten seconds every request is answered right, although the third worker takes part."""
    case.run_for(NOTICED)
    until(lambda: isolated(world) == {"google", "microsoft"}, BACK)
    since = time.monotonic()
    case.run_for(LOOK)
    assert isolated(world) == {"google", "microsoft"}
    assert not troubles(case, since), troubles(case, since)


@pytest.mark.parametrize("how", ["hang", "refuse"])
def test_a_worker_has_no_way_to_the_providers(world, fault, way, how):
    words = {
        "hang": "connections to the providers hang for one of three workers, then work again",
        "refuse": "connections to the providers are refused to one of three workers, then work again",
    }
    with fault(world, words[how], sees=set(), may=LATE) as case:
        until(lambda: way.carried, BACK)
        getattr(way, how)()
        no_request_fails(world, case)
        way.forward()
        carried = way.carried
        until(lambda: not isolated(world), BACK)
        # It reads again, more than its probe does.
        until(lambda: way.carried > carried + 20, BACK)
        case.wait_for_recovery(within=AT_ONCE)


def test_the_resolver_of_a_worker_fails(world, fault):
    what = "one of three workers resolves no host name"
    nowhere = sandbox_environment(f"http://provider.invalid:{free_port()}")
    with fault(world, what, sees=set(), may=LATE) as case, third_worker(world, **nowhere):
        no_request_fails(world, case)
        case.wait_for_recovery(within=AT_ONCE)


def processor_seconds(pid):
    """For how long a process has run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def a_tenth_of_the_speed(pid):
    """A process that runs for 20 of every 200 milliseconds."""
    over = threading.Event()

    def pace():
        while not over.wait(0.02):
            os.kill(pid, signal.SIGSTOP)
            over.wait(0.18)
            os.kill(pid, signal.SIGCONT)

    pacing = threading.Thread(target=pace)
    pacing.start()
    try:
        yield
    finally:
        over.set()
        pacing.join()


def test_a_worker_runs_at_a_tenth_of_the_speed(world, fault):
    what = "one of three workers runs at a tenth of the speed (stopped for nine tenths of the time)"
    with fault(world, what, sees=set(), may=LATE) as case, third_worker(world):
        pid = world.installation.parts[THIRD].pid
        with a_tenth_of_the_speed(pid):
            case.run_for(NOTICED)
            since, done = time.monotonic(), processor_seconds(pid)
            case.run_for(LOOK)
            assert not troubles(case, since), troubles(case, since)
            # It takes part in the work.
            assert processor_seconds(pid) > done
        case.wait_for_recovery(within=AT_ONCE)
