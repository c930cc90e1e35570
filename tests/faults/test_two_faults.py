"""Faults of two parts at once."""

from __future__ import annotations

import pytest

from tests.faults.measured import AFTER_A_PAUSE, AT_ONCE, BACK
from tests.faults.questions import Verdict
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]


def test_redis_is_restarted_while_a_provider_is_down(world, fault):
    redis = world.servers["redis"]
    what = "Redis is killed and started while Google is down (503), which answers again later"
    with fault(world, what, sees={"503", Verdict.PARTIAL}, may={"502", "409", "422", "429"}) as case:
        world.sandbox.fault(provider="google", status=503)
        case.run_for(3.0)
        redis.stop()
        case.run_for(3.0)
        redis.start()
        failed = world.failed_calls()
        # The workers ask Google again, as their circuit breakers were lost with Redis.
        until(lambda: world.failed_calls() > failed, BACK)
        case.until_seen()
        world.sandbox.clear_faults()
        case.wait_for_recovery(within=AFTER_A_PAUSE)


def test_a_worker_is_killed_while_postgresql_restarts(world, fault):
    database = world.servers["database"]
    what = "one of two workers is killed while PostgreSQL is down for three seconds"
    with fault(world, what, sees={"503"}, may={"502", Verdict.PARTIAL}) as case:
        world.sandbox.fault(latency_ms=150)
        case.run_for(1.0)
        database.stop()
        world.installation.kill("worker1")
        case.run_for(3.0)
        case.until_seen()
        database.start()
        case.wait_for_recovery(within=AT_ONCE)
