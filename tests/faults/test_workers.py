"""Workers that are killed, and workers that hang."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import select

from store.sql.models import OAuthConnection
from tests.app.at_provider import INSERT
from tests.faults import truth
from tests.faults.installation import PROVIDERS
from tests.faults.measured import AFTER_A_START, AT_ONCE, BACK
from tests.faults.questions import Verdict
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

# A read that another worker takes over may miss its deadline, and an unfinished write does.
LATE = {"502", Verdict.PARTIAL}

# When no worker had a heartbeat for a while, requests are refused. A write may be made before a kill, and not
# be read back in time by the worker that is started next.
NO_WORKER = LATE | {"422", "503"}

# Longer than any request waits: no job that holds such a call finishes.
HELD = 60_000


def test_a_worker_is_killed(world, fault):
    with fault(world, "one of two workers is killed", sees=set(), may=LATE) as case:
        # Each read takes long enough to be in progress.
        world.sandbox.fault(latency_ms=150)
        until(lambda: world.is_working("worker1"), BACK)
        victim = world.installation.parts["worker1"]
        world.installation.kill("worker1")
        assert victim.returncode == -signal.SIGKILL
        case.wait_for_recovery(within=AT_ONCE)


def test_every_worker_is_killed(world, fault):
    with fault(world, "no worker is left, then two are started", sees={"502"}, may=NO_WORKER) as case:
        world.sandbox.fault(latency_ms=150)
        case.run_for(2.0)
        for part in ("worker1", "worker2"):
            world.installation.kill(part)
        case.run_for(4.0)
        case.until_seen()
        for part in ("worker1", "worker2"):
            world.installation.start(part)
        case.wait_for_recovery(within=AFTER_A_START)


def test_a_worker_hangs(world, fault):
    with fault(world, "one of two workers hangs (SIGSTOP), then resumes", sees=set(), may=LATE) as case:
        world.sandbox.fault(latency_ms=150)
        until(lambda: world.is_working("worker1"), BACK)
        with world.hanging("worker1"):
            case.run_for(6.0)
        case.wait_for_recovery(within=AT_ONCE)


@contextmanager
def killed_alone(world):
    """Until the end of the block one worker does everything; then it is killed, and two are started."""
    world.installation.stop("worker2")
    yield
    world.installation.kill("worker1")
    world.sandbox.clear_faults()
    for part in ("worker1", "worker2"):
        world.installation.start(part)


@pytest.fixture
def divided(world, unique):
    """A user with an account at each provider, busy at noon in each: the user, and the accounts."""
    user = unique("divided")
    events = [truth.body(truth.at(12))]
    accounts = [
        world.sandbox.account(each, f"{user}-{each}@example.com", events=events) for each in PROVIDERS
    ]
    return world.installation.user(user, *accounts), accounts


def connection_of(world, account):
    """The id of an account's connection."""
    with world.installation.stores.database.reading() as session:
        return session.scalars(select(OAuthConnection.id).where(OAuthConnection.email == account.email)).one()


def test_a_worker_is_killed_in_the_middle_of_a_read(world, fault, divided):
    user, (well, held) = divided
    what = "the only worker is killed while a provider holds a part of what it reads, then two are started"

    def busy():
        return world.installation.get(
            f"/users/{user}/calendar/busy", {"Cache-Control": "no-cache"}, **truth.DURING
        )

    def remembered():
        return world.servers["redis"].order("KEYS", f"busy:{connection_of(world, well)}:*")

    # The clients may or may not send requests without a worker; one waits for the held part in any case.
    with fault(world, what, sees=set(), may={"502"} | NO_WORKER) as case, ThreadPoolExecutor(1) as threads:
        with killed_alone(world):
            world.sandbox.fault(email=held.email, latency_ms=HELD)
            asked = threads.submit(busy)
            # The other part has arrived.
            until(lambda: world.failed_calls() and remembered())
            assert not asked.done()
        answer = asked.result()
        assert answer.status_code == 200, answer.text
        failed = answer.json()["failedCalendars"]
        assert [each["provider"] for each in failed] == [held.provider]
        assert not truth.left_out(answer.json()["data"], [truth.at(12)])
        case.wait_for_recovery(within=AFTER_A_START)
        answer = busy()
        assert answer.json()["failedCalendars"] == []
        assert not truth.left_out(answer.json()["data"], [truth.at(12)])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_worker_is_killed_in_the_middle_of_a_write(world, fault, provider):
    what = f"the only worker is killed once {provider.capitalize()} has made an event, then two are started"
    with fault(world, what, sees={"502"}, may=NO_WORKER) as case:
        with killed_alone(world):
            # The event is created, and the answer does not arrive.
            world.sandbox.fault(operation=INSERT[provider], latency_ms=HELD)
            until(world.failed_calls)
            made = world.subjects(case.witness.name)
            unanswered = [each for each in case.witness.writes if not each.answers]
        (path,) = (each for each in case.witness.writers if f"/{provider}/" in each)
        # The answer to a write at the other provider may be on its way.
        assert path in [each.path for each in unanswered if each.body.get("subject") in made]
        case.wait_for_recovery(within=AFTER_A_START)
