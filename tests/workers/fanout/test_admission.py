"""Admission limits the waiting requests; a refused request sends nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from store.coordination import shares
from store.coordination.heartbeats import AWAY_SECONDS, WORKERS
from tests.workers.conftest import busy_jobs
from workers.fanout.admission import (
    MAX_PER_PROCESS,
    Admission,
    NoWorker,
    QueueFull,
    TenantQueueFull,
    admitted_key,
    most_waiting,
)
from workers.fanout.client import Fanout
from workers.queues import Queue

READS, WRITES = Queue.READS, Queue.WRITES
FEW = {READS: 3, WRITES: 1}


@pytest.fixture(autouse=True)
def _of_no_tenant():
    """Earlier tests of this process have sent requests of organizations."""
    shares.set_tenant(shares.UNBOUND)


@pytest.fixture
def redis(runtime):
    return runtime.stores.redis


@pytest.fixture
def admission(redis) -> Admission:
    return Admission(redis, FEW, share=100)


def enter(admission: Admission, name: str, queue: Queue = READS) -> bool:
    """Whether the request was admitted."""
    try:
        admission.enter(queue, name, 60)
    except QueueFull:
        return False
    return True


def leave(redis, admission, name: str) -> None:
    with redis.pipeline() as pipe:
        admission.leave(pipe, READS, name)
        pipe.execute()


def test_so_many_wait_and_no_more(redis, admission):
    assert [enter(admission, str(number)) for number in range(5)] == [True, True, True, False, False]
    leave(redis, admission, "1")
    assert [enter(admission, str(number)) for number in range(5, 7)] == [True, False]


def test_reads_and_writes_have_rooms_of_their_own(admission):
    while enter(admission, f"{time.monotonic_ns()}"):
        pass
    assert enter(admission, "a write", WRITES)
    assert not enter(admission, "another", WRITES)


def test_of_many_at_once_no_more_get_in(admission):
    with ThreadPoolExecutor(12) as threads:
        entered = list(threads.map(lambda n: enter(admission, str(n)), range(60)))
    assert sum(entered) == 3


def test_a_check_of_admission_takes_no_place(admission):
    for _ in range(5):
        admission.check(READS)
    while enter(admission, f"{time.monotonic_ns()}"):
        pass
    with pytest.raises(QueueFull):
        admission.check(READS)


@pytest.mark.slow
def test_the_place_of_a_process_that_was_killed_comes_free(redis, admission, apart):
    waiter = (
        "import sys, time; from redis import Redis; from workers.queues import Queue;"
        "from workers.fanout.admission import Admission;"
        "redis = Redis(unix_socket_path=sys.argv[1]); room = Admission(redis, {Queue.READS: 3}, share=100);"
        "[room.enter(Queue.READS, str(n), 2.0) for n in range(2)]; print('in', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", waiter, str(apart.redis_socket)]
    # One request keeps waiting, so that the set itself does not expire.
    assert enter(admission, "alive")
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        os.kill(process.pid, signal.SIGKILL)
    give_up = time.monotonic() + 30
    while not enter(admission, "another"):
        assert time.monotonic() < give_up, "the lease of a dead process does not expire"
        time.sleep(0.1)
    assert set(redis.zrange(admitted_key(READS), 0, -1)) == {b"0:alive", b"0:another"}


def test_no_key_stays_when_all_requests_have_left(redis, admission):
    enter(admission, "one")
    leave(redis, admission, "one")
    assert redis.keys("waiting:*") == []


def heartbeat_of(redis, ago: float, places: int) -> str:
    return f"{redis.time()[0] - ago}:0:{places}"


@pytest.mark.parametrize(
    ("workers", "refused"),
    [
        # No worker has ever been seen: Redis may be new.
        ({}, False),
        ({"here": (1, 64)}, False),
        ({"here": (1, 64), "gone": (4000, 64)}, False),
        # It may be about to come back.
        ({"silent": (AWAY_SECONDS - 10, 64)}, False),
        ({"left": (AWAY_SECONDS - 10, 0)}, False),
        ({"silent": (AWAY_SECONDS + 5, 64)}, True),
        ({"left": (AWAY_SECONDS + 5, 0), "gone": (4000, 64)}, True),
    ],
    ids=str,
)
def test_no_request_waits_for_workers_that_are_gone(redis, admission, workers, refused):
    for name, heartbeat in workers.items():
        redis.hset(WORKERS, name, heartbeat_of(redis, *heartbeat))
    if refused:
        with pytest.raises(NoWorker):
            admission.enter(READS, "one", 1)
        assert redis.keys("waiting:*") == []
    else:
        admission.enter(READS, "one", 1)


def test_a_worker_that_leaves_and_is_back_is_there(runtime, admission, redis):
    presence = runtime.stores.heartbeats
    presence.record_worker("worker", used=0, places=64)
    presence.record_worker_exit("worker")
    assert presence.live_processes().workers == {}
    admission.enter(READS, "one", 1)
    redis.hset(WORKERS, "worker", heartbeat_of(redis, AWAY_SECONDS + 5, 0))
    with pytest.raises(NoWorker):
        admission.enter(READS, "two", 1)
    presence.record_worker("worker", used=0, places=64)
    admission.enter(READS, "two", 1)


def test_a_process_keeps_threads_for_others(admission):
    entered = threading.Barrier(MAX_PER_PROCESS[WRITES] + 1)
    over = threading.Event()

    def wait() -> None:
        with admission.admit_in_process(WRITES):
            entered.wait(timeout=30)
            over.wait(timeout=30)

    with ThreadPoolExecutor(MAX_PER_PROCESS[WRITES]) as threads:
        waiting = [threads.submit(wait) for _ in range(MAX_PER_PROCESS[WRITES])]
        entered.wait(timeout=30)
        with pytest.raises(QueueFull), admission.admit_in_process(WRITES):
            pass
        with admission.admit_in_process(READS):
            pass
        over.set()
        for each in waiting:
            each.result()
    with admission.admit_in_process(WRITES):
        pass


@pytest.fixture
def as_tenant(monkeypatch):
    """Work for a tenant from now on: ``as_tenant(7)``."""
    yield shares.current.set
    shares.set_tenant(shares.UNBOUND)


def test_a_tenant_takes_its_share_of_all_places_and_leaves_the_others(redis, as_tenant):
    admission = Admission(redis, {READS: 8, WRITES: 8}, share=50)
    as_tenant(1)
    for number in range(4):
        admission.enter(READS, str(number), 60)
    for refused in (lambda: admission.enter(READS, "one more", 60), lambda: admission.check(READS)):
        with pytest.raises(TenantQueueFull):
            refused()
    # Its writes have a share of their own.
    admission.enter(WRITES, "a write", 60)
    as_tenant(11)
    for number in range(4):
        admission.enter(READS, str(number), 60)
    assert most_waiting(redis, READS) == 4
    as_tenant(2)
    with pytest.raises(QueueFull):
        admission.enter(READS, "no place is left", 60)
    as_tenant(1)
    leave(redis, admission, "0")
    admission.enter(READS, "one more", 60)


def test_a_tenant_takes_its_share_of_the_places_of_a_process(admission, redis, as_tenant):
    half = Admission(redis, FEW, share=50)
    with ExitStack() as entered:
        for tenant in (1, 2):
            as_tenant(tenant)
            for _ in range(MAX_PER_PROCESS[WRITES] // 2):
                entered.enter_context(half.admit_in_process(WRITES))
            with pytest.raises(TenantQueueFull), half.admit_in_process(WRITES):
                pass
        as_tenant(3)
        with pytest.raises(QueueFull), half.admit_in_process(WRITES):
            pass


@pytest.mark.parametrize("share", [50, 100])
def test_an_organization_has_places_of_its_own_number(redis, as_tenant, share):
    admission = Admission(redis, {READS: 8, WRITES: 8}, share=share)
    for tenant, own in ((1, 2), (2, 6)):
        shares.set_tenant(tenant, {"waitingReads": own})
        for number in range(own):
            admission.enter(READS, str(number), 60)
        with pytest.raises(TenantQueueFull):
            admission.enter(READS, "one more", 60)
    as_tenant(3)
    with pytest.raises(QueueFull):
        admission.enter(READS, "no place is left", 60)


@pytest.mark.parametrize(
    ("own", "places"),
    [
        (5, 5),
        # Not less than every other tenant has.
        (40, 32),
        # As large a part of the process as of all.
        (96, 48),
        (1000, 64),
    ],
)
def test_an_organization_has_its_own_part_of_a_process(redis, as_tenant, own, places):
    admission = Admission(redis, {READS: 256, WRITES: 128}, share=50)
    shares.set_tenant(1, {"waitingWrites": own})
    with ExitStack() as entered:
        for _ in range(places):
            entered.enter_context(admission.admit_in_process(WRITES))
        with pytest.raises((TenantQueueFull, QueueFull)), admission.admit_in_process(WRITES):
            pass
    # Without a value of its own it has the share of all again.
    as_tenant(1)
    shares.set_tenant(1)
    with ExitStack() as entered:
        for _ in range(32):
            entered.enter_context(admission.admit_in_process(WRITES))
        with pytest.raises(TenantQueueFull), admission.admit_in_process(WRITES):
            pass


@pytest.fixture
def narrow(runtime, celery, admission) -> Fanout:
    """A fan-out with room for three."""
    return Fanout(celery, runtime.stores.redis, runtime.stores.single_flight, tasks=2, admission=admission)


def test_a_refused_request_has_sent_nothing(narrow, admission, redis, connected):
    while enter(admission, f"{time.monotonic_ns()}"):
        pass
    before = set(redis.keys("*"))

    with pytest.raises(QueueFull):
        narrow.gather(busy_jobs(connected(), 2), queue=READS, deadline=time.monotonic() + 30)

    assert set(redis.keys("*")) - before <= {b"directory"}


def test_jobs_that_finish_begun_work_are_admitted_when_full(narrow, admission, redis, connected):
    while enter(admission, f"{time.monotonic_ns()}"):
        pass
    (reply,) = narrow.gather(
        busy_jobs(connected(), 1), queue=READS, deadline=time.monotonic() + 0.2, bypass_admission=True
    )
    # There is no worker, but the job was sent.
    assert reply.failed is not None
    assert redis.llen(READS) == 1


def test_a_waiting_request_releases_its_place(narrow, redis, connected):
    for _ in range(5):
        narrow.gather(busy_jobs(connected(), 1), queue=READS, deadline=time.monotonic() + 0.1)
    assert redis.keys("waiting:*") == []
