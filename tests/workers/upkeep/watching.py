"""Watched calendars of a sandbox, as tests of upkeep have them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from store.cache.busy_cache import CalendarKey
from store.sql.models import Channel
from store.sql.queries import channels
from workers.runtime import Runtime
from workers.upkeep import watches
from workers.upkeep.channel_maintenance import keep

PROVIDERS = ("google", "microsoft")
READ = {"google": "google.freebusy.query", "microsoft": "microsoft.calendarView.list"}

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).replace(hour=9, minute=0, second=0, microsecond=0)
NINE = int(TOMORROW.timestamp() * 1000)
HOUR = 3_600_000
MEETING = {"start": TOMORROW.isoformat(), "end": (TOMORROW + timedelta(hours=1)).isoformat()}


def rows(runtime: Runtime, key: CalendarKey) -> list[Channel]:
    with runtime.stores.database.reading() as session:
        query = select(Channel).where(Channel.connection_id == key.connection)
        return list(session.scalars(query.order_by(Channel.created_at)))


def confirm(runtime: Runtime, key: CalendarKey) -> None:
    """Confirm the channel, as a notification of the provider does."""
    for row in rows(runtime, key):
        with runtime.stores.database.writing() as session:
            confirmed = channels.confirmed(session, row.id)
        if confirmed is not None:
            watches.watch(runtime.stores, confirmed)


def run(runtime: Runtime) -> None:
    keep(runtime, deadline=time.monotonic() + 60)
