"""Readiness: the fault of each part, reported within a second even if the part hangs."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from sqlalchemy import text

from app.observability import health
from app.observability.probes import Fault, FaultKind, Probes
from app.server import commands
from app.services import EXTENSION
from store.coordination.heartbeats import BEAT
from tests.installation.builder import installed
from tests.installation.processes import running, wait_until
from tests.waiting import until
from workers import broker

pytestmark = pytest.mark.slow

NOWHERE = "redis://127.0.0.1:1/0"
LATE = "does not answer in time"


@pytest.fixture
def silence():
    """The port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def readiness(app):
    """The shortest of three durations, because other processes share this machine."""
    client = app.test_client()
    took = []
    for _ in range(3):
        began = time.monotonic()
        answer = client.get("/readyz")
        took.append(time.monotonic() - began)
    assert min(took) < 1.0, took
    return answer.status_code, answer.json


@pytest.fixture
def ticking(stores):
    """Record that beat has just ticked."""
    stores.heartbeats.record_beat()
    yield
    stores.redis.delete(BEAT)


@pytest.mark.usefixtures("worker", "ticking")
def test_when_all_parts_are_ready_there_are_no_reasons(app):
    states = dict.fromkeys(("database", "redis", "worker", "beat"), "ok")

    assert readiness(app) == (200, {"status": "ok", **states, "reasons": {}})


@pytest.mark.usefixtures("worker")
def test_without_beat_the_service_is_still_ready(app, stores):
    stores.redis.delete(BEAT)

    status, report = readiness(app)

    assert (status, report["status"], report["beat"]) == (200, "ok", "unavailable")
    assert report["reasons"] == {"beat": "has never ticked: is it running?"}


@pytest.mark.usefixtures("worker", "ticking")
def test_a_beat_that_hangs_is_reported_by_the_age_of_its_tick(app, stores):
    stores.redis.set(BEAT, time.time() - 100)

    status, report = readiness(app)

    assert (status, report["beat"]) == (200, "unavailable")
    assert report["reasons"]["beat"].startswith("last ticked 10")


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize(
    ("changed", "reasons"),
    [
        (
            {"database_url": "sqlite:////nowhere/at/all.db"},
            {"database": "does not answer (OperationalError)"},
        ),
        ({"database_url": "sqlite://"}, {"database": "lacks migrations: run `almanac db upgrade`"}),
        (
            {"database_url": "postgresql+psycopg://postgres:planted@127.0.0.1:1/none"},
            {"database": "does not answer (OperationalError)"},
        ),
        (
            {"redis_url": NOWHERE},
            {"redis": "does not answer (ConnectionError)", "beat": "does not answer (ConnectionError)"},
        ),
        ({"broker_url": NOWHERE}, {"worker": "does not answer (OperationalError)"}),
        (
            {"broker_url": "amqp://guest:planted@127.0.0.1:1//"},
            {"worker": "does not answer (OperationalError)"},
        ),
    ],
    ids=["no SQLite file", "no tables", "no PostgreSQL", "no Redis", "no Redis broker", "no RabbitMQ"],
)
@pytest.mark.usefixtures("worker")
def test_a_part_that_is_down_is_named_with_its_fault(new_app, changed, reasons):
    app = new_app(**changed)

    # On a loaded machine, a refusal may take longer than the probe's time limit.
    status, report = until(lambda: LATE not in (found := readiness(app))[1]["reasons"].values() and found)
    assert (status, report["status"]) == (503, "unavailable")
    assert report["reasons"] == reasons
    assert {part for part in ("database", "redis", "worker", "beat") if report[part] != "ok"} == set(reasons)
    assert "planted" not in f"{report}"


@pytest.mark.usefixtures("worker", "ticking")
def test_a_database_of_a_later_version_is_ready_and_named(new_app, tmp_path):
    app = new_app(database_url=f"sqlite:///{tmp_path}/later.db")
    database = app.extensions[EXTENSION].stores.database
    database.upgrade()
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    status, report = readiness(app)

    # During an upgrade the database is migrated first, while processes of this version still serve.
    assert (status, report["status"], report["database"]) == (200, "ok", "ok")
    assert (
        report["reasons"]["database"] == "has been migrated by a later version: start that version here too"
    )


@pytest.mark.usefixtures("worker", "ticking")
@pytest.mark.parametrize(
    ("setting", "url", "parts"),
    [
        ("database_url", "postgresql+psycopg://postgres@127.0.0.1:{}/none", {"database"}),
        ("redis_url", "redis://127.0.0.1:{}/0", {"redis", "beat"}),
        ("broker_url", "redis://127.0.0.1:{}/0", {"worker"}),
        ("broker_url", "amqp://guest:guest@127.0.0.1:{}//", {"worker"}),
    ],
    ids=["PostgreSQL", "Redis", "Redis broker", "RabbitMQ"],
)
def test_a_part_that_hangs_is_reported_within_a_second(new_app, silence, setting, url, parts):
    status, report = readiness(new_app(**{setting: url.format(silence)}))

    assert status == 503
    assert set(report["reasons"]) == parts
    assert all(reason.startswith("does not answer") for reason in report["reasons"].values())


@pytest.mark.long
def test_a_worker_that_hangs_or_is_gone_does_not_answer(environment, tmp_path):
    with installed(environment, tmp_path, web=1) as made:

        def ready():
            return made.session.get(f"{made.url}/readyz", timeout=10)

        worker = made.parts["worker1"]
        worker.send_signal(signal.SIGSTOP)
        try:
            answer = ready()
            assert (answer.status_code, answer.json()["worker"]) == (503, "unavailable")
            assert answer.json()["reasons"]["worker"] == "does not answer: is any running?"
        finally:
            worker.send_signal(signal.SIGCONT)
        until(lambda: ready().status_code == 200)
        made.stop("worker1")
        assert ready().json()["worker"] == "unavailable"


def test_a_worker_that_does_not_answer_in_time_is_not_called_slow(app, monkeypatch):
    monkeypatch.setattr(broker, "any_worker", lambda *_, **__: time.sleep(2))
    with app.app_context():
        fault = health.faults()["worker"]
    assert fault == Fault("does not answer: is any running?", FaultKind.UNREACHABLE)


def test_a_part_that_hangs_has_one_running_probe():
    probes, gate = Probes(), threading.Event()
    calls = []

    def hang():
        calls.append(1)
        gate.wait(10)
        return "there"

    for _ in range(5):
        assert probes.run({"slow": hang}, seconds=0.01)["slow"] == Fault(LATE, FaultKind.SLOW)
    assert len(calls) == 1
    gate.set()
    assert probes.run({"slow": hang}, seconds=10)["slow"] == "there"


def test_an_internal_error_is_in_the_log_and_not_in_the_answer(caplog):
    def broken():
        raise ValueError("planted")

    found = Probes().run({"odd": broken}, seconds=10)["odd"]

    assert found == Fault("could not be checked: see the log")
    assert "planted" in caplog.text


def test_beat_ticks_for_all_to_see(environment, settings, stores):
    stores.redis.delete(BEAT)
    with running(commands.beat(settings), environment) as beat:
        wait_until(lambda: stores.heartbeats.live_processes().beat_is_alive, [beat])
    stores.redis.delete(BEAT)


def test_liveness_ignores_parts_that_are_down(new_app):
    down = new_app(redis_url=NOWHERE, broker_url=NOWHERE, database_url="sqlite:////nowhere/at/all.db")

    assert down.test_client().get("/healthz").json == {"status": "ok"}


@pytest.mark.usefixtures("worker")
def test_a_worker_of_another_host_does_not_answer_for_this_one(app):
    services = app.extensions[EXTENSION]
    celery, settings = services.celery, services.settings

    assert broker.any_worker(celery, settings, seconds=10, host=socket.gethostname())
    assert not broker.any_worker(celery, settings, seconds=1, host="elsewhere")


def test_the_first_check_after_the_start_imports_nothing(environment):
    code = """
import sys, time
from app.wsgi import app
services = app.extensions["almanac"]
services.prepare()
assert "alembic.script" in sys.modules
before = set(sys.modules)
began = time.monotonic()
services.stores.database.migration_state()
assert not {each for each in set(sys.modules) - before if each.startswith("alembic")}
"""
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


@pytest.mark.parametrize(
    ("url", "kind"),
    [("sqlite:////nowhere/at/all.db", FaultKind.UNREACHABLE), ("sqlite://", FaultKind.OUTDATED)],
)
def test_unreachable_and_unmigrated_databases_have_different_errors(new_app, url, kind):
    with new_app(database_url=url).app_context():
        fault = health.faults()["database"]

    assert fault is not None
    assert fault.kind is kind
