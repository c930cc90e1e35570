"""Recorded events reach their endpoints, signed; unavailable endpoints get them later, gone ones never."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from standardwebhooks import WebhookVerificationError

from store.config.settings import RETRY_SECONDS
from store.sql.models import WebhookDelivery, WebhookEndpoint
from store.sql.queries import deliveries
from store.sql.queries.webhook_events import WebhookEvent
from tests.receiver import receiving
from tests.waiting import until
from workers.runtime import Runtime
from workers.webhooks import delivery as sending
from workers.webhooks import http

TOKEN = "planted-token"


@pytest.fixture
def patient(runtime) -> Runtime:
    """A runtime whose retries come hours later."""
    changed = Runtime(replace(runtime.settings, webhooks_retry_seconds=(3600.0, 7200.0)))
    changed.stores.__dict__.update(database=runtime.stores.database, redis=runtime.stores.redis)
    return changed


@pytest.fixture
def log(runtime):
    """The delivery log of an endpoint, oldest first."""

    def read(endpoint):
        with runtime.stores.database.reading() as session:
            return deliveries.page(session, endpoint)[::-1]

    return read


def statuses(rows):
    return [deliveries.status(row) for row in rows]


def test_an_event_arrives_signed_and_is_in_the_log(runtime, receiver, register, record_event, log):
    endpoint, secret = register(receiver.url)
    record_event()
    assert sending.due(runtime) == [endpoint]
    sending.deliver(runtime, endpoint)
    (received,), (row,) = receiver.received, log(endpoint)
    assert received.verified(secret) == row.payload
    assert received.headers["content-type"] == "application/json"
    assert received.id == row.id
    with pytest.raises(WebhookVerificationError):
        received.verified("whsec_" + "A" * 32)
    assert (deliveries.status(row), row.attempts, row.last_status) == ("delivered", 1, 204)
    assert sending.due(runtime) == []
    sending.deliver(runtime, endpoint)
    assert len(receiver.received) == 1


def test_an_endpoint_that_was_unavailable_gets_every_event_later(
    runtime, receiver, register, record_event, log
):
    endpoint, secret = register(receiver.url)
    receiver.down()
    for _ in range(3):
        record_event()
    for _ in range(4):
        until(lambda: sending.due(runtime) == [endpoint])
        sending.deliver(runtime, endpoint)
    rows = log(endpoint)
    assert sum(row.attempts for row in rows) >= 4
    assert statuses(rows) == ["pending"] * 3
    assert {row.last_error for row in rows} <= {"no connection", None}
    receiver.up()
    until(lambda: sending.deliver(runtime, endpoint) or statuses(log(endpoint)) == ["delivered"] * 3)
    assert sorted(each.id for each in receiver.received) == [row.id for row in rows]
    assert sorted(map(str, (each.verified(secret) for each in receiver.received))) == sorted(
        str(row.payload) for row in rows
    )
    assert {(row.last_status, row.last_error) for row in log(endpoint)} == {(204, None)}


def test_each_attempt_is_logged_with_its_duration_and_its_answer(
    patient, receiver, register, record_event, log
):
    endpoint, _ = register(receiver.url)
    record_event()
    receiver.statuses = [503]
    receiver.meanwhile = lambda _: time.sleep(0.2)
    before = datetime.now(UTC)
    sending.deliver(patient, endpoint)
    (attempt,) = deliveries.attempts(log(endpoint)[0])
    assert (attempt.status, attempt.error) == (503, "answered 503")
    assert before <= attempt.at <= datetime.now(UTC)
    assert attempt.milliseconds >= 200

    receiver.down()
    with patient.stores.database.writing() as session:
        deliveries.replay(session, endpoint, log(endpoint)[0].id)
    sending.deliver(patient, endpoint)
    last, first = deliveries.attempts(log(endpoint)[0])
    assert first == attempt
    assert (last.status, last.error) == (None, "no connection")


def test_each_attempt_has_a_new_signature_and_the_same_id(runtime, receiver, register, record_event, log):
    endpoint, secret = register(receiver.url)
    record_event()
    receiver.statuses = [500]
    sending.deliver(runtime, endpoint)
    # A signature has whole seconds.
    until(lambda: int(time.time()) > int(receiver.received[0].headers["webhook-timestamp"]))
    until(lambda: sending.deliver(runtime, endpoint) or statuses(log(endpoint)) == ["delivered"])
    first, second = receiver.received
    assert (first.id, first.body) == (second.id, second.body)
    for name in ("webhook-timestamp", "webhook-signature"):
        assert first.headers[name] != second.headers[name]
    assert first.verified(secret) == second.verified(secret)


def test_what_is_answered_badly_waits_and_the_others_are_sent(patient, receiver, register, record_event, log):
    endpoint, _ = register(receiver.url)
    for _ in range(3):
        record_event()
    receiver.statuses = [500, 302]
    sending.deliver(patient, endpoint)
    assert sorted(statuses(log(endpoint))) == ["delivered", "pending", "pending"]
    assert {row.last_error for row in log(endpoint)} == {"answered 500", "answered 302", None}
    pauses = [row.next_attempt_at - row.first_attempt_at for row in log(endpoint) if row.next_attempt_at]
    assert all(3600 <= pause.total_seconds() < 1.11 * 3600 for pause in pauses)
    assert sending.due(patient) == []


def test_unresponsive_endpoint_gets_no_more_deliveries_for_now(
    patient, receiver, register, record_event, log
):
    endpoint, _ = register(receiver.url)
    for _ in range(3):
        record_event()
    receiver.down()
    sending.deliver(patient, endpoint)
    assert sorted(row.attempts for row in log(endpoint)) == [0, 0, 1]
    assert sending.due(patient) == [endpoint]


def test_recovered_receiver_gets_pending_deliveries_at_once(
    patient, receiver, register, record_event, log, monkeypatch
):
    monkeypatch.setattr(deliveries, "MIN_PAUSE", timedelta(0))
    endpoint, _ = register(receiver.url)
    receiver.down()
    for _ in range(2):
        record_event()
        sending.deliver(patient, endpoint)
    assert sending.due(patient) == []
    receiver.up()
    record_event()
    sending.deliver(patient, endpoint)
    assert statuses(log(endpoint)) == ["delivered"] * 3


def test_410_ends_it(runtime, receiver, register, record_event, log):
    endpoint, _ = register(receiver.url)
    record_event()
    record_event()
    receiver.statuses = [410]
    sending.deliver(runtime, endpoint)
    record_event()
    sending.deliver(runtime, endpoint)
    assert len(receiver.received) == 1
    assert statuses(log(endpoint)) == ["failed", "failed"]


def test_delivery_fails_after_its_last_attempt_and_can_be_replayed(
    patient, receiver, register, record_event, log
):
    endpoint, secret = register(receiver.url)
    record_event()
    (row,) = log(endpoint)
    attempts = len(patient.settings.webhooks_retry_seconds) + 1
    receiver.statuses = [500] * attempts
    for number in range(attempts):
        assert statuses(log(endpoint)) == ["pending"], number
        _make_due(patient)
        sending.deliver(patient, endpoint)
    (given_up,) = log(endpoint)
    assert (deliveries.status(given_up), given_up.last_error) == ("failed", "answered 500")
    assert given_up.attempts == len(receiver.received) == attempts
    with patient.stores.database.writing() as session:
        deliveries.replay(session, endpoint, row.id)
    sending.deliver(patient, endpoint)
    assert {each.id for each in receiver.received} == {row.id}
    assert receiver.received[-1].verified(secret) == row.payload
    assert statuses(log(endpoint)) == ["delivered"]


def test_an_attempt_that_comes_late_uses_up_no_other(patient, receiver, register, record_event, log):
    endpoint, _ = register(receiver.url)
    record_event()
    receiver.statuses = [500]
    # The installation was stopped for a week after the first attempt.
    with patient.stores.database.writing() as session:
        long_ago = datetime.now(UTC) - timedelta(days=7)
        session.execute(update(WebhookDelivery).values(created_at=long_ago, first_attempt_at=long_ago))
    sending.deliver(patient, endpoint)
    (row,) = log(endpoint)
    pause = (row.next_attempt_at - datetime.now(UTC)).total_seconds()
    assert 3590 < pause < 1.11 * 3600


def _make_due(runtime):
    with runtime.stores.database.writing() as session:
        session.execute(update(WebhookDelivery).values(next_attempt_at=datetime.now(UTC)))


def test_the_usual_pauses_grow_for_almost_two_days():
    pauses = tuple(RETRY_SECONDS)
    for attempts, pause in enumerate(pauses, start=1):
        wait = (sending.next_attempt(attempts, pauses) - datetime.now(UTC)).total_seconds()
        assert pause - 0.1 <= wait < 1.11 * pause + 1
    assert sending.next_attempt(len(pauses) + 1, pauses) is None
    assert timedelta(hours=40) < timedelta(seconds=sum(pauses)) < timedelta(hours=48)


# --- several at once


def test_two_workers_send_nothing_twice(runtime, receiver, register, record_event, log):
    endpoint, _ = register(receiver.url)
    for _ in range(20):
        record_event()
    gate = threading.Barrier(4)

    def work():
        gate.wait(timeout=10)
        sending.deliver(runtime, endpoint)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(each.id for each in receiver.received) == [row.id for row in log(endpoint)]
    assert statuses(log(endpoint)) == ["delivered"] * 20


@pytest.fixture
def slow_receiver():
    with receiving() as receiver:
        yield receiver


def test_an_endpoint_that_hangs_does_not_block_others(
    runtime, receiver, slow_receiver, register, record_event, log
):
    let_go, entered = threading.Event(), threading.Event()
    slow_receiver.meanwhile = lambda _: entered.set() or let_go.wait(timeout=30)
    hanging, _ = register(slow_receiver.url)
    other, _ = register(receiver.url)
    connection = record_event()
    thread = threading.Thread(target=sending.deliver, args=(runtime, hanging))
    thread.start()
    assert entered.wait(timeout=10)
    sending.deliver(runtime, other)
    record_event(WebhookEvent.CONNECTION_RESTORED, connection)
    sending.deliver(runtime, other)
    # Meanwhile no other thread sends to the endpoint that hangs.
    sending.deliver(runtime, hanging)
    assert (len(receiver.received), len(slow_receiver.received)) == (2, 1)
    let_go.set()
    thread.join(timeout=30)
    until(lambda: sending.deliver(runtime, hanging) or statuses(log(hanging)) == ["delivered"] * 2)


def test_an_event_during_the_last_attempt_is_sent(runtime, receiver, register, record_event, log):
    """The task for it finds that another worker sends to the endpoint."""
    endpoint, _ = register(receiver.url)
    record_event()
    late = []

    def meanwhile(_):
        if not late:
            late.append(record_event())
            sending.deliver(runtime, endpoint)
            assert len(receiver.received) <= 1

    receiver.meanwhile = meanwhile
    sending.deliver(runtime, endpoint)
    assert statuses(log(endpoint)) == ["delivered"] * 2


def test_an_endpoint_that_another_worker_serves_is_skipped(runtime, receiver, register, record_event):
    endpoint, _ = register(receiver.url)
    record_event()
    record_event()
    with runtime.stores.database.writing() as session:
        deliveries.claim(session, endpoint, until=datetime.now(UTC) + timedelta(seconds=1))
    sending.deliver(runtime, endpoint)
    assert receiver.received == []
    until(lambda: sending.deliver(runtime, endpoint) or len(receiver.received) == 2)


def test_a_delivery_that_a_dead_worker_has_claimed_is_sent(runtime, receiver, register, record_event, log):
    endpoint, secret = register(receiver.url)
    record_event()
    with runtime.stores.database.writing() as session:
        died = deliveries.claim(session, endpoint, until=datetime.now(UTC) + timedelta(seconds=2))
    assert sending.due(runtime) == []
    until(lambda: sending.due(runtime) == [endpoint])
    sending.deliver(runtime, endpoint)
    assert receiver.received[0].verified(secret) == died.payload
    assert (statuses(log(endpoint)), log(endpoint)[0].attempts) == (["delivered"], 2)


def test_a_lease_outlasts_an_attempt():
    assert sending.LEASE.total_seconds() > http.MAX_POST_SECONDS + sending.MAX_SERVE_SECONDS


# --- refused addresses, and secrets in errors


def test_an_address_that_becomes_private_gets_nothing(runtime, receiver, register, record_event, log):
    strict = Runtime(replace(runtime.settings, webhooks_allow_private=False))
    strict.stores.__dict__.update(database=runtime.stores.database, redis=runtime.stores.redis)
    endpoint, _ = register(receiver.url.replace("http:", "https:").replace("127.0.0.1", "localhost"))
    record_event()
    sending.deliver(strict, endpoint)
    assert receiver.received == []
    (row,) = log(endpoint)
    assert (row.last_status, row.last_error) == (None, "url must not lead to a private or loopback address")


def test_a_secret_under_a_key_that_is_lost_stops_only_its_endpoint(
    runtime, receiver, register, record_event, log
):
    broken, _ = register(receiver.url)
    whole, _ = register(receiver.url)
    record_event()
    with runtime.stores.database.writing() as session:
        session.get_one(WebhookEndpoint, broken).sealed_secret = b"lost"
    for endpoint in (broken, whole):
        sending.deliver(runtime, endpoint)
    assert [row.last_error for row in (*log(broken), *log(whole))] == ["the secret cannot be opened", None]
    assert len(receiver.received) == 1


def test_logs_hold_neither_secret_nor_url(runtime, receiver, register, record_event, log, caplog):
    caplog.set_level(0)
    endpoint, secret = register(f"{receiver.url}&token={TOKEN}")
    record_event()
    receiver.statuses = [500]
    sending.deliver(runtime, endpoint)
    receiver.down()
    until(lambda: sending.deliver(runtime, endpoint) or log(endpoint)[0].attempts >= 2)
    assert "webhook attempt failed" in caplog.text
    records = [record for record in caplog.records if record.name.startswith(("workers", "store"))]
    written = str([vars(record) for record in records])
    until(lambda: sending.due(runtime) == [endpoint])
    with runtime.stores.database.writing() as session:
        claimed = deliveries.claim(session, endpoint, until=datetime.now(UTC) + timedelta(minutes=1))
        assert claimed.url.endswith(TOKEN)
        written += repr(claimed) + repr(session.scalars(select(WebhookEndpoint)).all())
    assert secret.removeprefix("whsec_") not in written
    assert TOKEN not in written
    assert secret not in caplog.text


def test_the_log_is_purged_in_batches(runtime, receiver, register, record_event, log, monkeypatch):
    monkeypatch.setattr("workers.upkeep.batches.PURGED_AT_ONCE", 2)
    endpoint, _ = register(receiver.url)
    for _ in range(6):
        record_event()
    sending.deliver(runtime, endpoint)
    old = datetime.now(UTC) - timedelta(days=31)
    with runtime.stores.database.writing() as session:
        for row in log(endpoint)[:5]:
            session.get_one(WebhookDelivery, row.id).created_at = old
    assert sending.purge(runtime) == 5
    assert len(log(endpoint)) == 1
