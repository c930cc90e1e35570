"""A webhook delivery is claimed by one worker at a time, and retried until it is delivered or given up."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from store.sql.models import WebhookEndpoint
from store.sql.queries import deliveries, webhook_events, webhooks
from store.sql.queries.deliveries import AttemptResult
from store.sql.queries.webhook_events import OF_EVENTS, EventChange, WebhookEvent
from tests.store.webhook_world import WebhookWorld

SECOND = timedelta(seconds=1)


@pytest.fixture
def world(fresh_database, keyring):
    return WebhookWorld(fresh_database, keyring)


@pytest.fixture
def endpoint(world):
    return world.endpoint()


@pytest.fixture
def recorded(world, endpoint):
    """Record ``count`` events; returns the ids of their deliveries, the oldest first."""
    connection = world.connection()

    def record(count=1):
        before = {row.id for row in world.waiting()}
        for _ in range(count):
            world.record(WebhookEvent.CONNECTION_EXPIRED, connection)
        return [row.id for row in world.waiting() if row.id not in before]

    return record


def due(world, endpoint):
    with world.database.reading() as session:
        return list(deliveries.endpoints_due(session, limit=10))


def test_claimed_delivery_is_not_claimed_again_before_lease_ends(world, endpoint, recorded):
    (delivery,) = recorded()
    claimed = world.claim(endpoint)
    assert (claimed.id, claimed.url) == (delivery, "https://example.com/")
    assert (world.claim(endpoint), due(world, endpoint)) == (None, [])
    world.change(delivery, claimed_until=datetime.now(UTC) - SECOND)
    assert due(world, endpoint) == [endpoint]
    again = world.claim(endpoint)
    assert (claimed.attempts, again.id, again.attempts) == (1, delivery, 2)
    assert world.row(delivery).attempts == 2


def test_of_concurrent_claims_of_an_endpoint_one_gets_a_delivery(world, endpoint, recorded):
    ids = recorded(5)
    gate = threading.Barrier(8)

    def take(_):
        gate.wait(timeout=10)
        return world.claim(endpoint)

    with ThreadPoolExecutor(8) as threads:
        taken = [each for each in threads.map(take, range(8)) if each is not None]
    assert [each.id in ids for each in taken] == [True]
    world.fail(taken[0])
    assert world.claim(endpoint).id in set(ids) - {taken[0].id}


def test_outcome_of_a_lost_claim_is_ignored(world, endpoint):
    world.record(WebhookEvent.CALENDAR_CHANGED, world.connection(), calendar_id="primary")
    (delivery,) = [row.id for row in world.waiting()]
    late = world.claim(endpoint)
    world.change(delivery, claimed_until=datetime.now(UTC) - SECOND)
    claimed = world.claim(endpoint)
    world.fail(late, pause=3600)
    row = world.row(delivery)
    # It is being sent, so no later event may be merged into it.
    assert (row.claimed_until, row.topic) == (claimed.until, None)
    world.succeed(claimed)
    world.fail(late, pause=3600)
    row = world.row(delivery)
    assert (deliveries.status(row), row.last_status, row.topic) == ("delivered", 204, None)


def test_the_oldest_comes_first_and_what_failed_waits(world, endpoint, recorded):
    first, second = recorded(2)
    for each, age in ((first, 2), (second, 1)):
        world.change(each, next_attempt_at=datetime.now(UTC) - age * SECOND)
    claimed = world.claim(endpoint)
    assert claimed.id == first
    world.fail(claimed, pause=60)
    assert world.claim(endpoint).id == second
    assert world.claim(endpoint) is None
    row = world.row(first)
    assert (deliveries.status(row), row.attempts, row.last_error) == ("pending", 1, "it failed")


def test_what_is_given_up_is_in_the_log_as_failed(world, endpoint, recorded):
    (delivery,) = recorded()
    claimed = world.claim(endpoint)
    with world.database.writing() as session:
        deliveries.failed(session, claimed, AttemptResult(None, "no answer"), again_at=None)
    row = world.row(delivery)
    assert (deliveries.status(row), row.last_status, row.last_error) == ("failed", None, "no answer")
    assert due(world, endpoint) == []


def test_the_log_has_the_latest_attempts_only(world, endpoint, recorded):
    (delivery,) = recorded()
    assert deliveries.attempts(world.row(delivery)) == []
    for number in range(deliveries.MAX_LOGGED + 2):
        world.fail(world.claim(endpoint), status=500 + number)
    logged = deliveries.attempts(world.row(delivery))
    assert [each.status for each in logged] == [
        500 + number for number in reversed(range(2, deliveries.MAX_LOGGED + 2))
    ]
    assert [each.at for each in logged] == sorted((each.at for each in logged), reverse=True)


@pytest.mark.parametrize(
    ("status", "ago", "sooner"),
    [(None, 61, True), (503, 61, True), (500, 61, True), (400, 61, True), (None, 1, False), (500, 1, False)],
)
def test_a_success_brings_forward_what_failed_a_while_ago(world, endpoint, recorded, status, ago, sooner):
    (away,) = recorded()
    world.fail(world.claim(endpoint), status=status, pause=3600)
    world.change(away, last_attempt_at=datetime.now(UTC) - ago * SECOND)
    (arrived,) = recorded()
    claimed = world.claim(endpoint)
    assert claimed.id == arrived
    world.succeed(claimed)
    assert (due(world, endpoint) == [endpoint]) == sooner


def test_a_success_does_not_bring_forward_a_last_attempt(world, endpoint, recorded):
    (away,) = recorded()
    world.fail(world.claim(endpoint), pause=3600)
    world.change(away, attempts=9, last_attempt_at=datetime.now(UTC) - 3600 * SECOND)
    recorded()
    world.succeed(world.claim(endpoint), most_attempts=10)
    assert due(world, endpoint) == []
    world.change(away, attempts=8)
    recorded()
    world.succeed(world.claim(endpoint), most_attempts=10)
    assert due(world, endpoint) == [endpoint]


def test_an_endpoint_that_is_gone_gets_nothing_more(world, endpoint, recorded):
    other = world.endpoint()
    recorded(3)
    ids = [row.id for row in world.waiting(endpoint)]
    claimed = world.claim(endpoint)
    with world.database.writing() as session:
        deliveries.gone(session, claimed, AttemptResult(410, "answered 410"))
    errors = [world.row(each).last_error for each in ids if each != claimed.id]
    assert (world.row(claimed.id).last_status, errors) == (410, ["the endpoint was disabled"] * 2)
    assert (world.waiting(endpoint), len(world.waiting(other))) == ([], 3)
    with world.database.reading() as session:
        assert session.get_one(WebhookEndpoint, endpoint).disabled_at is not None


def test_replay_resets_attempts_and_enables_endpoint(world, endpoint, recorded):
    first, second = recorded(2)
    claimed, other = world.claim(endpoint), world.endpoint()
    with world.database.writing() as session:
        deliveries.gone(session, claimed, AttemptResult(410, "answered 410"))
        assert deliveries.replay(session, endpoint, "msg_none") is None
        assert deliveries.replay(session, other, claimed.id) is None
    world.reported.clear()
    with world.database.writing() as session:
        row = deliveries.replay(session, endpoint, claimed.id)
        assert deliveries.status(row) == "pending"
    assert world.reported == [{endpoint}]
    again = world.claim(endpoint)
    assert (again.id, world.claim(endpoint)) == (claimed.id, None)
    assert again.attempts == claimed.attempts == 1
    assert deliveries.status(world.row(({first, second} - {claimed.id}).pop())) == "failed"


def test_what_is_old_is_purged_unless_it_still_waits(world, endpoint, recorded):
    ids = recorded(4)
    old = datetime.now(UTC) - deliveries.LOG_LIFETIME - SECOND
    for each in ids[:3]:
        world.change(each, created_at=old)
    for each in (ids[0], ids[1], ids[3]):
        world.change(each, next_attempt_at=None)
    with world.database.writing() as session:
        assert deliveries.purge(session, limit=1) == 1
        assert deliveries.purge(session, limit=10) == 1
        assert deliveries.purge(session, limit=10) == 0
        assert {row.id for row in deliveries.page(session, endpoint)} == set(ids[2:])


def test_a_claim_shows_no_secret(world, endpoint, recorded):
    recorded()
    assert "sealed" not in repr(world.claim(endpoint))


# --- paused endpoints and test events


def paused(world, endpoint):
    with world.database.writing() as session:
        session.get_one(WebhookEndpoint, endpoint).paused_at = datetime.now(UTC)


def test_nothing_of_a_paused_endpoint_is_due(world, endpoint, recorded):
    recorded()
    paused(world, endpoint)
    (while_paused,) = recorded()
    assert (world.claim(endpoint), due(world, endpoint)) == (None, [])
    with world.database.reading() as session:
        assert deliveries.waiting(session) == 0
    world.reported.clear()
    with world.database.writing() as session:
        webhooks.resume(session, session.get_one(WebhookEndpoint, endpoint))
    assert world.reported == [{endpoint}]
    assert due(world, endpoint) == [endpoint]
    claimed = world.claim(endpoint)
    world.fail(claimed)
    assert while_paused in {claimed.id, world.claim(endpoint).id}


def test_a_pause_ends_a_batch_after_the_current_attempt(world, endpoint, recorded):
    recorded(2)
    claimed = world.claim(endpoint)
    paused(world, endpoint)
    world.succeed(claimed)
    assert world.claim(endpoint) is None


def test_a_replay_waits_for_a_paused_endpoint(world, endpoint, recorded):
    (delivery,) = recorded()
    world.succeed(world.claim(endpoint))
    paused(world, endpoint)
    with world.database.writing() as session:
        deliveries.replay(session, endpoint, delivery)
    assert (world.claim(endpoint), deliveries.status(world.row(delivery))) == (None, "pending")


def test_a_test_event_is_of_no_user_and_shown_in_every_log(world):
    own = world.organization("own")
    for endpoint in (world.endpoint(), world.endpoint(organization_id=own)):
        with world.database.writing() as session:
            sent = webhook_events.record_test(session, endpoint)
        assert world.claim(endpoint).id == sent.id
        with world.database.reading() as session:
            assert [row.id for row in deliveries.page(session, endpoint)] == [sent.id]
            (logged,) = deliveries.recent(session, endpoint_id=endpoint)
        assert (logged.delivery.id, logged.user) == (sent.id, None)
        with world.database.writing() as session:
            assert deliveries.replay(session, endpoint, sent.id) is not None


@pytest.fixture
def changed(world, endpoint):
    """Record a change of an event of a calendar; returns the id of its delivery."""
    connection = world.connection()
    follower = world.endpoint(events=OF_EVENTS)

    def record(event):
        before = {row.id for row in world.waiting(follower)}
        with world.database.writing() as session:
            change = EventChange(WebhookEvent.EVENT_UPDATED, event)
            webhook_events.record_changes(session, connection, "primary", [change])
        (made,) = [row.id for row in world.waiting(follower) if row.id not in before]
        return made

    record.endpoint = follower
    return record


def test_changes_of_one_event_are_sent_in_their_order_although_one_is_retried(world, changed):
    first, later, other = changed("one"), changed("one"), changed("two")
    claimed = world.claim(changed.endpoint)
    assert claimed.id == first
    world.fail(claimed, pause=60)

    claimed = world.claim(changed.endpoint)
    assert claimed.id == other
    world.succeed(claimed)
    assert world.claim(changed.endpoint) is None

    world.change(first, next_attempt_at=datetime.now(UTC))
    claimed = world.claim(changed.endpoint)
    assert claimed.id == first
    world.succeed(claimed)
    assert world.claim(changed.endpoint).id == later


def test_a_change_that_was_given_up_does_not_stop_later_ones(world, changed):
    first, later = changed("one"), changed("one")
    claimed = world.claim(changed.endpoint)
    assert claimed.id == first
    with world.database.writing() as session:
        deliveries.failed(session, claimed, AttemptResult(500, "it failed"), again_at=None)
    assert world.claim(changed.endpoint).id == later


def test_changes_of_events_do_not_wait_for_a_paused_endpoint_for_ever(world, changed):
    old, new = changed("one"), changed("two")
    paused(world, changed.endpoint)
    world.change(old, created_at=datetime.now(UTC) - deliveries.LOG_LIFETIME - SECOND)
    with world.database.writing() as session:
        assert deliveries.purge(session, limit=10) == 1
    assert [row.id for row in world.waiting(changed.endpoint)] == [new]
