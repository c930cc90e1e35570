"""The metrics for Prometheus: exact counts of all processes together, from any web process."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from app.observability.metrics import LIMITS
from tests.conftest import Api
from tests.installation.builder import installed
from tests.observability.scraping import parse, scrape
from tests.store.statements import statements
from tests.waiting import until

# Starts a whole installation, which is too slow for the default run.
pytestmark = pytest.mark.long

DAY = {"start": "2026-12-03", "end": "2026-12-04"}
EVENT = {"subject": "Planning", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}


@pytest.fixture(scope="module")
def busy(environment, tmp_path_factory, sandbox_process):
    """Two web processes, a worker and beat."""
    with installed(environment, tmp_path_factory.mktemp("busy"), web=2, beat=True) as made:
        yield made


def test_mixed_load_on_two_processes_is_counted_exactly(busy, sandbox, unique):
    people = [
        busy.user(
            unique("p"),
            sandbox.account("google", f"p{n}@example.com"),
            sandbox.account("microsoft", f"p{n}@example.org"),
        )
        for n in range(4)
    ]
    denied = busy.user(unique("denied"), sandbox.account("google", "denied@example.com"))
    sandbox.fault(email="denied@example.com", status=403, reason="forbidden")
    before = settled(busy, requests=4 * 3 + 2, group=("users", "oauth"))

    over = threading.Event()
    seen: list = []

    def watch():
        while not over.is_set():
            seen.append(scrape(busy))
            time.sleep(0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()

    def call(number):
        person = people[number % 4]
        match number % 5:
            case 0:
                return busy.get(f"/users/{person}/calendar/busy", {"Cache-Control": "no-cache"}, **DAY)
            case 1:
                return busy.call("POST", f"/users/{person}/calendar/events/google/primary", json=EVENT)
            case 2:
                return busy.get(f"/users/{denied}/scheduling", slotDuration="30", **DAY)
            case 3:
                return busy.get("/users/nobody-at-all")
            case _:
                return busy.get("/webhooks")

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(call, range(100)))
    over_by = [answer.status_code for answer in answers]
    after = settled(busy, requests=before.sum("almanac_requests_total") + 100)
    over.set()
    watcher.join()

    def more(name, **labels):
        return after.sum(name, **labels) - before.sum(name, **labels)

    assert {over_by[n] for n in range(0, 100, 5)} == {200}
    assert {over_by[n] for n in range(1, 100, 5)} == {201}
    assert {over_by[n] for n in range(3, 100, 5)} == {404}
    assert more("almanac_requests_total", group="busy", status="2xx") == 20
    assert more("almanac_requests_total", group="events", status="2xx") == 20
    assert more("almanac_requests_total", group="scheduling", status="4xx") == 20
    assert more("almanac_requests_total", group="users", status="4xx") == 20
    assert more("almanac_requests_total", group="webhooks", status="2xx") == 20
    assert more("almanac_requests_total") == 100
    assert more("almanac_request_seconds_count") == 100
    assert more("almanac_request_seconds_bucket", le="+Inf") == 100
    assert more("almanac_provider_writes_total", provider="google") == 20
    assert more("almanac_provider_writes_seconds_count", provider="google") == 20
    assert more("almanac_provider_writes_total", provider="microsoft") == 0
    # Every read has failed, and nothing else has; each job was sent to a worker or followed another.
    reads = more("almanac_provider_reads_total")
    failed = more("almanac_provider_failures_total", provider="google", reason="accessDenied")
    assert more("almanac_provider_failures_total") == failed > 0
    jobs = {how: more("almanac_fanout_jobs_total", how=how) for how in ("asked", "followed")}
    assert 0 < reads == jobs["asked"] - jobs["followed"] - 20
    assert more("almanac_fanout_jobs_late_total") == 0
    assert more("almanac_cache_calendars_total", result="miss") > 0
    # The total is more than zero and less than the sum of the times that the client measured.
    assert 0 < more("almanac_request_seconds_sum") < sum(a.elapsed.total_seconds() for a in answers)

    assert len(seen) > 5
    for earlier, later in zip([before, *seen], [*seen, after], strict=True):
        assert earlier.counters <= later.counters
        assert all(later.samples[each] >= earlier.samples[each] for each in earlier.counters)


def settled(made, *, requests, group=None):
    """A scrape once ``requests`` requests are counted, and the workers' jobs for them."""

    def counted(each):
        groups = [{"group": name} for name in group or ()] or [{}]
        return sum(each.sum("almanac_requests_total", **labels) for labels in groups)

    def enough():
        found = scrape(made)
        # Each process flushes all its counts at once; workers flush at other times than the web tier.
        done = found.sum("almanac_provider_reads_total") + found.sum("almanac_provider_writes_total")
        asked, followed = (found.sum("almanac_fanout_jobs_total", how=how) for how in ("asked", "followed"))
        return counted(found) >= requests and done + followed == asked and found

    return until(enough)


def test_histograms_are_cumulative_with_bounds_of_the_counters(busy):
    busy.get("/users")
    found = until(
        lambda: (each := scrape(busy))("almanac_request_seconds_count", group="users", status="2xx") and each
    )

    labels = {"group": "users", "status": "2xx"}
    buckets = [found("almanac_request_seconds_bucket", le=limit, **labels) for limit in LIMITS]
    assert LIMITS == [
        "0.001",
        "0.002",
        "0.005",
        "0.01",
        "0.02",
        "0.05",
        "0.1",
        "0.2",
        "0.5",
        "1.0",
        "2.0",
        "5.0",
        "10.0",
        "+Inf",
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == found("almanac_request_seconds_count", **labels)
    assert found("almanac_requests_total", **labels) == buckets[-1]


def test_live_processes_and_queue_lengths_are_reported(busy, sandbox, unique):
    user = busy.user(
        unique("told"),
        sandbox.account("google", "t@example.com"),
        sandbox.account("microsoft", "t@example.org"),
    )
    found = until(lambda: (each := scrape(busy))("almanac_up", part="beat") and each)

    for part in ("redis", "database", "broker", "worker", "beat"):
        assert found("almanac_up", part=part) == 1, part
    assert found("almanac_workers") == 1
    (name,) = (dict(labels)["worker"] for each, labels in found.samples if each == "almanac_worker_places")
    assert name.startswith("worker1@")
    assert found("almanac_worker_places", worker=name) == busy.settings.reads_in_flight
    assert found("almanac_worker_places_used", worker=name) == 0
    for provider in ("google", "microsoft"):
        assert found("almanac_worker_isolated", worker=name, provider=provider) == 0
    assert found("almanac_connections", provider="google", alive="true") >= 1
    assert found("almanac_grants", provider="microsoft", alive="false") == 0
    assert found("almanac_queue_depth", queue="reads") == 0
    assert found("almanac_webhook_deliveries_waiting") == 0
    assert found.sum("almanac_build_info") == 1

    hook = busy.call("POST", "/webhooks", json={"url": "http://127.0.0.1:1/nobody"})
    assert hook.status_code == 201
    sandbox.revoke("t@example.com")
    dead = found("almanac_connections", provider="google", alive="false")
    busy.get(f"/users/{user}/calendar/busy", {"Cache-Control": "no-cache"}, **DAY)

    def ended():
        each = scrape(busy)
        return each("almanac_connections", provider="google", alive="false") == dead + 1 and each

    assert until(ended)("almanac_webhook_deliveries_waiting") == 1
    busy.call("DELETE", f"/webhooks/{hook.json()['data']['id']}")


def test_accounts_whose_last_read_failed_are_counted(busy, sandbox, unique):
    user = busy.user(unique("refused"), sandbox.account("microsoft", "refused@example.org"))
    sandbox.fault(email="refused@example.org", status=403)

    def failing():
        return scrape(busy).sum("almanac_accounts_failing", provider="microsoft", reason="accessDenied")

    def read():
        busy.get(f"/users/{user}/calendar/busy", {"Cache-Control": "no-cache"}, **DAY)

    assert failing() == 0
    read()
    until(lambda: failing() == 1)
    sandbox.clear_faults()
    read()
    until(lambda: failing() == 0)


def test_holds_are_counted_until_they_are_released(busy, sandbox, unique):
    user = busy.user(unique("held"), sandbox.account("google", "held@example.com"))
    start = datetime.now(UTC) + timedelta(days=1)
    wanted = {"users": [user], "start": start.isoformat(), "end": (start + timedelta(hours=1)).isoformat()}
    assert scrape(busy)("almanac_holds_active") == 0
    assert scrape(busy)("almanac_quota_used", quota="heldUsers") == 0

    held = busy.call("POST", "/holds", json=wanted)

    assert held.status_code == 201, held.text
    assert scrape(busy)("almanac_holds_active") == 1
    assert scrape(busy)("almanac_quota_used", quota="heldUsers") == 1
    assert scrape(busy)("almanac_quota_limit", quota="heldUsers") == 1000
    busy.call("DELETE", f"/holds/{held.json()['data']['id']}")
    assert scrape(busy)("almanac_holds_active") == 0


def test_prometheus_gets_either_format(busy):
    plain = busy.session.get(f"{busy.url}/metrics", timeout=30)
    assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"

    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
    open_ = busy.session.get(f"{busy.url}/metrics", headers={"Accept": accept}, timeout=30)
    assert open_.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {each.name for each in text_string_to_metric_families(open_.text)}
    assert families == {name.removesuffix("_total") for name in parse(plain.text).kinds}


def test_names_and_helps_are_as_prometheus_recommends(busy):
    found = scrape(busy)

    for name, kind in found.kinds.items():
        assert name.startswith("almanac_")
        assert found.helps[name]
        if kind == "counter":
            assert (
                f"{name.removesuffix('_total')}_total" in found.names or name == "almanac_provider_failures"
            )
        if kind == "histogram":
            assert name.endswith("_seconds")


def test_scrape_takes_five_statements_and_no_provider_call(app, database, api, new_user, sandbox):
    new_user(sandbox.account("google", "s@example.com"))
    sandbox.forget_requests()
    wired = app.extensions["almanac"]
    with statements(wired.stores.database) as (_, sent):
        assert app.test_client().get("/metrics").status_code == 200
    assert len(sent) == 5
    assert sandbox.requests().total == 0


def test_the_token_is_required_when_one_is_set(new_app, api):
    caller = Api(new_app(metrics_token="planted-token").test_client(), api.key).client

    for header in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {api.key}"},
        {"Authorization": "Basic planted-token"},
        {"Authorization": "Bearer pl\u00e4nted"},
    ):
        answer = caller.get("/metrics", headers=header)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "planted" not in answer.text
    assert caller.get("/metrics", headers={"Authorization": "Bearer planted-token"}).status_code == 200


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("10.0.0.5", {}, 403),
        ("2001:db8::1", {}, 403),
        ("", {}, 403),
        # A proxy on this machine connects from loopback, but forwards requests of other machines.
        *(
            ("127.0.0.1", {name: "127.0.0.1"}, 403)
            for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via")
        ),
    ],
)
@pytest.mark.parametrize("trusted", [0, 1])
def test_without_a_token_only_this_machine_is_answered(new_app, address, headers, status, trusted):
    """Behind a declared proxy, the address comes from a header, in which clients can claim loopback."""
    client = new_app(trusted_proxies=trusted).test_client()

    answer = client.get("/metrics", headers=headers, environ_overrides={"REMOTE_ADDR": address})

    assert answer.status_code == status
    if status == 403:
        assert "ALMANAC_METRICS_TOKEN" in answer.json["error"]
        assert "almanac_" not in answer.text
    with_token = new_app(trusted_proxies=trusted, metrics_token="planted-token").test_client()
    bearer = {"Authorization": "Bearer planted-token", **headers}
    assert (
        with_token.get("/metrics", headers=bearer, environ_overrides={"REMOTE_ADDR": address}).status_code
        == 200
    )


def test_without_a_broker_the_other_metrics_are_there(new_app, app):
    nowhere = "redis://127.0.0.1:1/0"

    found = parse(new_app(broker_url=nowhere).test_client().get("/metrics").text)

    assert found("almanac_up", part="broker") == 0
    assert found("almanac_up", part="database") == 1
    assert found.sum("almanac_requests_total") >= 0
    assert not found.labels("almanac_queue_depth")


def test_without_a_database_the_other_metrics_are_there(new_app):
    found = parse(new_app(database_url="sqlite:////nowhere/at/all.db").test_client().get("/metrics").text)

    assert found("almanac_up", part="database") == 0
    assert found("almanac_up", part="broker") == 1
    assert found("almanac_webhook_deliveries_waiting") is None
    assert found("almanac_holds_active") is None
    assert found("almanac_grants", provider="google", alive="true") is None


def test_without_redis_there_are_no_metrics(new_app):
    answer = new_app(redis_url="redis://127.0.0.1:1/0").test_client().get("/metrics")

    assert answer.status_code == 503
    assert answer.text == "# Redis does not answer (ConnectionError)\n"
    assert answer.content_type.startswith("text/plain")
