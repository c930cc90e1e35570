"""Counters of requests, cache lookups and provider calls."""

from __future__ import annotations

import time

import pytest
import requests

from app.services import EXTENSION
from store.metrics.counters import Cache, Counts, Histogram, together
from tests.app.cached_people import MONDAYS
from tests.app.days import DAY, meeting, periods
from tests.app.routes import routes
from tests.conftest import Api
from tests.installation.processes import web_server
from tests.waiting import until

TRIES = 5
HOUR = 3_600_000


def counted(stores, app=None) -> Counts:
    """The counts of all processes so far, with those of ``app`` flushed."""
    if app is not None:
        app.extensions[EXTENSION].stores.counters.flush()
    now = time.time_ns() // 1_000_000
    return together(point.counts for point in stores.counters.points(now - HOUR, now + HOUR))


@pytest.fixture
def requests_of(app, stores):
    """The number of requests of a group and status that a call adds."""

    def count(group, status, call):
        for _ in range(TRIES):
            before = counted(stores, app)
            call()
            after = counted(stores, app)
            if after.requests().total == before.requests().total + 1:
                return after.requests(group, status).total - before.requests(group, status).total
            # A server of another test may have flushed its counts meanwhile: try again.
        return pytest.fail("a request is not counted once")

    return count


GROUP_OF = {
    "authorization": "oauth",
    "availability": "users",
    "changes": "events",
    "connections": "oauth",
    "keys": "other",
    "explain": "scheduling",
    "grants": "organizations",
    "groups": "scheduling",
    "unified": "events",
    "push": "other",
    "api-docs": "other",
    "reference": "other",
}


def test_every_route_is_counted_in_its_part_of_the_api(app, api, stores):
    for method, path, endpoint in routes(app):
        blueprint = endpoint.partition(".")[0]
        before = counted(stores, app).answers

        api.client.open(f"/v1{path}", method=method, buffered=True)

        after = counted(stores, app).answers
        # Servers of other tests flush their counts every few seconds.
        assert changed(before, after, GROUP_OF.get(blueprint, blueprint)), endpoint


def changed(before, after, group):
    return any(latency != before.get(key) for key, latency in after.items() if key[0] == group)


def test_requests_are_counted_by_their_status(api, requests_of, unique, new_app):
    assert requests_of("users", "2xx", lambda: api.get("/users", limit=1)) == 1
    assert requests_of("users", "2xx", lambda: api.post("/users", {"id": unique("ada")})) == 1
    assert requests_of("users", "4xx", lambda: api.post("/users", {})) == 1
    assert requests_of("organizations", "4xx", lambda: api.get("/organizations/nowhere")) == 1
    assert requests_of("busy", "4xx", lambda: api.get("/users/nobody/calendar/busy", **DAY)) == 1
    assert requests_of("events", "4xx", lambda: api.get("/users/nobody/calendar/events")) == 1
    assert requests_of("other", "4xx", lambda: api.get("/nothing/is/here")) == 1


def test_a_request_on_the_fast_path_is_counted(api, fast, requests_of, cached_people):
    path, query = "/users/plain-0-0/scheduling", {"start": MONDAYS[0], "end": MONDAYS[1]}
    assert api.get(path, **query).status_code == 200
    answers = []

    assert requests_of("scheduling", "2xx", lambda: answers.append(fast.get(path, **query))) == 1
    assert None not in answers


def test_a_request_without_a_valid_key_is_counted_as_well(app, requests_of):
    stranger = Api(app.test_client(), "alm_unknown")

    assert requests_of("webhooks", "4xx", lambda: stranger.get("/webhooks")) == 1


def test_a_request_that_fails_on_our_side_is_counted(new_app, api, stores, tmp_path):
    app = new_app(database_url=f"sqlite:///{tmp_path}/nowhere/at.db")
    before = counted(stores)

    assert Api(app.test_client(), api.key).get("/users").status_code == 503

    after = counted(stores, app)
    assert after.requests("users", "5xx").total == before.requests("users", "5xx").total + 1


def test_paths_outside_the_api_are_not_counted(app, api, stores):
    before = counted(stores, app)

    assert api.client.get("/healthz").status_code == 200

    assert counted(stores, app) == before


def test_durations_of_requests_are_counted_in_milliseconds(app, api, stores):
    for _ in range(TRIES):
        before = counted(stores, app).requests("users")
        began = time.perf_counter()
        for _ in range(20):
            api.get("/users", limit=1)
        took = (time.perf_counter() - began) * 1000
        after = counted(stores, app).requests("users")
        if after.total == before.total + 20:
            break
        # A server of another test has flushed its counts meanwhile: try again.

    mine = Histogram(tuple(now - then for now, then in zip(after.buckets, before.buckets, strict=True)))
    assert mine.total == 20
    # The end of a bucket is at most two and a half times its start.
    assert 0 < mine.percentile(50) <= max(1, 2.5 * took)


@pytest.fixture
def cache_of(app, stores):
    """The cache counts that a call adds."""

    def found(call, of=None):
        before = counted(stores, of or app).cache
        call()
        after = counted(stores, of or app).cache
        return Cache(after.hits - before.hits, after.stale - before.stale, after.misses - before.misses)

    return found


def busy(api, user, headers=None, **query):
    return periods(api.get(f"/users/{user}/calendar/busy", headers, **DAY, **query))


@pytest.mark.usefixtures("worker")
def test_a_miss_is_counted_and_then_a_hit(sandbox, api, new_user, cache_of):
    user = new_user(sandbox.account("google", "ada@example.com", events=[meeting("09:00", "10:00")]))

    assert cache_of(lambda: busy(api, user)) == Cache(misses=1)
    assert cache_of(lambda: busy(api, user)) == Cache(hits=1)
    assert cache_of(lambda: busy(api, user, {"Cache-Control": "no-cache"})) == Cache(misses=1)


@pytest.mark.usefixtures("worker")
def test_cache_hits_are_by_calendar_and_misses_by_account(sandbox, api, user_with_two_accounts, cache_of):
    def everything():
        busy(api, user_with_two_accounts, primaryOnly="false")

    assert cache_of(everything) == Cache(misses=2)
    assert cache_of(everything) == Cache(hits=4)


@pytest.mark.usefixtures("worker")
def test_a_stale_answer_is_counted_as_stale(sandbox, api, new_user, new_app, cache_of):
    app = new_app(busy_ttl_seconds=0.3, busy_stale_seconds=60.0)
    lenient = Api(app.test_client(), api.key)
    user = new_user(sandbox.account("google", "ada@example.com"))

    assert cache_of(lambda: busy(lenient, user), app) == Cache(misses=1)
    time.sleep(0.31)
    assert cache_of(lambda: busy(lenient, user), app) == Cache(stale=1)


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_read_its_failure_and_a_write_are_counted_by_their_provider(sandbox, api, new_user, stores):
    google = sandbox.account("google", "ada@example.com")
    user = new_user(google, sandbox.account("microsoft", "ada@example.org"))
    sandbox.fault(provider="microsoft", status=403, reason="ErrorAccessDenied")
    before = counted(stores)
    api.get(f"/users/{user}/calendar/busy", **DAY)
    event = {"start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z", "subject": "Planning"}
    made = api.post(f"/users/{user}/calendar/events/google/primary", event)
    assert made.status_code == 201, made.json

    def more():
        after = counted(stores)
        return (
            after.reads("google").total > before.reads("google").total
            and after.reads("microsoft").total > before.reads("microsoft").total
            and after.writes("google").total > before.writes("google").total
            and after.failures("microsoft").get("accessDenied", 0)
            > before.failures("microsoft").get("accessDenied", 0)
        )

    until(more)


@pytest.mark.long
@pytest.mark.usefixtures("worker")
def test_web_processes_flush_counts_periodically_and_at_exit(environment, api, stores):
    before = counted(stores)
    with web_server(environment, count=2) as port, requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {api.key}"
        for _ in range(10):
            answer = session.get(f"http://127.0.0.1:{port}/v1/webhooks", timeout=10)
            assert answer.status_code == 200

    # Most likely the processes ended before their first periodic flush; no count may be lost.
    after = counted(stores)
    assert after.requests("webhooks", "2xx").total == before.requests("webhooks", "2xx").total + 10
