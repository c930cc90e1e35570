"""Watched calendars in the cache, and the comparisons that notifications about them ask for.

The web tier receives the notifications, and workers open and close the channels. Both use these functions.
"""

from __future__ import annotations

from collections.abc import Callable

from store.cache.busy_cache import CalendarKey
from store.sql.models import Channel
from store.sql.queries import channels, event_feeds
from store.stores import Stores

# Seconds in which a calendar is not enqueued twice: a burst of notifications is one read.
ENQUEUED_SECONDS = 30


def watch(stores: Stores, row: Channel) -> None:
    """Let the cache rely on a channel, if it is open and confirmed."""
    if (seconds := channels.watches_for(row)) <= 0:
        return
    key = channels.calendar_of(row)
    stores.busy.watch(key, row.id, seconds)
    with stores.database.reading() as session:
        known = channels.existing_ids(session, [row.id])
    if not known:
        # Another worker has removed the channel meanwhile, perhaps before this watch was set.
        stores.busy.invalidate_calendar(key, unwatch=row.id)


def remove_and_allow_reopening(stores: Stores, key: CalendarKey, channel: str) -> None:
    """Stop relying on a channel that is gone; the next read of the calendar opens another."""
    remove_channel(stores, key, channel)
    stores.channel_usage.release(key)


def remove_channel(stores: Stores, key: CalendarKey, channel: str) -> None:
    """Remove a channel and its watch, also if another worker sets the watch at the same time."""
    # Before the row is deleted: if Redis is down, the row stays, and the next run removes the channel.
    stores.busy.invalidate_calendar(key, unwatch=channel)
    with stores.database.writing() as session:
        channels.remove(session, [channel])
    # And after: a worker that sets a watch then checks for the row, which is gone from now on.
    stores.busy.invalidate_calendar(key, unwatch=channel)


def request_comparison(stores: Stores, send_task: Callable[..., object], key: CalendarKey) -> None:
    """Enqueue the comparison of a calendar whose provider has reported a change, unless one is enqueued.

    :raise redis.RedisError, kombu.exceptions.OperationalError: when Redis or the broker is down
    """
    with stores.database.writing() as session:
        if not event_feeds.report(session, key):
            return
    if stores.redis.set(enqueued(key), 1, nx=True, ex=ENQUEUED_SECONDS):
        # Shown in Flower: the id of a calendar may be a person's address.
        shown = f"{{'connection': '{key.connection}'}}"
        send_task("upkeep.follow_events", kwargs=key._asdict(), kwargsrepr=shown)


def enqueued(key: CalendarKey) -> str:
    return f"events-enqueued:{key.connection}:{event_feeds.digest(key.calendar)}"
