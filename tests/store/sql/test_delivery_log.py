"""All endpoints and deliveries, as the dashboard shows them to administrators."""

from __future__ import annotations

import pytest

from store.sql.models import now
from store.sql.queries import deliveries, webhooks
from store.sql.queries.deliveries import DeliveryCounts
from store.sql.queries.webhook_events import WebhookEvent
from tests.store.statements import statements
from tests.store.webhook_world import WebhookWorld


@pytest.fixture
def world(fresh_database, keyring):
    return WebhookWorld(fresh_database, keyring)


@pytest.fixture
def busy(world):
    """Two endpoints with three expired connections each, one of them with every outcome, and an idle one."""
    own = world.organization("own")
    one, two = world.endpoint(), world.endpoint(organization_id=own)
    for name in ("ada", "bob", "eve"):
        world.record(WebhookEvent.CONNECTION_EXPIRED, world.connection(name, own))
    world.succeed(world.claim(one))
    with world.database.writing() as session:
        claimed = deliveries.claim(session, one, until=now())
        deliveries.failed(session, claimed, deliveries.AttemptResult(500, "it failed"), again_at=None)
    return one, two, world.endpoint(organization_id=own)


def log(world, **wanted):
    with world.database.reading() as session:
        return deliveries.recent(session, **wanted)


def test_endpoints_are_listed_with_their_organization(world, busy):
    one, two, silent = busy
    with world.database.reading() as session:
        rows = webhooks.listed(session)
        first = webhooks.listed(session, limit=1)
        rest = webhooks.listed(session, after=first[0].endpoint.id)

    assert {row.endpoint.id: row.organization for row in rows} == {one: None, two: "own", silent: "own"}
    assert [row.endpoint.id for row in rows] == sorted(busy)
    assert [row.endpoint.id for row in first + rest] == sorted(busy)


def test_a_page_of_endpoints_with_their_counts_takes_two_statements(world, busy):
    one, two, silent = busy
    with statements(world.database) as (session, sent):
        rows = webhooks.listed(session)
        counts = deliveries.counts(session, [row.endpoint.id for row in rows])

    assert counts == {one: DeliveryCounts(1, 1, 1), two: DeliveryCounts(pending=3), silent: DeliveryCounts()}
    assert len(sent) == 2


def test_log_of_all_endpoints_is_newest_first_in_one_statement(world, busy):
    with statements(world.database) as (session, sent):
        rows = deliveries.recent(session)

    ids = [row.delivery.id for row in rows]
    assert len(ids) == 6
    assert ids == sorted(ids, reverse=True)
    assert {row.user for row in rows} == {"ada", "bob", "eve"}
    assert {row.url for row in rows} == {"https://example.com/"}
    assert len(sent) == 1
    assert "https://" not in repr(rows)


@pytest.mark.parametrize(("status", "expected"), [("pending", 4), ("delivered", 1), ("failed", 1)])
def test_the_log_of_one_status_holds_what_has_it(world, busy, status, expected):
    rows = log(world, status=status)

    assert {deliveries.status(row.delivery) for row in rows} == {status}
    assert len(rows) == expected


def test_the_log_of_one_endpoint_and_its_pages(world, busy):
    _, two, silent = busy
    rows = log(world, endpoint_id=two)
    page = log(world, endpoint_id=two, limit=2)

    assert {row.delivery.endpoint_id for row in rows} == {two}
    rest = log(world, endpoint_id=two, before=page[-1].delivery.id)
    assert [row.delivery.id for row in page + rest] == [row.delivery.id for row in rows]
    assert log(world, endpoint_id=silent) == []


def test_what_is_on_its_way_to_all_is_counted(world, busy):
    with world.database.reading() as session:
        assert deliveries.waiting(session) == len(world.waiting()) == 4
