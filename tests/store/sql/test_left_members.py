"""Events of a user who has left an organization are no longer sent to it, even if recorded before."""

from __future__ import annotations

import pytest

from store.sql.queries import deliveries
from store.sql.queries.webhook_events import WebhookEvent
from tests.store.webhook_world import WebhookWorld


@pytest.fixture
def world(fresh_database, keyring):
    return WebhookWorld(fresh_database, keyring)


@pytest.fixture
def own(world):
    return world.organization("own")


@pytest.fixture
def theirs(world, own):
    return world.endpoint(organization_id=own)


@pytest.fixture
def record(world, own):
    """Record an event of a member of the organization; returns how to find its delivery to an endpoint."""
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("member", own))

    def at(endpoint):
        (row,) = world.waiting(endpoint)
        return row.id

    return at


def log(world, endpoint):
    with world.database.reading() as session:
        return [row.id for row in deliveries.page(session, endpoint)]


def test_what_waits_for_their_organization_is_never_sent(world, own, theirs, record):
    delivery = record(theirs)
    world.leave("member", own)
    assert world.claim(theirs) is None
    row = world.row(delivery)
    assert (deliveries.status(row), row.last_error, row.attempts) == ("failed", "no longer a member", 0)
    with world.database.reading() as session:
        assert theirs not in deliveries.endpoints_due(session, limit=1000)


def test_what_waits_for_another_attempt_is_not_sent_again(world, own, theirs, record):
    delivery = record(theirs)
    world.fail(world.claim(theirs))
    world.leave("member", own)
    assert world.claim(theirs) is None
    assert world.row(delivery).next_attempt_at is None


def test_events_of_remaining_members_are_delivered(world, own, theirs, record):
    left = record(theirs)
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("other", own))
    world.leave("member", own)
    claimed = world.claim(theirs)
    assert claimed.payload["data"]["userId"] == "other"
    assert log(world, theirs) == [claimed.id]
    assert world.claim(theirs) is None
    assert deliveries.status(world.row(left)) == "failed"


def test_service_wide_endpoint_receives_events_of_former_members(world, own, record):
    everybodys = world.endpoint()
    world.record(WebhookEvent.CONNECTION_RESTORED, world.connection("member"))
    delivery = record(everybodys)
    world.leave("member", own)
    assert world.claim(everybodys).id == delivery
    assert log(world, everybodys) == [delivery]


def test_neither_the_log_nor_a_replay_knows_them_until_they_are_back(world, own, theirs, record):
    delivery = record(theirs)
    world.succeed(world.claim(theirs))
    world.leave("member", own)
    assert log(world, theirs) == []
    with world.database.writing() as session:
        assert deliveries.replay(session, theirs, delivery) is None
    assert world.claim(theirs) is None
    world.join("member", own)
    assert log(world, theirs) == [delivery]
    with world.database.writing() as session:
        assert deliveries.replay(session, theirs, delivery) is not None
    assert world.claim(theirs).id == delivery
