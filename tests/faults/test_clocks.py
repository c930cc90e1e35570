"""Clocks that jump, and clocks of two hosts that differ: the workers' clock is not that of web."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.measured import AT_ONCE, BACK
from tests.faults.questions import Verdict
from tests.waiting import until
from workers.fanout.codec import numbered, unpack_reply

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

WORKERS = ("worker1", "worker2")

# Holds a ``sitecustomize``, which Python runs before the worker. libfaketime does not work here: for each
# reading of any clock it takes one lock of the whole process and reads its file. When the threads of a busy
# machine queue for that lock, a wait of ten milliseconds takes seconds.
CLOCK = Path(__file__).parent / "clock"


@pytest.fixture
def clock(world, tmp_path):
    """A file with the offset of the workers' wall clock in seconds. Other clocks stay."""
    offset = tmp_path / "offset"
    offset.write_text("0")
    world.repair()
    restart(world, PYTHONPATH=str(CLOCK), TESTS_CLOCK_OFFSET=str(offset))
    yield offset
    restart(world)


def restart(world, **environment):
    for worker in WORKERS:
        world.installation.stop(worker)
        world.installation.start(worker, **environment)


def skews(world):
    """By how many seconds the workers' latest reads are in the future, by the clock of Redis."""
    redis = world.installation.stores.redis
    seconds, micros = redis.time()
    bodies = [redis.hget(key, "body") for key in redis.keys("read-result:*")]
    replies = [unpack_reply(numbered(0, each))[1] for each in bodies if each is not None]
    return [each.read_at / 1000 - (seconds + micros / 1e6) for each in replies if each.whole()]


def test_the_clock_of_workers_jumps_ahead(world, fault, clock):
    what = "the workers' clock jumps an hour ahead, then back"
    with fault(world, what, sees={"502", Verdict.PARTIAL}, may={"409"}) as case:
        clock.write_text("3600")
        case.run_for(6.0)
        case.until_seen()
        clock.write_text("0")
        case.wait_for_recovery(within=AT_ONCE)


def test_the_clock_of_workers_jumps_back(world, fault, clock):
    what = "the workers' clock jumps an hour back, and stays there"
    with fault(world, what, sees=set(), may={"502", Verdict.PARTIAL}) as case:
        clock.write_text("-3600")
        until(lambda: any(-3700 < each < -3599 for each in skews(world)), BACK)
        case.run_for(3.0)
        case.wait_for_recovery(within=AT_ONCE)


def test_the_clock_of_workers_is_a_second_ahead(world, fault, clock):
    what = "the workers' clock is a second ahead of that of web"
    with fault(world, what, sees=set(), may={"502", Verdict.PARTIAL}) as case:
        clock.write_text("1")
        # With a clock that agrees with Redis's, no read is in the future.
        until(lambda: any(0.3 < each <= 1.1 for each in skews(world)), BACK)
        case.run_for(3.0)
        case.wait_for_recovery(within=AT_ONCE)
