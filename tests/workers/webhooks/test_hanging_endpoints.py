"""Endpoints of one tenant that hang do not delay the webhooks of another."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from store.sql.models import Organization
from store.sql.queries import webhook_events, webhooks
from tests.waiting import until
from workers.queues import MAX_WEBHOOK_ENDPOINTS
from workers.webhooks import delivery as sending

pytestmark = pytest.mark.slow


@pytest.fixture
def deaf() -> Iterator[str]:
    """The URL of an endpoint that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


@pytest.fixture
def organization(runtime, unique) -> int:
    with runtime.stores.database.writing() as session:
        row = Organization(slug=unique("hostile"))
        session.add(row)
        session.flush()
        return row.id


def test_another_tenants_event_is_sent_while_all_endpoints_of_one_hang(
    runtime, receiver, register, deaf, organization
):
    hanging = [
        register(deaf, organization_id=organization)[0] for _ in range(min(webhooks.MAX_ENDPOINTS, 100))
    ]
    own, _ = register(receiver.url)
    with runtime.stores.database.writing() as session:
        for each in [*hanging, own]:
            webhook_events.record_test(session, each)

    with ThreadPoolExecutor(len(hanging)) as threads:
        waiting = [threads.submit(sending.deliver, runtime, each) for each in hanging]
        # As many as may hang at once; the calls for the others have returned.
        until(lambda: runtime.webhook_turns.largest == MAX_WEBHOOK_ENDPOINTS // 2)
        until(lambda: sum(each.done() for each in waiting) == len(hanging) - MAX_WEBHOOK_ENDPOINTS // 2)
        sending.deliver(runtime, own)
        assert len(receiver.received) == 1
        # None of the hanging ones has ended meanwhile.
        assert runtime.webhook_turns.largest == MAX_WEBHOOK_ENDPOINTS // 2
        # The threads end with their attempts.
        runtime.webhook_queue._waiting.clear()


def test_an_organization_has_its_own_number_of_turns(runtime, register, deaf, organization):
    with runtime.stores.database.writing() as session:
        session.get_one(Organization, organization).quotas = {"webhookTurns": 3}
    hanging = [register(deaf, organization_id=organization)[0] for _ in range(6)]
    with runtime.stores.database.writing() as session:
        for each in hanging:
            webhook_events.record_test(session, each)

    with ThreadPoolExecutor(len(hanging)) as threads:
        waiting = [threads.submit(sending.deliver, runtime, each) for each in hanging]
        until(lambda: sum(each.done() for each in waiting) == 3)
        assert runtime.webhook_turns.largest == 3
        runtime.webhook_queue._waiting.clear()
