"""Goal 22: calendars that endpoints of `event.*` follow, and in which nothing happens."""

from __future__ import annotations

import secrets
import time
from datetime import timedelta
from statistics import median

from sqlalchemy import delete, insert, select

from store.sql.models import Channel, EventFeed, OAuthConnection, WebhookEndpoint, now
from store.sql.queries import event_feeds, webhooks
from store.sql.queries.webhook_events import OF_EVENTS
from tests.benchmarks.installation import Installation
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale
from workers.process import CHANNELS_SECONDS
from workers.runtime import Runtime
from workers.upkeep.channel_audits import ROUNDS
from workers.upkeep.event_feeds import follow_due

CALENDARS = 10_000
LIMIT = 0.01


def run(installation: Installation, report: Report, scale: Scale) -> None:
    """Rounds of upkeep in this process, over the calendars of as many people as there are."""
    settings = installation.settings()
    runtime = Runtime(settings)
    number = min(CALENDARS, max(scale.sizes))
    # As ``workers.process`` schedules the rounds.
    every = min(CHANNELS_SECONDS, settings.watched_seconds / ROUNDS or CHANNELS_SECONDS)
    progress(f"followed: {number:,} calendars")
    try:
        _follow(runtime, number)
        installation.provider.behave()
        taken = []
        for _ in range(scale.rounds):
            began = time.process_time()
            follow_due(runtime, time.monotonic() + 60)
            taken.append(time.process_time() - began)
        asked = installation.provider.record()["requests"]
    finally:
        with runtime.stores.database.writing() as session:
            for model in (Channel, EventFeed, WebhookEndpoint):
                session.execute(delete(model))
        runtime.stores.close()
    share = median(taken) / every * CALENDARS / number
    report.table("A round of upkeep", "calendars", "processor time of a worker", "every")
    report.row(f"{number:,}", seconds(median(taken)), seconds(every))
    report.verdict(22, "provider requests for calendars at rest", "none", asked, 0)
    report.verdict(22, f"processor time for {CALENDARS:,} calendars at rest", "one core", share, LIMIT)


def _follow(runtime: Runtime, number: int) -> None:
    """Watched calendars that were compared just now, and an endpoint that follows them."""
    keyring = runtime.stores.keyring
    with runtime.stores.database.writing() as session:
        webhooks.create(session, keyring, url="https://example.com/", events=OF_EVENTS, organization_id=None)
        connections = session.scalars(select(OAuthConnection.id).limit(number)).all()
        ends = now() + timedelta(days=1)
        watching = {"calendar": "primary", "secret_digest": "-", "expires_at": ends, "watch_until": ends}
        channels = [
            {"id": secrets.token_hex(16), "connection_id": each, "confirmed_at": now(), **watching}
            for each in connections
        ]
        session.execute(insert(Channel), channels)
        calendar = event_feeds.digest("primary")
        sealed = keyring.encrypt("a state", "as long as it is not read")
        feeds = [
            {"connection_id": each, "calendar": calendar, "sealed_state": sealed} for each in connections
        ]
        session.execute(insert(EventFeed), feeds)
