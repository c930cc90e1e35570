"""A worker that cannot reach a provider detects it, reports it, and leaves its work to other workers."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from kombu.exceptions import OperationalError

from providers.errors import NoAnswer
from providers.events import Changes, Draft, Moment
from store.coordination.heartbeats import WORKERS
from store.coordination.provider_limits import Access, Circuit
from store.coordination.single_flight import SharedRead, lock_key
from store.security.grant_tokens import TokenOwner
from tests.faults import proxy
from tests.installation.processes import free_port
from tests.waiting import until
from tests.workers.conftest import DAY, put_work, replies, run_drain
from tests.workers.delegated import delegate
from workers.consumers import Consumers
from workers.egress import QUIET_SECONDS, Attempt, Egress
from workers.execution import reads, writes
from workers.fanout import steps
from workers.fanout.codec import Packed, elements, read_digest, work_list
from workers.fanout.work import FanoutRequest
from workers.jobs import CreateEvent, ReadBusy, ReadEvents, UpdateEvent
from workers.queues import Queue
from workers.runtime import Runtime

pytestmark = pytest.mark.slow

HERE, THERE = "here@host", "there@host"


@pytest.fixture
def way(provider):
    """The network between one worker and the providers."""
    with proxy.network(free_port(), urlsplit(provider.url).port) as made:
        yield made


@pytest.fixture
def announced():
    """Have a worker send heartbeats and watch its egress, until the test ends."""
    made = []

    def announce(runtime, name):
        made.append(runtime)
        runtime.start_heartbeat(name)
        runtime.stores.flusher.start()
        return runtime

    yield announce
    for each in made:
        each.stop()


@pytest.fixture
def here(new_worker, way, announced):
    """A worker whose connection to the providers the test can cut."""
    url = f"http://127.0.0.1:{way.port}"
    settings = new_worker(breaker_failures=1, breaker_accounts=1).settings
    hosts = replace(
        settings.providers,
        google_api_url=url,
        google_token_url=url,
        microsoft_graph_url=f"{url}/v1.0",
        microsoft_login_url=url,
    )
    made = Runtime(replace(settings, providers=hosts))
    made.consumed = []
    made.consume = made.consumed.append
    yield announced(made, HERE)
    made.stop()
    made.pool.close()
    made.stores.close()


@pytest.fixture
def there(new_worker, announced):
    """Another worker, which reaches the providers."""
    return announced(new_worker(), THERE)


def suspect(runtime):
    """Cause a probe of both providers: record a call without a response."""
    for provider in ("google", "microsoft"):
        runtime.egress.failed(provider, NoAnswer("planted"))


def cut_off(runtime):
    """Wait until a worker has detected that it cannot reach the providers."""
    suspect(runtime)
    until(lambda: runtime.egress.unreachable == ["google", "microsoft"])


def busy(connection, calendar="primary"):
    return ReadBusy(connection, (calendar,), 0, 7 * DAY)


def failures(runtime):
    """The failures of the replies, with whether they say that another worker may reach the provider."""
    return [(reply.failed, reply.failed and reply.failed.elsewhere) for _, reply in replies(runtime, "f")]


@pytest.mark.parametrize("cut", ["hang", "refuse"])
def test_unreachable_provider_and_its_recovery_are_detected(here, there, way, cut):
    presence = here.stores.heartbeats
    getattr(way, cut)()
    cut_off(here)
    until(lambda: here.egress.isolated("google"))
    until(lambda: presence.live_processes().isolated() == {HERE: ["google", "microsoft"]})
    way.forward()
    until(lambda: not here.egress.unreachable)
    until(lambda: presence.live_processes().isolated() == {})


def test_the_stored_heartbeat_is_the_newest_when_two_threads_send_one(here, monkeypatch):
    presence, send = here.stores.heartbeats, here.stores.heartbeats.record_worker
    first_is_sent, release = threading.Event(), threading.Event()

    def record_worker(name, **state):
        if not first_is_sent.is_set():
            first_is_sent.set()
            release.wait(20)
        send(name, **state)

    def notice(provider):
        route = here.egress._routes[provider]
        route.probed(answered=False)
        here.egress._publish()

    monkeypatch.setattr(presence, "record_worker", record_worker)
    threads = [threading.Thread(target=notice, args=(provider,)) for provider in ("google", "microsoft")]
    threads[0].start()
    first_is_sent.wait(20)
    threads[1].start()
    until(lambda: len(here.egress.unreachable) == 2)
    # Time in which the second heartbeat would overtake the first.
    time.sleep(0.2)
    release.set()
    for thread in threads:
        thread.join()
    assert presence.live_processes().unreachable == {HERE: {"google", "microsoft"}}


def test_hanging_calls_start_a_probe_and_answered_ones_do_not():
    probed = []
    egress = Egress(None, {"google": ()}, lambda: None, probe=lambda provider: not probed.append(provider))
    with egress.performing("google", Attempt()):
        until(lambda: probed, meanwhile=lambda: egress.probe_if_due("google"))
        # The probe was answered, so the provider is slow for this call alone.
        egress.probe_if_due("google")
    assert (probed, egress.unreachable) == (["google"], [])
    with egress.performing("google", Attempt()):
        end = time.monotonic() + 2 * QUIET_SECONDS
        while time.monotonic() < end:
            egress.answered("google")
            egress.probe_if_due("google")
            time.sleep(QUIET_SECONDS / 20)
    assert probed == ["google"]


def test_an_isolated_worker_takes_no_work_until_it_is_back(here, there, way):
    way.refuse()
    cut_off(here)
    until(lambda: here.consumed == [False])
    assert not here.egress.consuming
    # Further checks change nothing.
    time.sleep(1.0)
    assert here.consumed == [False]
    way.forward()
    until(lambda: here.consumed == [False, True])


def test_an_isolated_worker_finds_out_which_other_providers_it_cannot_reach(here, there, way):
    """It takes no jobs that would show it."""
    way.refuse()
    here.egress.failed("google", NoAnswer("planted"))
    until(lambda: here.egress.unreachable == ["google", "microsoft"])


def test_consumers_are_cancelled_again_when_the_broker_was_down(here, there, way):
    broken = [OperationalError("planted")]

    def consume(wanted):
        if broken:
            raise broken.pop()
        here.consumed.append(wanted)

    here.consume = consume
    way.refuse()
    cut_off(here)
    until(lambda: here.consumed == [False])


def test_workers_that_are_cut_off_from_different_providers_go_on(here, way):
    """If each stopped, no worker would take reads any more."""
    presence = here.stores.heartbeats
    presence.record_worker(THERE, used=0, places=64, unreachable=["microsoft"])
    here.egress._hosts["microsoft"] = ()
    way.refuse()
    for _ in range(3):
        here.egress.failed("google", NoAnswer("planted"))
        time.sleep(0.5)
        presence.record_worker(THERE, used=0, places=64, unreachable=["microsoft"])
    until(lambda: here.egress.isolated("google"))
    time.sleep(0.6)
    assert here.consumed == []


def test_when_no_worker_reaches_a_provider_all_go_on(here, way):
    presence = here.stores.heartbeats

    def there_reports(*unreachable):
        presence.record_worker(THERE, used=0, places=64, unreachable=unreachable)

    way.refuse()
    cut_off(here)
    until(lambda: here.egress.isolated("google"), meanwhile=there_reports)
    until(lambda: here.consumed == [False], meanwhile=there_reports)
    there_reports("google")
    until(lambda: not here.egress.isolated("google"), meanwhile=lambda: there_reports("google"))
    until(lambda: here.consumed == [False, True], meanwhile=lambda: there_reports("google"))
    assert here.egress.isolated("microsoft")
    assert presence.live_processes().isolated() == {HERE: ["microsoft"]}


def test_a_worker_alone_fails_as_before(here, way, connected):
    way.refuse()
    cut_off(here)
    put_work(here, "f", [busy(connected())])
    run_drain(here, "f", reads.perform, seconds=8.0)
    ((_, reply),) = replies(here, "f")
    assert (reply.failed.message, reply.failed.elsewhere) == ("Google Calendar could not be reached", False)
    circuit = Circuit("google", Access.READS)
    assert here.stores.provider_limits.states([circuit])[circuit].open
    assert here.consumed == []


def test_workers_of_an_earlier_release_do_not_count_as_reaching(here):
    """It is not known whether they do."""
    seconds, _ = here.stores.redis.time()
    here.stores.redis.hset(WORKERS, THERE, f"{seconds}:0:64")
    here.egress._routes["google"].probed(answered=False)
    assert THERE in here.stores.heartbeats.live_processes().workers
    assert not here.egress.isolated("google")


def test_an_isolated_worker_leaves_jobs_before_it_begins_them(here, there, way, connected, provider):
    way.refuse()
    cut_off(here)
    until(lambda: here.egress.isolated("google"))
    connection = connected()
    put_work(here, "f", [busy(connection, f"calendar-{n}") for n in range(40)])
    called = []
    terms = here.stores.single_flight.terms(1, 1, None)
    run_drain(here, "f", lambda *_: called.append(1), seconds=8.0, terms=terms)
    assert not called
    assert [elsewhere for _, elsewhere in failures(here)] == [True] * 40
    # No job waits for the locks, and the failure answers no other request.
    assert not here.stores.redis.keys("read-*")


@pytest.mark.parametrize("job", [busy, lambda each: ReadEvents(each, ("primary",), 0, DAY)])
def test_a_read_that_was_not_sent_is_left(here, there, way, connected, job):
    way.refuse()
    put_work(here, "f", [job(connected())])
    run_drain(here, "f", reads.perform, seconds=8.0)
    assert [elsewhere for _, elsewhere in failures(here)] == [True]
    # The failure of a single worker does not count for the circuit breaker.
    assert not here.stores.redis.keys("pause:*")


def test_a_write_is_left_only_when_nothing_was_sent(here, there, way, connected):
    way.refuse()
    connection = connected()
    when = Moment(1_796_288_400_000, "UTC")
    draft = Draft(Changes(subject="New", start=when, end=when), "0" * 64, "0" * 64)
    jobs = [
        CreateEvent(connection, "primary", draft),
        UpdateEvent(connection, "primary", "e", Changes(subject="New")),
    ]
    put_work(here, "f", jobs)
    both = threading.Barrier(2)

    def perform(runtime, job, credentials, deadline):
        # Neither finds out before the other has begun.
        both.wait(20)
        if isinstance(job, UpdateEvent):
            # The event was read before the connection was cut.
            runtime.egress.answered("google")
        return writes.perform(runtime, job, credentials, deadline)

    run_drain(here, "f", perform, seconds=8.0)
    (_, created), (_, updated) = replies(here, "f")
    assert created.failed.elsewhere
    assert (updated.failed.message, updated.failed.elsewhere) == (
        "Google Calendar could not be reached",
        False,
    )


@pytest.fixture
def members(sandbox, here, unique):
    """Three members of an organization grant, whose token is cached."""
    domain = sandbox.domain("google", "example.com", [f"m{n}@example.com" for n in range(3)])
    of = delegate(here, domain, [f"m{n}@example.com" for n in range(3)], unique("org"))
    here.stores.grant_tokens.save(TokenOwner(of.grant.id), "token", 3600)
    return of


def test_a_hanging_read_is_left_when_the_worker_is_isolated(here, there, way, connected):
    way.hang()
    connection = connected()
    put_work(here, "f", [busy(connection)])
    request = FanoutRequest("f", time.monotonic() + 8.0, here.stores.single_flight.terms(1, 1, None))
    steps.run(here, request, reads.perform, 1)
    until(lambda: replies(here, "f"))
    assert [elsewhere for _, elsewhere in failures(here)] == [True]
    # Another worker may read. It has the job under the same name.
    until(lambda: not here.stores.redis.keys("read-*"))
    # The read still hangs.
    assert here.pool.used
    lock = lock_key(SharedRead(connection, read_digest(busy(connection))))
    here.stores.redis.set(lock, "1 generation f:0")
    until(lambda: not here.pool.used)
    run_drain(here, "nothing", reads.perform)
    assert here.stores.redis.exists(lock)
    assert len(replies(here, "f")) == 1
    assert not here.stores.redis.keys("pause:*")


@pytest.mark.parametrize("cut", ["hang", "refuse"])
def test_a_bundle_is_left_whole(here, there, way, members, cut):
    getattr(way, cut)()
    here.stores.redis.rpush(work_list("f"), *elements(map(Packed, range(3), members.jobs())))
    run_drain(here, "f", reads.perform, seconds=8.0)
    assert [elsewhere for _, elsewhere in failures(here)] == [True] * 3
    assert not here.stores.redis.keys("pause:*")


@pytest.mark.usefixtures("worker")
def test_a_running_worker_cancels_its_consumers_and_adds_them_again(app):
    celery = app.extensions["almanac"].celery
    (name,) = celery.control.inspect(timeout=5, limit=1).active_queues()
    consumers = Consumers(celery, name)

    def consumed():
        found = celery.control.inspect(timeout=5, limit=1).active_queues()[name]
        return {each["name"] for each in found}

    consumers.consume(False)
    try:
        until(lambda: consumed() == set(Queue) - {Queue.READS, Queue.WRITES})
    finally:
        consumers.consume(True)
    until(lambda: consumed() == set(Queue))
