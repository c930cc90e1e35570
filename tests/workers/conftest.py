"""Fixtures: an installation for the test session, with its own Redis and database and without workers."""

from __future__ import annotations

import secrets
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from providers.base import Read
from providers.sandbox.client import SandboxAccount
from scheduling.intervals import Intervals
from store.config import embedded_redis
from store.config.settings import Settings
from store.coordination.single_flight import ReadTerms, SingleFlight
from store.sql.models import Channel, OAuthConnection, WebhookEndpoint
from store.sql.queries import connection_rows, connections, webhook_events, webhooks
from store.sql.queries.connection_rows import Credentials
from store.sql.queries.webhook_events import WebhookEvent
from tests import people
from tests.conftest import settings_of
from tests.databases import opened as opened_database
from tests.installation.processes import running_redis
from tests.receiver import Receiver
from tests.waiting import until
from tests.workers.fake_provider import Provider, providing
from workers.celery_app import Almanac, create_celery
from workers.fanout.client import CoalescingPolicy, Fanout
from workers.fanout.codec import pack_job, reply_list, unpack_reply, work_list
from workers.fanout.pool import StepPool
from workers.fanout.reports import Report
from workers.fanout.steps import Perform, Steps
from workers.fanout.work import FanoutRequest
from workers.jobs import Job, ReadBusy, Reply
from workers.queues import TERMS, Queue
from workers.runtime import Runtime

DAY = 86_400_000


@pytest.fixture(scope="session")
def apart(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings of an installation with a running Redis and no workers."""
    settings = settings_of(environment | {"ALMANAC_DATA_DIR": str(tmp_path_factory.mktemp("apart"))})
    with running_redis(settings.data_dir, settings.redis_socket):
        with opened_database(settings.database_url) as database:
            database.upgrade()
        yield settings


def start_redis(settings: Settings) -> subprocess.Popen[bytes]:
    """The embedded Redis of these settings."""
    return embedded_redis.start(Path(settings.data_dir), settings.redis_socket)


@pytest.fixture
def runtime(apart: Settings) -> Iterator[Runtime]:
    """A runtime with four threads and a spare one, and an empty Redis."""
    runtime = Runtime(apart)
    runtime.__dict__["pool"] = StepPool(4, runtime.stores)
    runtime.stores.redis.flushall()
    yield runtime
    runtime.pool.close()
    runtime.stores.database.close()
    runtime.stores.redis.close()


@pytest.fixture
def connected(runtime: Runtime, unique: Callable[[str], str]) -> Callable[..., str]:
    """Store a connection, of a sandbox account or of an invented one; returns its id."""

    def make(account: SandboxAccount | None = None, **changed: Any) -> str:
        stored = replace(account or people.INVENTED, **changed)
        with runtime.stores.database.writing() as session:
            user = people.add_user(session, unique("user"))
            row = people.add_connection(session, runtime.stores.keyring, user, stored)
            if account is not None:
                people.identify(session, row.id, account)
            else:
                address = f"{row.id}@example.com"
                connections.identify(session, row.id, main_calendar_id=address, mailbox=address)
            return row.id

    return make


@pytest.fixture
def row(runtime: Runtime) -> Callable[[str], OAuthConnection | None]:
    """A connection as it is stored now."""

    def find(connection: str) -> OAuthConnection | None:
        with runtime.stores.database.reading() as session:
            return connection_rows.sealed(session, [connection]).get(connection)

    return find


@pytest.fixture
def opened(runtime: Runtime, row: Callable[[str], OAuthConnection]) -> Callable[[str], Credentials]:
    """A connection with its tokens."""
    return lambda connection: connection_rows.open_credentials(row(connection), runtime.stores.keyring)


def busy_jobs(connection: str, count: int) -> list[Job]:
    """Jobs with different calendars."""
    return [ReadBusy(connection, (f"calendar-{n}",), 0, 7 * DAY) for n in range(count)]


def read_one(runtime: Runtime, job: Job, credentials: Credentials, deadline: float) -> Reply:
    """Reply with one busy period for every calendar, whose end depends on the calendar."""
    assert isinstance(job, ReadBusy)
    outcomes = {name: Read(Intervals.of([(0, period_end(name))])) for name in job.calendars or ()}
    return Reply(read_at=time.time_ns() // 1_000_000, outcomes=outcomes)


def period_end(calendar: str) -> int:
    return int(calendar.removeprefix("calendar-")) + 1


def put_work(runtime: Runtime, fanout: str, jobs: Sequence[Job]) -> None:
    """Put jobs on a fan-out's list, as the web tier does."""
    packed = [pack_job(*numbered) for numbered in enumerate(jobs)]
    runtime.stores.redis.rpush(work_list(fanout), *packed)


def run_drain(
    runtime: Runtime,
    fanout: str,
    perform: Perform,
    *,
    seconds: float = 5.0,
    terms: ReadTerms | None = None,
    share: int = 32,
) -> Steps:
    """Perform the jobs on a fan-out's list as one task does, until all have ended."""
    request = FanoutRequest(fanout, time.monotonic() + seconds, terms)
    steps = Steps(runtime, request, perform)
    steps.start(share)
    while steps.busy:
        time.sleep(0.002)
    # Reports after the replies are under way in the pipeline of the first of two further reports.
    for _ in range(2):
        name = f"reported:{secrets.token_hex(8)}"
        runtime.pool.reporter.report(Report(name, replies=[b"-"]))
        runtime.stores.redis.blpop([name], timeout=20)
    return steps


def replies(runtime: Runtime, fanout: str) -> list[tuple[int, Reply]]:
    """The replies to a fan-out, sorted by number of the job."""
    messages = runtime.stores.redis.lrange(reply_list(fanout), 0, -1)
    return sorted((unpack_reply(data) for data in messages), key=lambda reply: reply[0])


def all_places_free(runtime: Runtime) -> bool:
    """Whether no thread performs a job any more."""
    until(lambda: not runtime.pool.used)
    return True


class ServingThread(threading.Thread):
    """Takes one task from the broker, as a worker does, and drains with a function of the test."""

    def __init__(self, runtime: Runtime, celery: Any, perform: Perform) -> None:
        super().__init__(daemon=True)
        self._runtime, self._celery, self._perform = runtime, celery, perform
        self.message: Any = None

    def run(self) -> None:
        with self._celery.connection() as connection:
            message = connection.SimpleQueue(Queue.READS).get(timeout=5)
            message.ack()
            self.message = message
            _, arguments, _ = message.payload
            left = arguments["deadline"] - time.time()
            terms = message.headers.get(TERMS)
            run_drain(
                self._runtime,
                arguments["fanout"],
                self._perform,
                seconds=left,
                terms=None if terms is None else ReadTerms(*terms),
            )


@pytest.fixture
def reached(runtime: Runtime, receiver: Receiver) -> Runtime:
    """The runtime of an installation that providers reach."""
    runtime.settings = runtime.stores.settings = replace(runtime.settings, public_url=receiver.origin)
    with runtime.stores.database.writing() as session:
        session.execute(delete(Channel))
        session.execute(delete(WebhookEndpoint))
    return runtime


@pytest.fixture
def register(runtime: Runtime) -> Callable[..., tuple[str, str]]:
    """Register an endpoint for a URL; returns its id and its secret. There are no others."""
    with runtime.stores.database.writing() as session:
        session.execute(delete(WebhookEndpoint))

    def make(
        url: str, events: Sequence[str] = tuple(WebhookEvent), organization_id: int | None = None
    ) -> tuple[str, str]:
        with runtime.stores.database.writing() as session:
            row, secret = webhooks.create(
                session, runtime.stores.keyring, url=url, events=events, organization_id=organization_id
            )
        return row.id, secret

    return make


@pytest.fixture
def record_event(runtime: Runtime, connected: Callable[..., str]) -> Callable[..., str]:
    """Record that a grant has ended, or another event of a connection; returns the connection."""

    def make(
        event: WebhookEvent = WebhookEvent.CONNECTION_EXPIRED,
        connection: str | None = None,
        calendar: str | None = None,
    ) -> str:
        connection = connection or connected()
        with runtime.stores.database.writing() as session:
            webhook_events.record(session, event, connection, calendar_id=calendar)
        return connection

    return make


@pytest.fixture
def celery(apart: Settings) -> Iterator[Almanac]:
    """A Celery app for sending tasks, without workers."""
    celery = create_celery(apart)
    yield celery
    celery.close()


@pytest.fixture
def fanout(runtime: Runtime, celery: Almanac) -> Fanout:
    """The fan-out of an installation without workers."""
    return Fanout(celery, runtime.stores.redis, runtime.stores.single_flight, tasks=2)


@pytest.fixture
def serve(runtime: Runtime, celery: Almanac) -> Iterator[Callable[..., list[ServingThread]]]:
    """Start threads that take one task each."""
    started: list[ServingThread] = []

    def start(perform: Perform, *, tasks: int = 1, worker: Runtime = runtime) -> list[ServingThread]:
        threads = [ServingThread(worker, celery, perform) for _ in range(tasks)]
        for thread in threads:
            thread.start()
        started.extend(threads)
        return threads

    yield start
    for thread in started:
        thread.join(timeout=20)
        assert not thread.is_alive()


@pytest.fixture
def flights(runtime: Runtime) -> SingleFlight:
    """The single flights, with a long time to keep failures."""
    return SingleFlight(runtime.stores.redis, failure_seconds=30.0, keep_seconds=60.0)


@pytest.fixture
def ask(runtime: Runtime, celery: Almanac, flights: SingleFlight) -> Callable[..., list[Reply]]:
    """Gather jobs like a request that begins now."""
    fanout = Fanout(celery, runtime.stores.redis, flights, tasks=2)

    def gather(jobs: Sequence[Job], *, seconds: float = 20.0, newer_than: int | None = None) -> list[Reply]:
        began = time.time() * 1000
        return fanout.gather(
            jobs,
            queue=Queue.READS,
            deadline=time.monotonic() + seconds,
            coalescing=CoalescingPolicy(began=began, newer_than=newer_than),
        )

    return gather


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Both providers at once."""
    with providing() as provider:
        yield provider


@pytest.fixture
def new_worker(apart: Settings, runtime: Runtime, provider: Provider) -> Iterator[Callable[..., Runtime]]:
    """Make a separate worker, whose providers are ``provider``: ``new_worker(failure_ttl_seconds=1)``.

    ``clients`` are settings of the providers.
    """
    made: list[Runtime] = []

    def make(clients: Mapping[str, Any] | None = None, **changed: Any) -> Runtime:
        there = replace(
            apart.providers,
            google_api_url=provider.url,
            microsoft_graph_url=f"{provider.url}/v1.0",
            **(clients or {}),
        )
        made.append(Runtime(replace(apart, providers=there, **changed)))
        made[-1].__dict__["pool"] = StepPool(64, made[-1].stores)
        return made[-1]

    yield make
    for each in made:
        each.pool.close()
        each.stores.close()
