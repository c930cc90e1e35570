"""Web processes that are killed, and a server that gets SIGTERM while it serves requests."""

from __future__ import annotations

import os
import signal

import pytest

from tests.faults.installation import children
from tests.faults.measured import AFTER_A_START, AT_ONCE
from tests.faults.witness import CUT_OFF, REFUSED

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_a_web_process_is_killed(world, fault):
    what = "one of two web processes is killed, three times"
    with fault(world, what, sees={CUT_OFF}, may={REFUSED}) as case:
        # Requests, writes among them, take long enough to be in progress.
        world.sandbox.fault(latency_ms=200)
        for _ in range(3):
            case.run_for(1.5)
            os.kill(children(world.installation.parts["web"].pid)[0], signal.SIGKILL)
        world.sandbox.clear_faults()
        case.wait_for_recovery(within=AT_ONCE)


def test_the_web_server_is_killed(world, fault):
    what = "the whole web server is killed, then started"
    with fault(world, what, sees={CUT_OFF, REFUSED}, may={"502", "503"}) as case:
        world.sandbox.fault(latency_ms=200)
        case.run_for(1.5)
        processes = children(world.installation.parts["web"].pid)
        world.installation.kill("web")
        for each in processes:
            os.kill(each, signal.SIGKILL)
        case.run_for(1.0)
        world.sandbox.clear_faults()
        world.installation.start("web")
        case.wait_for_recovery(within=AFTER_A_START)


def test_the_web_server_ends_in_its_own_time(world, fault):
    """Accepted requests are answered; later ones are refused a connection."""
    what = "the web server gets SIGTERM, then is started again"
    with fault(world, what, sees={REFUSED}, may={"502", "503"}) as case:
        world.sandbox.fault(latency_ms=300)
        case.run_for(1.5)
        world.installation.stop("web")
        world.sandbox.clear_faults()
        world.installation.start("web")
        case.wait_for_recovery(within=AFTER_A_START)
