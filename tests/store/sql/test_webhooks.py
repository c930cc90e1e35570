"""Recording of events for webhook endpoints: which endpoints, how often, and in which transaction."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta

import pytest
from sqlalchemy import select

from store.security.crypto import Undecipherable
from store.sql.database import Database
from store.sql.models import OAuthConnection, Organization, User, WebhookDelivery, WebhookEndpoint, now
from store.sql.queries import connections, organizations, webhook_events, webhooks
from store.sql.queries.connection_rows import Tokens
from store.sql.queries.webhook_events import EventChange, HoldView, WebhookEvent
from tests.store.webhook_world import WebhookWorld


@pytest.fixture
def world(fresh_database: Database, keyring):
    return WebhookWorld(fresh_database, keyring)


# --- who hears of what


def test_endpoint_receives_the_events_it_subscribes_to(world):
    connection = world.connection()
    every, some = world.endpoint(), world.endpoint(events=[WebhookEvent.CONNECTION_EXPIRED])
    world.record(WebhookEvent.CONNECTION_EXPIRED, connection)
    world.record(WebhookEvent.CONNECTION_RESTORED, connection)
    recorded = {(row.endpoint_id, row.event) for row in world.waiting()}
    assert recorded == {
        (every, "connection.expired"),
        (every, "connection.restored"),
        (some, "connection.expired"),
    }


def test_an_event_names_calendars_as_answers_do(world):
    connection = world.connection(email="Ada@example.com")
    world.endpoint()
    for calendar in ("ada@example.com", "team@group.calendar.google.com"):
        world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id=calendar)
    payloads = [row.payload for row in world.waiting()]
    assert [payload["type"] for payload in payloads] == ["calendar.changed"] * 2
    assert {payload["data"].pop("calendarId") for payload in payloads} == {
        "Ada@example.com",
        "team@group.calendar.google.com",
    }
    subject = {"userId": "ada", "provider": "google", "connectionId": connection}
    assert [payload["data"] for payload in payloads] == [subject] * 2


def test_event_of_unknown_connection_is_not_recorded(world):
    world.endpoint()
    world.record(WebhookEvent.CALENDAR_CHANGED, "none", calendar_id="primary")
    assert world.waiting() == []


def test_deliveries_about_a_user_are_deleted_with_the_user(world):
    own = world.organization("own")
    world.endpoint()
    world.endpoint(organization_id=own)
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("ada", own))
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("bob", own))
    with world.database.writing() as session:
        session.delete(session.scalars(select(User).where(User.custom_id == "ada")).one())
    assert [row.payload["data"]["userId"] for row in world.waiting()] == ["bob", "bob"]
    with world.database.writing() as session:
        organizations.remove(session, own)
    assert len(world.waiting()) == 1


def _record_holds(session, _):
    number = session.scalars(select(User.id)).one()
    view = HoldView("hold_1", ("ada",), 0, 1, 2, None, False, user_ids=(number,))
    webhook_events.record_holds(session, WebhookEvent.HOLD_CREATED, [view])


def _record_grant(session, _):
    number = session.scalars(select(Organization.id)).one()
    webhook_events.record_grant(session, WebhookEvent.GRANT_EXPIRED, number, "google")


@pytest.mark.parametrize(
    "record",
    [
        lambda session, id: webhook_events.record(session, WebhookEvent.CONNECTION_EXPIRED, id),
        lambda session, id: webhook_events.record_changes(
            session, id, "primary", [EventChange(WebhookEvent.EVENT_DELETED, "1")]
        ),
        _record_holds,
        _record_grant,
    ],
    ids=["connection", "event", "hold", "grant"],
)
def test_an_endpoint_that_is_being_deleted_takes_the_event_from_no_other_one(world, record):
    world.organization("own")
    connection = world.connection()
    deleted, other = world.endpoint(), world.endpoint()

    def recorded():
        with world.database.writing() as session:
            record(session, connection)

    with ThreadPoolExecutor(1) as threads:
        with world.database.writing() as session:
            webhooks.remove(session, deleted)
            recording = threads.submit(recorded)
            # It waits for the deletion.
            assert not wait([recording], timeout=0.5).done
        recording.result()
    assert [row.endpoint_id for row in world.waiting()] == [other]


# --- one calendar, one event


def test_repeated_changes_of_a_calendar_are_recorded_once(world):
    connection, other = world.connection(), world.connection("other")
    endpoint = world.endpoint()
    for _ in range(3):
        world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
        world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="team")
        world.record(WebhookEvent.CALENDAR_CHANGED, other, calendar_id="primary")
    assert len(world.waiting(endpoint)) == 3


def test_several_at_once_record_one_change(world):
    connection = world.connection()
    world.endpoint()
    gate = threading.Barrier(8)

    def record(_):
        gate.wait(timeout=10)
        world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(record, range(8)))
    assert len(world.waiting()) == 1


def test_change_during_a_delivery_is_recorded_again(world):
    connection, endpoint = world.connection(), world.endpoint()
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    world.claim(endpoint)
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    assert len(world.waiting()) == 2


def test_a_change_moves_up_the_one_that_waits_for_long(world):
    connection, endpoint = world.connection(), world.endpoint()
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    world.fail(world.claim(endpoint), pause=86_400)
    world.reported.clear()
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="team")
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    moved, _ = world.waiting()
    assert timedelta(0) < moved.next_attempt_at - now() <= webhook_events.SOON
    # The newer change has all attempts before it.
    assert moved.attempts == 0
    assert world.reported == [{endpoint}] * 2
    # The next change neither postpones it nor reports the endpoint again.
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    assert world.row(moved.id).next_attempt_at == moved.next_attempt_at
    assert world.reported == [{endpoint}] * 2


def test_a_change_puts_nothing_off(world):
    connection, endpoint = world.connection(), world.endpoint()
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    world.fail(world.claim(endpoint), pause=5)
    (row,) = world.waiting()
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    assert [each.next_attempt_at for each in world.waiting()] == [row.next_attempt_at]


def test_of_two_of_one_calendar_both_are_sent(world):
    connection, endpoint = world.connection(), world.endpoint()
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    first = world.claim(endpoint)
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    world.fail(first)
    waiting, sent = {row.id for row in world.waiting()}, set()
    for _ in range(2):
        claimed = world.claim(endpoint)
        sent.add(claimed.id)
        world.succeed(claimed)
    assert sent == waiting


# --- turns of a connection


def test_end_and_return_of_a_grant_are_recorded_once_each(world):
    connection = world.connection()
    world.endpoint()
    for _ in range(2):
        with world.database.writing() as session:
            connections.mark_dead(session, connection, "the grant has ended")
    assert world.events() == ["connection.expired"]
    for _ in range(2):
        with world.database.writing() as session:
            connections.renew(session, world.keyring, connection, Tokens("a", "r", None))
    assert world.events() == ["connection.expired", "connection.restored"]
    with world.database.writing() as session:
        connections.mark_dead(session, connection, "the grant has ended")
    assert world.events() == ["connection.expired", "connection.expired", "connection.restored"]


def test_connecting_in_the_place_of_a_dead_connection_restores_it(world):
    connection = world.connection()
    world.endpoint()
    again = world.connection()
    assert (world.events(), again == connection) == ([], False)
    with world.database.writing() as session:
        connections.mark_dead(session, again, "the grant has ended")
    world.connection()
    world.connection()
    assert world.events() == ["connection.expired", "connection.restored"]


def test_concurrent_ends_of_a_grant_are_recorded_once(world):
    connection = world.connection()
    world.endpoint()
    gate = threading.Barrier(4)

    def find(_):
        gate.wait(timeout=10)
        with world.database.writing() as session:
            connections.mark_dead(session, connection, "the grant has ended")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(find, range(4)))
    assert world.events() == ["connection.expired"]


# --- the transaction


def test_rolled_back_event_is_not_recorded(world):
    connection = world.connection()
    world.endpoint()
    with world.database.writing() as session:
        connections.mark_dead(session, connection, "the grant has ended")
        session.rollback()
    assert (world.events(), world.reported) == ([], [])
    with world.database.reading() as session:
        assert session.get_one(OAuthConnection, connection).alive


def test_endpoints_are_reported_after_the_commit(world):
    connection, endpoint = world.connection(), world.endpoint()
    with world.database.writing() as session:
        connections.mark_dead(session, connection, "the grant has ended")
        assert world.reported == []
    assert world.reported == [{endpoint}]
    # Further changes are merged into the delivery that is pending already.
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    world.record(WebhookEvent.CALENDAR_CHANGED, connection, calendar_id="primary")
    assert world.reported == [{endpoint}] * 2


# --- endpoints


def test_a_secret_opens_for_its_own_endpoint_alone(world):
    endpoint = world.endpoint()
    with world.database.reading() as session:
        row = session.get_one(WebhookEndpoint, endpoint)
    secret = webhooks.open_secret(endpoint, row.sealed_secret, world.keyring)
    assert secret == world.secrets[endpoint]
    assert secret.startswith("whsec_")
    assert secret.encode() not in row.sealed_secret
    with pytest.raises(Undecipherable):
        webhooks.open_secret("wh_other", row.sealed_secret, world.keyring)


def test_an_endpoint_goes_with_its_log_and_its_organization(world):
    own = world.organization("own")
    first, second = world.endpoint(), world.endpoint(organization_id=own)
    world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection("ada", own))
    with world.database.writing() as session:
        webhooks.remove(session, first)
        assert session.scalars(select(WebhookDelivery.endpoint_id)).all() == [second]
        session.delete(session.get_one(Organization, own))
    with world.database.reading() as session:
        assert webhooks.page(session, organization_id=None) == []
