"""A worker that cannot reach a provider detects it, reports it, and hands its jobs to another worker."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from kombu.exceptions import OperationalError

from providers.base import Failed
from providers.errors import NoAnswer
from providers.events import Changes, Draft, Moment
from store.coordination.circuit_breaker import CircuitKey, Family
from store.coordination.heartbeats import WORKERS
from store.security.grant_tokens import TokenOwner
from tests.faults import proxy
from tests.installation.processes import free_port
from tests.waiting import until
from tests.workers.conftest import DAY, put_work, replies
from tests.workers.delegated import delegate
from workers.egress import QUIET_SECONDS, Attempt, Egress
from workers.execution import reads, writes
from workers.failures import BROKEN
from workers.fanout.bundles import elements
from workers.fanout.codec import Packed, addresses, work_list
from workers.fanout.drain import Drain
from workers.fanout.handover import Handover, own_queue
from workers.jobs import CreateEvent, ReadBusy, ReadEvents, Reply, Revoke, UpdateEvent
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
        each.stop_heartbeat()


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
    made = announced(Runtime(replace(settings, providers=hosts)), HERE)
    yield made
    made.stop_heartbeat()
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


def others(runtime, celery, *, seconds=8.0, queue=Queue.READS):
    return Handover(celery, runtime.stores.redis, runtime.egress, queue, "f", time.time() + seconds)


def drain(runtime, celery, perform, *, seconds=8.0, queue=Queue.READS):
    handing = others(runtime, celery, seconds=seconds, queue=queue)
    Drain(runtime, "f", time.monotonic() + seconds, perform, others=handing).run()


def take_over(runtime, celery, perform):
    """Take a task from the other worker's own queue, and run it; returns its jobs."""
    with celery.connection() as connection:
        message = connection.SimpleQueue(own_queue(THERE)).get(timeout=20)
        message.ack()
        _, arguments, _ = message.payload
    handed = work_list(arguments["handed"])
    jobs = runtime.stores.redis.lrange(handed, 0, -1)
    left = arguments["deadline"] - time.time()
    Drain(runtime, arguments["fanout"], time.monotonic() + left, perform, list_name=handed).run()
    return jobs


def busy(connection, calendar="primary"):
    return ReadBusy(connection, (calendar,), 0, 7 * DAY)


def answered(runtime, count):
    answers = replies(runtime, "f")
    assert [number for number, _ in answers] == list(range(count))
    assert all(reply.whole() for _, reply in answers), answers


@pytest.mark.parametrize("cut", ["hang", "refuse"])
def test_unreachable_provider_and_its_recovery_are_detected(here, there, way, cut):
    presence = here.stores.heartbeats
    getattr(way, cut)()
    cut_off(here)
    until(here.egress.any_isolated)
    until(lambda: presence.live_processes().isolated() == {HERE: ["google", "microsoft"]})
    way.forward()
    until(lambda: not here.egress.any_isolated())
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
    with egress.performing("google", Attempt(may_hand_over=True)):
        until(lambda: probed, meanwhile=lambda: egress.probe_if_due("google"))
        # The probe was answered, so the provider is slow for this call alone.
        egress.probe_if_due("google")
    assert (probed, egress.unreachable) == (["google"], [])
    with egress.performing("google", Attempt(may_hand_over=True)):
        end = time.monotonic() + 2 * QUIET_SECONDS
        while time.monotonic() < end:
            egress.answered("google")
            egress.probe_if_due("google")
            time.sleep(QUIET_SECONDS / 20)
    assert probed == ["google"]


def test_when_no_worker_reaches_a_provider_none_is_isolated(here, way):
    presence = here.stores.heartbeats

    def there_reports(*unreachable):
        presence.record_worker(THERE, used=0, places=64, unreachable=unreachable)

    way.refuse()
    cut_off(here)
    until(lambda: here.egress.isolated("google"), meanwhile=there_reports)
    there_reports("google")
    until(lambda: not here.egress.isolated("google"))
    assert here.egress.isolated("microsoft")
    assert presence.live_processes().isolated() == {HERE: ["microsoft"]}


def test_a_worker_that_takes_no_new_tasks_gets_no_jobs_of_others(here, there, way):
    way.refuse()
    cut_off(here)
    until(lambda: here.egress.isolated("google"))
    there.deregister()
    until(lambda: here.egress.peer("google") is None)


def test_a_worker_alone_is_not_isolated_and_fails_as_before(here, way, celery, connected):
    way.refuse()
    cut_off(here)
    put_work(here, "f", [busy(connected())])
    drain(here, celery, reads.perform)
    ((_, reply),) = replies(here, "f")
    assert reply.failed.message == "Google Calendar could not be reached"
    circuit = CircuitKey("google", Family.BUSY)
    assert here.stores.circuit_breakers.states([circuit])[circuit].open


def test_a_worker_of_a_version_that_reports_no_egress_gets_no_jobs(here):
    seconds, _ = here.stores.redis.time()
    here.stores.redis.hset(WORKERS, THERE, f"{seconds}:0:64")
    assert THERE in here.stores.heartbeats.live_processes().workers
    assert here.egress.peer("google") is None


def test_an_isolated_worker_hands_jobs_on_before_it_begins_them(
    here, there, way, celery, connected, provider
):
    way.refuse()
    cut_off(here)
    until(here.egress.any_isolated)
    connection = connected()
    put_work(here, "f", [busy(connection, f"calendar-{n}") for n in range(40)])
    called = []
    drain(here, celery, lambda *_: called.append(1))
    assert called == replies(here, "f") == []
    while len(replies(here, "f")) < 40:
        take_over(there, celery, reads.perform)
    answered(there, 40)


def test_jobs_are_handed_on_although_calls_that_hang_hold_every_place(here, there, way, celery, connected):
    way.refuse()
    cut_off(here)
    until(here.egress.any_isolated)
    shares = [here.pool.share() for _ in range(2)]
    for share in shares:
        share.request(here.pool.size + 4)
    assert here.pool.used > here.pool.size
    put_work(here, "f", [busy(connected())])
    drain(here, celery, reads.perform)
    take_over(there, celery, reads.perform)
    answered(there, 1)


def test_jobs_that_the_other_worker_has_not_taken_stay_when_the_broker_fails(
    here, there, way, celery, connected, monkeypatch
):
    """The broker fails after it has sent the task, and the other worker has taken one job by then."""
    way.refuse()
    cut_off(here)
    until(here.egress.any_isolated)
    taken: list[bytes] = []

    def send_task(*_, kwargs, **__):
        if not taken:
            taken.append(here.stores.redis.lpop(work_list(kwargs["handed"])))
        raise OperationalError("planted")

    monkeypatch.setattr(celery, "send_task", send_task)
    put_work(here, "f", [busy(connected()) for _ in range(3)])

    drain(here, celery, lambda *_: Reply(failed=BROKEN))

    ((number,),) = [{to.number for to in addresses(data)} for data in taken]
    assert {each for each, _ in replies(here, "f")} == {0, 1, 2} - {number}


def test_a_read_that_was_not_sent_is_handed_over_once(here, there, way, celery, connected):
    way.refuse()
    put_work(here, "f", [busy(connected())])
    drain(here, celery, reads.perform)
    assert replies(here, "f") == []
    # The other worker cannot perform it either, and does not hand it over again.
    unsent = Failed.from_error(NoAnswer("planted", unsent=True))
    take_over(there, celery, lambda *_: Reply(failed=unsent))
    ((_, reply),) = replies(there, "f")
    assert reply.failed.message == "planted"
    # The failure of a single worker does not count for the circuit breaker.
    assert not here.stores.redis.keys("circuit:*")


def test_a_list_of_events_that_was_not_sent_is_handed_over(here, there, way, celery, connected):
    way.refuse()
    put_work(here, "f", [ReadEvents(connected(), ("primary",), 0, DAY)])
    drain(here, celery, reads.perform)
    assert replies(here, "f") == []
    take_over(there, celery, lambda *_: Reply(events={"primary": ()}))
    ((_, reply),) = replies(there, "f")
    assert reply.events == {"primary": ()}


def test_jobs_without_a_provider_stay_when_no_worker_reaches_all(here, there, way, celery):
    way.refuse()
    here.egress.failed("google", NoAnswer("planted", unsent=True))
    until(lambda: here.egress.isolated("google"))
    there.stores.heartbeats.record_worker(THERE, used=0, places=1, unreachable=["microsoft"])
    until(lambda: here.egress.peer(None) is None)
    put_work(here, "f", [Revoke("r")])
    drain(here, celery, lambda *_: Reply(), queue=Queue.WRITES)
    ((_, reply),) = replies(here, "f")
    assert reply.failed is None


def test_a_write_is_handed_over_only_when_nothing_was_sent(here, there, way, celery, connected):
    way.refuse()
    connection = connected()
    when = Moment(1_796_288_400_000, "UTC")
    draft = Draft(Changes(subject="New", start=when, end=when), "0" * 64, "0" * 64)
    jobs = [
        CreateEvent(connection, "primary", draft),
        UpdateEvent(connection, "primary", "e", Changes(subject="New")),
    ]
    put_work(here, "f", jobs)

    def second(runtime, job, credentials, deadline):
        if isinstance(job, UpdateEvent):
            # The event was read before the connection was cut.
            runtime.egress.answered("google")
        return writes.perform(runtime, job, credentials, deadline)

    drain(here, celery, second, queue=Queue.WRITES)
    ((number, reply),) = replies(here, "f")
    assert (number, reply.failed.message) == (1, "Google Calendar could not be reached")
    (message,) = take_over(there, celery, lambda *_: Reply())
    assert b"CreateEvent" in message


def test_hanging_read_is_moved_and_sends_one_reply(here, there, way, celery, connected):
    way.hang()
    connection = connected()
    put_work(here, "f", [busy(connection)])
    draining = threading.Thread(target=drain, args=(here, celery, reads.perform), kwargs={"seconds": 5.0})
    draining.start()
    until(lambda: here.pool.used)
    take_over(there, celery, reads.perform)
    answered(there, 1)
    draining.join(timeout=30)
    answered(there, 1)
    assert not here.stores.redis.keys("circuit:*")


@pytest.fixture
def members(sandbox, here, unique):
    """Three members of an organization grant, whose token is cached."""
    domain = sandbox.domain("google", "example.com", [f"m{n}@example.com" for n in range(3)])
    of = delegate(here, domain, [f"m{n}@example.com" for n in range(3)], unique("org"))
    here.stores.grant_tokens.save(TokenOwner(of.grant.id), "token", 3600)
    return of


@pytest.mark.parametrize("cut", ["before", "during"])
def test_a_bundle_is_handed_over_whole(here, there, way, celery, provider, members, cut):
    if cut == "before":
        way.hang()
        cut_off(here)
        until(lambda: here.egress.isolated("google"))
    else:
        way.refuse()
    jobs = map(Packed, range(3), members.jobs())
    here.stores.redis.rpush(work_list("f"), *elements(jobs))
    drain(here, celery, reads.perform)
    assert replies(here, "f") == []
    handed = take_over(there, celery, reads.perform)
    assert len(handed) == 1
    answered(there, 3)
    assert len(provider.asked) == 1
    assert not here.stores.redis.keys("circuit:*")


def test_a_bundle_that_hangs_continues_elsewhere(here, there, way, celery, provider, members):
    way.hang()
    here.stores.redis.rpush(work_list("f"), *elements(map(Packed, range(3), members.jobs())))
    draining = threading.Thread(target=drain, args=(here, celery, reads.perform), kwargs={"seconds": 5.0})
    draining.start()
    until(lambda: here.pool.used)
    assert len(take_over(there, celery, reads.perform)) == 1
    answered(there, 3)
    draining.join(timeout=30)
    answered(there, 3)
