"""Workers that die, and workers that hang."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

# A read that is taken over by another worker may miss its deadline, and a write that nobody finishes does.
LATE = {"502", "names what it could not read"}


def test_a_worker_is_killed(world, fault):
    with fault(world, "one of two workers is killed", sees=set(), may=LATE) as case:
        # Each read takes long enough to be under way.
        world.sandbox.fault(latency_ms=150)
        case.look(2.0)
        world.installation.kill("worker1")
        case.back()


def test_every_worker_is_killed(world, fault):
    with fault(world, "no worker is left, then two are started", sees={"502"}, may=LATE) as case:
        world.sandbox.fault(latency_ms=150)
        case.look(2.0)
        for part in ("worker1", "worker2"):
            world.installation.kill(part)
        case.look(4.0)
        case.until_seen()
        for part in ("worker1", "worker2"):
            world.installation.start(part)
        case.back()


def test_a_worker_hangs(world, fault):
    with fault(world, "one of two workers hangs (SIGSTOP), then goes on", sees=set(), may=LATE) as case:
        with world.hanging("worker1"):
            case.look(6.0)
        case.back()
