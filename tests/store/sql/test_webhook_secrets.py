"""Secrets of webhook endpoints are replaced, and the replaced one signs for a while."""

from __future__ import annotations

from datetime import timedelta

import pytest

from store.security.crypto import Undecipherable
from store.sql.models import WebhookEndpoint, now
from store.sql.queries import webhooks
from store.sql.queries.webhook_events import WebhookEvent
from tests.store.webhook_world import SECOND, WebhookWorld

DAY = timedelta(days=1)


@pytest.fixture
def world(fresh_database, keyring):
    return WebhookWorld(fresh_database, keyring)


def rotated(world, endpoint, overlap=DAY):
    """Replace the secret of an endpoint; returns the new one."""
    with world.database.writing() as session:
        row = session.get_one(WebhookEndpoint, endpoint)
        return webhooks.rotate(session, world.keyring, row, overlap=overlap)


def row_of(world, endpoint):
    with world.database.reading() as session:
        return session.get_one(WebhookEndpoint, endpoint)


def expired(world, endpoint):
    """The overlap of an endpoint has just ended."""
    with world.database.writing() as session:
        session.get_one(WebhookEndpoint, endpoint).overlap_until = now() - SECOND


def test_a_replaced_secret_is_kept_for_the_overlap(world):
    endpoint = world.endpoint()
    secret = rotated(world, endpoint)
    row = row_of(world, endpoint)
    assert webhooks.open_secret(endpoint, row.sealed_secret, world.keyring) == secret
    old = webhooks.open_previous(endpoint, row.sealed_previous_secret, world.keyring)
    assert old == world.secrets[endpoint] != secret
    assert timedelta(hours=23) < row.overlap_until - now() <= DAY


def test_the_two_secrets_of_a_row_do_not_open_in_each_others_place(world):
    endpoint = world.endpoint()
    rotated(world, endpoint)
    row = row_of(world, endpoint)
    with pytest.raises(Undecipherable):
        webhooks.open_secret(endpoint, row.sealed_previous_secret, world.keyring)
    with pytest.raises(Undecipherable):
        webhooks.open_previous(endpoint, row.sealed_secret, world.keyring)


def test_of_two_rotations_the_second_keeps_the_secret_of_the_first(world):
    endpoint = world.endpoint()
    first = rotated(world, endpoint)
    rotated(world, endpoint)
    row = row_of(world, endpoint)
    assert webhooks.open_previous(endpoint, row.sealed_previous_secret, world.keyring) == first


def test_a_rotation_keeps_the_secret_of_a_concurrent_one(world):
    endpoint = world.endpoint()
    with world.database.reading() as session:
        outdated = session.get_one(WebhookEndpoint, endpoint)
    first = rotated(world, endpoint)
    with world.database.writing() as session:
        session.add(outdated)
        webhooks.rotate(session, world.keyring, outdated, overlap=DAY)
    row = row_of(world, endpoint)
    assert webhooks.open_previous(endpoint, row.sealed_previous_secret, world.keyring) == first


def test_without_an_overlap_nothing_of_the_old_secret_is_left(world):
    endpoint = world.endpoint()
    rotated(world, endpoint)
    rotated(world, endpoint, timedelta())
    row = row_of(world, endpoint)
    assert (row.sealed_previous_secret, row.overlap_until) == (None, None)


def test_a_secret_that_no_key_opens_is_replaced_and_not_kept(world):
    endpoint = world.endpoint()
    with world.database.writing() as session:
        session.get_one(WebhookEndpoint, endpoint).sealed_secret = b"lost"
    secret = rotated(world, endpoint)
    row = row_of(world, endpoint)
    assert webhooks.open_secret(endpoint, row.sealed_secret, world.keyring) == secret
    assert (row.sealed_previous_secret, row.overlap_until) == (None, None)


def test_claimed_delivery_has_old_secret_only_during_overlap(world):
    endpoint, connection = world.endpoint(), world.connection()
    rotated(world, endpoint)
    for _ in range(2):
        world.record(WebhookEvent.CONNECTION_EXPIRED, connection)
    claimed = world.claim(endpoint)
    assert claimed.sealed_previous_secret == row_of(world, endpoint).sealed_previous_secret
    world.succeed(claimed)
    expired(world, endpoint)
    assert world.claim(endpoint).sealed_previous_secret is None


def test_old_secrets_are_deleted_when_their_overlap_has_passed(world):
    over, within = world.endpoint(), world.endpoint()
    for endpoint in (over, within):
        rotated(world, endpoint)
    expired(world, over)
    with world.database.writing() as session:
        webhooks.forget_expired(session)
    assert row_of(world, over).sealed_previous_secret is None
    assert row_of(world, over).overlap_until is None
    assert row_of(world, within).sealed_previous_secret is not None
