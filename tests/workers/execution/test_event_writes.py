"""Event writes whose worker loses Redis: the reply, and the caches that are invalidated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis.exceptions import ConnectionError as RedisLost
from sqlalchemy import select, update

from app.events.worker_calls import is_unknown, may_have_happened
from providers.errors import Problem, Reason
from providers.events import Changes, Draft, Moment
from store.cache.cache_tags import Tags
from store.sql.models import OAuthConnection, WebhookDelivery
from store.sql.queries.webhook_events import WebhookEvent
from tests.workers.conftest import put_work, replies, run_drain
from workers.execution import writes
from workers.jobs import CreateEvent, DeleteEvent, UpdateEvent
from workers.runtime import Runtime

WHEN = Moment(1_796_288_400_000, "UTC")
OTHER_ETAG = 'W/"0"'
DRAFT = Draft(Changes(subject="New", start=WHEN, end=WHEN), "0" * 64, "0" * 64)


@pytest.fixture
def written(runtime, connected, sandbox):
    """Perform one event write for an account of the sandbox; returns the failure in the reply."""
    connection = connected(sandbox.account("google", "ada@example.com"))

    def write(job, **fields):
        put_work(runtime, "f", [job(connection, "primary", **fields)])
        run_drain(runtime, "f", writes.perform, seconds=5)
        *_, (_, reply) = replies(runtime, "f")
        return reply.failed

    return write


def test_create_after_which_redis_is_lost_may_exist_and_is_recorded(
    runtime, sandbox, written, register, monkeypatch
):
    def lost(*_):
        raise RedisLost("planted")

    monkeypatch.setattr(runtime.stores.busy, "invalidate_tags", lost)
    register("https://receiver.example/hook")
    failed = written(CreateEvent, draft=DRAFT)

    assert sandbox.requests().by_operation["google.events.insert"] == 1
    assert failed.problem is Problem.OUT_OF_SERVICE
    assert is_unknown(failed)
    assert may_have_happened(failed)
    with runtime.stores.database.reading() as session:
        assert session.scalars(select(WebhookDelivery.event)).all() == [WebhookEvent.CALENDAR_CHANGED]


def test_a_refused_write_invalidates_its_own_connection_alone(runtime, sandbox, written, monkeypatch):
    invalidated = []
    monkeypatch.setattr(
        runtime.stores.busy, "invalidate_tags", lambda tags, ids: invalidated.append((tags, len(ids)))
    )
    failed = written(DeleteEvent, event="never-there")

    assert failed.reason is Reason.NOT_FOUND
    assert invalidated == [(Tags(), 1)]


def test_a_provider_without_writes_refuses_them(runtime, written):
    """The web tier refuses them by the scopes; a connection may have been replaced since."""
    with runtime.stores.database.writing() as session:
        session.execute(update(OAuthConnection).values(provider="ics"))
    failed = written(CreateEvent, draft=DRAFT)

    assert (failed.reason, failed.called) == (Reason.INSUFFICIENT_SCOPES, False)
    assert failed.message.startswith("A subscribed calendar cannot be changed")


@pytest.fixture
def invalidated(runtime, written, monkeypatch):
    """The invalidations after the creation of an event: whether they have cache tags."""
    assert written(CreateEvent, draft=DRAFT) is None
    found = []
    monkeypatch.setattr(
        runtime.stores.busy, "invalidate_tags", lambda tags, ids: found.append(tags != Tags())
    )
    return found


@pytest.mark.parametrize("job", [UpdateEvent, DeleteEvent])
def test_write_with_another_etag_invalidates_only_own_connection(written, invalidated, job):
    changes = {"changes": Changes(subject="x")} if job is UpdateEvent else {}
    failed = written(job, event=DRAFT.key, etag=OTHER_ETAG, **changes)

    assert (failed.problem, failed.repeated) == (Problem.EVENT_CHANGED, False)
    assert invalidated == [False]


def test_ambiguous_conflict_invalidates_every_connection(sandbox, written, invalidated):
    sandbox.fault(operation="google.events.patch", status=503, times=1)
    failed = written(UpdateEvent, event=DRAFT.key, etag=OTHER_ETAG, changes=Changes(subject="x"))

    assert (failed.problem, failed.repeated) == (Problem.EVENT_CHANGED, True)
    assert invalidated == [True]


def test_an_unreadable_create_invalidates_every_connection_and_is_recorded(
    runtime, sandbox, written, register, monkeypatch
):
    found = []
    monkeypatch.setattr(
        runtime.stores.busy, "invalidate_tags", lambda tags, ids: found.append(tags != Tags())
    )
    register("https://receiver.example/hook")
    sandbox.fault(operation="google.events.insert", body="html")
    failed = written(CreateEvent, draft=DRAFT)

    assert (failed.problem, may_have_happened(failed)) == (Problem.EVENT_UNREADABLE, True)
    assert found == [True]
    with runtime.stores.database.reading() as session:
        assert session.scalars(select(WebhookDelivery.event)).all() == [WebhookEvent.CALENDAR_CHANGED]


def test_a_copy_is_deleted_only_by_the_request_that_made_it(sandbox, written):
    draft = replace(DRAFT, content=replace(DRAFT.content, meta_id="m-1"))
    assert written(CreateEvent, draft=draft) is None

    failed = written(DeleteEvent, event="m-1", by_meta=True, mark="another's")

    assert failed.problem is Problem.EVENT_NOT_FOUND
    assert "google.events.delete" not in sandbox.requests().by_operation
    assert written(DeleteEvent, event="m-1", by_meta=True, mark=draft.mark) is None
    assert sandbox.requests().by_operation["google.events.delete"] == 1


def test_a_write_whose_mailbox_cannot_be_identified_is_not_begun(runtime, sandbox, written):
    """The calls before it were repeated, the write was not."""
    with runtime.stores.database.writing() as session:
        session.execute(update(OAuthConnection).values(main_calendar_id=None, mailbox=None))
    sandbox.fault(operation="google.calendarList.get", status=503)

    failed = written(CreateEvent, draft=DRAFT)

    assert (failed.reason, failed.called, may_have_happened(failed)) == (Reason.PROVIDER_ERROR, False, False)
    assert "google.events.insert" not in sandbox.requests().by_operation


def marks(runtime) -> list[bytes]:
    return runtime.stores.redis.keys("busy-writes:*")


@pytest.mark.parametrize("status", [None, 403])
def test_reads_are_cached_again_once_the_outcome_of_a_write_is_known(runtime, sandbox, written, status):
    if status:
        sandbox.fault(operation="google.events.insert", status=status)
    assert (written(CreateEvent, draft=DRAFT) is None) == (status is None)
    assert marks(runtime) == []


def test_a_write_without_an_answer_stays_marked_until_its_deadline(runtime, sandbox, written):
    sandbox.fault(operation="google.events.insert", status=503)
    sandbox.fault(operation="google.events.get", status=503)
    assert written(CreateEvent, draft=DRAFT) is not None

    assert marks(runtime)
    assert all(0 < runtime.stores.redis.pttl(each) <= 10_000 for each in marks(runtime))


def test_nothing_is_written_without_the_mark(runtime, sandbox, written, monkeypatch):
    def lost(*_):
        raise RedisLost("planted")

    monkeypatch.setattr(runtime.stores.busy, "begin_write", lost)
    failed = written(CreateEvent, draft=DRAFT)

    assert failed.problem is Problem.OUT_OF_SERVICE
    assert not is_unknown(failed)
    assert not may_have_happened(failed)
    assert "google.events.insert" not in sandbox.requests().by_operation


def test_a_database_that_is_down_does_not_undo_what_was_written(runtime, caplog):
    broken = Runtime(replace(runtime.settings, database_url="postgresql+psycopg://127.0.0.1:1/none"))
    writes.record_change(broken.stores, "none", "primary")
    assert "a change was not recorded for webhooks" in caplog.text
