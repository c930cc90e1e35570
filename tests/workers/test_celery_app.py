"""The Celery settings that the design needs are in force; Celery ignores unknown settings silently."""

from __future__ import annotations

import pytest
from celery.app.defaults import NAMESPACES, flatten
from kombu.exceptions import OperationalError

from app.server import commands
from app.services import EXTENSION
from workers.celery_app import RECONNECT_SECONDS
from workers.process import create_worker
from workers.queues import DRAIN, MAX_WEBHOOK_ENDPOINTS, Queue

TASKS = {
    "reads.drain": Queue.READS,
    "writes.drain": Queue.WRITES,
    "upkeep.renew_tokens": Queue.UPKEEP,
    "upkeep.purge_holds": Queue.UPKEEP,
    "upkeep.purge_audit_records": Queue.UPKEEP,
    "upkeep.purge_idempotency_keys": Queue.UPKEEP,
    "upkeep.purge_webhook_deliveries": Queue.UPKEEP,
    "webhooks.deliver": Queue.WEBHOOKS,
    "webhooks.sweep": Queue.WEBHOOKS,
    "upkeep.open_channels": Queue.UPKEEP,
    "upkeep.keep_channels": Queue.UPKEEP,
    "upkeep.follow_events": Queue.UPKEEP,
    "upkeep.check_accounts": Queue.UPKEEP,
    "upkeep.check_identities": Queue.UPKEEP,
}


@pytest.fixture
def celery(apart):
    celery = create_worker(apart)
    celery.finalize()
    yield celery
    celery.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accept_content", ["json"]),
        ("worker_prefetch_multiplier", 1),
        ("task_acks_late", False),
        ("task_publish_retry", False),
    ],
)
def test_a_setting_is_in_force(celery, name, value):
    assert celery.conf[name] == value


def test_no_setting_of_ours_is_unknown_to_celery(celery):
    known = dict(flatten(NAMESPACES))
    ours = set(celery.conf.changes) - {"deprecated_settings"}
    assert ours
    assert not ours - set(known)


def test_the_tasks_are_those_and_on_their_queues(celery):
    ours = {name: task for name, task in celery.tasks.items() if not name.startswith("celery.")}
    routes = {name: celery.amqp.router.route({}, name)["queue"].name for name in ours}
    assert routes == TASKS
    assert all(task.ignore_result for task in ours.values())
    assert {queue: TASKS[name] for queue, name in DRAIN.items()} == {queue: queue for queue in DRAIN}


def test_the_worker_runs_threads_and_more_tasks_than_webhooks_may_hold(settings):
    command = commands.worker(settings, "w")
    # Tasks wait for I/O: in a prefork pool a small request would wait behind a large one.
    assert command[command.index("--pool") + 1] == "threads"
    assert int(command[command.index("--concurrency") + 1]) >= MAX_WEBHOOK_ENDPOINTS + 16


def test_what_beat_sends_exists_and_expires_with_its_next_round(celery):
    entries = celery.conf.beat_schedule.values()
    assert {entry["task"] for entry in entries} <= set(TASKS)
    for entry in entries:
        assert "queue" not in entry["options"]
        assert entry["options"]["expires"] <= entry["schedule"]


@pytest.mark.usefixtures("worker")
def test_the_running_worker_has_the_tasks(app):
    inspected = app.extensions[EXTENSION].celery.control.inspect(timeout=5, limit=1)
    (registered,) = inspected.registered().values()
    assert set(TASKS) <= set(registered)
    (queues,) = inspected.active_queues().values()
    assert {queue["name"] for queue in queues} == set(Queue)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "amqp://127.0.0.1:1//"])
def test_a_lost_broker_is_tried_again_with_short_pauses(celery, monkeypatch, url):
    monkeypatch.setattr("kombu.utils.functional.sleep", lambda seconds: None)
    pauses = []

    with celery.connection_for_read(url) as connection, pytest.raises(OperationalError):
        # As a worker calls it once the broker is lost.
        connection.ensure_connection(lambda error, pause: pauses.append(pause), 20, callback=lambda: None)

    assert pauses == [RECONNECT_SECONDS] * 20
