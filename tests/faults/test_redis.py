"""Redis that restarts empty, that hangs, and that is slow to reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults import proxy
from tests.faults.measured import AFTER_SILENCE, AT_ONCE, BACK
from tests.faults.questions import Verdict
from tests.installation.processes import free_port
from tests.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(900)]

EMPTY = Path(__file__).with_name("empty.lua").read_text()


def test_redis_comes_back_empty(world, fault):
    redis = world.servers["redis"]
    with fault(
        world, "Redis is emptied (`FLUSHALL`)", sees=set(), may={"502", "503", Verdict.PARTIAL}
    ) as case:
        for _ in range(3):
            case.run_for(1.0)
            # Entries lost before are cached again, so that there is something to lose.
            until(lambda: redis.order("KEYS", "busy:*"), BACK)
            cached, left = redis.order("EVAL", EMPTY, 0)
            assert cached
            assert not left
        case.wait_for_recovery(within=AT_ONCE)


def test_redis_hangs(world, fault):
    redis = world.servers["redis"]
    # A request may outlast the pause. Otherwise it gets 502 if it waited for a worker's reply, and 503 if it
    # waited for Redis itself.
    with fault(
        world, "Redis hangs for six seconds (`CLIENT PAUSE`)", may={"502", "503", Verdict.PARTIAL}
    ) as case:
        redis.order("CLIENT", "PAUSE", 6000, "ALL")
        case.run_for(6.0)
        case.wait_for_recovery(within=AT_ONCE)
    assert case.witness.slowest() > 2.0, "the pause was too short for a request to notice"


@pytest.fixture
def network(world):
    """Between the installation and Redis, which is restarted for it."""
    redis, port = world.servers["redis"], world.servers["redis"].port
    redis.stop()
    redis.move()
    redis.start()
    with proxy.network(port, redis.port) as made:
        yield made
    redis.stop()
    redis.move(port)
    redis.start()


def test_redis_is_far_away(world, fault, network):
    with fault(
        world, "every answer of Redis takes 100 ms", sees=set(), may={"502", "503", Verdict.PARTIAL}
    ) as case:
        network.seconds = 0.05
        case.run_for(8.0)
        # All requests of these clients need Redis, most of them more than once.
        assert network.delayed > 100
        network.seconds = 0.0
        case.wait_for_recovery(within=AT_ONCE)


def test_connections_to_redis_are_lost_without_a_word(world, fault, network):
    with fault(
        world,
        "the network loses every connection to Redis without a word",
        sees={"503"},
        may={"502", Verdict.PARTIAL},
    ) as case:
        network.forget()
        case.wait_for_recovery(within=AFTER_SILENCE)
        assert network.dropped


@pytest.fixture
def lossy(world):
    """A network between the workers and Redis, for which the workers are restarted."""
    made, port = world.installation, free_port()
    world.repair()
    with proxy.network(port, world.servers["redis"].port) as between:
        for worker in ("worker1", "worker2"):
            made.stop(worker)
            made.start(worker, ALMANAC_REDIS_URL=f"redis://127.0.0.1:{port}/0")
        yield between
        for worker in ("worker1", "worker2"):
            made.stop(worker)
            made.start(worker)


def test_the_network_between_workers_and_redis_loses_packets(world, fault, lossy):
    what = "the network between workers and Redis loses 5 % of all packets, which are sent again after 200 ms"
    with fault(world, what, sees=set(), may={"502", Verdict.PARTIAL}) as case:
        lossy.loss = 0.05
        case.run_for(10.0)
        until(lambda: lossy.repeated > 50, BACK)
        lossy.loss = 0.0
        case.wait_for_recovery(within=AT_ONCE)
