"""Follows the events of watched calendars, for the webhooks ``event.created``, ``.updated`` and ``.deleted``.

A notification of the provider says that a calendar has changed. If the calendar is followed, a worker then
reads what has changed, and records it together with the new state of the calendar, so that each change is
recorded once. Rounds of upkeep begin to follow calendars about which an endpoint wants to know. They repeat
comparisons that failed, and make those for which a notification may be lost, at least once a day. Without
such endpoints nothing is read, and nothing is kept.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime, timedelta

from providers.base import Failed
from providers.errors import Problem, ProviderError
from store.cache.busy_cache import GAP_KEY, CalendarKey, now_ms
from store.coordination import locks
from store.coordination.locks import LockTimeout
from store.coordination.provider_limits import Access
from store.security.crypto import Undecipherable
from store.sql.models import EventFeed, now
from store.sql.queries import channels, event_feeds, webhook_events
from store.sql.queries.connection_rows import Credentials
from store.stores import Stores
from workers.egress import Attempt
from workers.execution import reads
from workers.execution.call_policy import cost_of
from workers.failures import BROKEN
from workers.jobs import ReadChanges
from workers.runtime import Runtime
from workers.upkeep import watches
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch
from workers.upkeep.channel_audits import pages
from workers.upkeep.channel_opening import credentials_of
from workers.upkeep.event_states import Following, State, packed, unpacked
from workers.upkeep.rate_limit import acquire

log = logging.getLogger(__name__)

DAY = 86_400_000
# The events that are followed, in milliseconds from now. The range moves when a part of it has passed.
PAST, AHEAD, MOVED_AFTER = DAY, 366 * DAY, 31 * DAY
# A calendar that was not compared for this long is: a notification may be lost. Then its state is deleted.
CATCH_UP, KEPT = timedelta(days=1), timedelta(days=8)
# Seconds for the pages of one comparison. The first has all events, of series every occurrence.
COMPARE_SECONDS = 60.0


def follow(runtime: Runtime, key: CalendarKey) -> bool:
    """Record what has changed in a calendar; returns whether it could be compared.

    After a failure, the next round of upkeep tries again.
    """
    # A notification from here on may be about something that this comparison does not read.
    runtime.stores.redis.delete(watches.enqueued(key))
    deadline = time.monotonic() + COMPARE_SECONDS
    name = f"events:{key.connection}:{event_feeds.digest(key.calendar)}"
    try:
        with locks.hold(runtime.stores.redis, name, deadline=deadline, wait=SECONDS_FOR_EACH):
            return _follow(runtime, key, deadline)
    except LockTimeout:
        log.info("another comparison of a calendar takes long", extra={"connection": key.connection})
    except ProviderError as error:
        log.info("events not compared: %s", error.reason, extra={"connection": key.connection})
    return False


def follow_due(runtime: Runtime, deadline: float) -> None:
    """Compare the watched calendars of which a notification may be lost, until ``deadline``."""
    with runtime.stores.database.writing() as session:
        wanted = webhook_events.anybody_follows_events(session)
        event_feeds.forget(session, before=now() - KEPT if wanted else None)
    if not wanted:
        return
    gap = runtime.stores.redis.get(GAP_KEY)
    gap_ended = datetime.fromtimestamp(float(gap) / 1000, UTC) if isinstance(gap, bytes | str) else None
    for rows in pages(runtime):
        with runtime.stores.database.reading() as session:
            compared = event_feeds.compared_at(session, {row.connection_id for row in rows})
            due = []
            for row in rows:
                key = CalendarKey(row.connection_id, event_feeds.digest(row.calendar))
                since = max(filter(None, (gap_ended, row.confirmed_at, now() - CATCH_UP)))
                if key not in compared or compared[key] < since:
                    due.append(channels.calendar_of(row))
            followed = webhook_events.follow_events(session, {key.connection for key in due})
        due = [key for key in due if key.connection in followed]
        Batch(runtime, due, lambda key: follow(runtime, key), deadline).run()


def _follow(runtime: Runtime, key: CalendarKey, deadline: float) -> bool:
    stores = runtime.stores
    credentials = credentials_of(runtime, key.connection)
    if credentials is None or runtime.egress.isolated(credentials.provider):
        return False
    began = now()
    with stores.database.reading() as session:
        row = event_feeds.find(session, key)
    before = None if row is None else _state(row, stores)
    following = _read(runtime, credentials, key, before, deadline)
    if following is None:
        return False
    with stores.database.writing() as session:
        state = packed(following.state())
        version = None if row is None else row.version
        if event_feeds.store(session, key, state, stores.keyring, after=version, began=began):
            webhook_events.record_changes(session, key.connection, key.calendar, following.changes())
    return True


def _state(row: EventFeed, stores: Stores) -> State | None:
    """The state in a row; None if it cannot be read, so that the calendar is followed from now on."""
    try:
        found = unpacked(event_feeds.opened(row, stores.keyring))
    except Undecipherable:
        found = None
    if found is None:
        log.error("state of a calendar not readable", extra={"connection": row.connection_id})
    return found


def _read(
    runtime: Runtime, credentials: Credentials, key: CalendarKey, before: State | None, deadline: float
) -> Following | None:
    """Read what has changed since a state; None after a failure of the provider.

    All events are read without a state, and when its sync token has expired. They are also read, with a range
    that begins now, when its range is old; if they cannot be, the changes in the old range are.
    """
    start = now_ms() - PAST
    moves = before is None or start >= before.start + MOVED_AFTER
    for begins in (moves, not moves):
        if begins:
            following, sync_token = Following(before, start, start + AHEAD, begins=True), None
        elif before is not None:
            following = Following(before, before.start, before.end, begins=False)
            sync_token = before.sync_token
        else:
            break
        failed = _take_all(runtime, credentials, key, following, sync_token, deadline)
        if failed is None:
            return following
        if not begins and failed.problem is not Problem.CURSOR_EXPIRED:
            break
    return None


def _take_all(
    runtime: Runtime,
    credentials: Credentials,
    key: CalendarKey,
    following: Following,
    sync_token: str | None,
    deadline: float,
) -> Failed | None:
    """Have ``following`` take all pages since a sync token; returns the failure of a read."""
    state = following.state()
    more = True
    while more:
        job = ReadChanges(*key, state.start, state.end, sync_token)
        attempt = Attempt()
        with (
            acquire(runtime, credentials, cost_of(job, credentials), Access.READS, deadline=deadline),
            runtime.egress.performing(credentials.provider, attempt),
        ):
            reply = reads.perform(runtime, job, credentials, deadline)
        if reply.failed is not None or reply.changes is None:
            return reply.failed or BROKEN
        following.take(reply.changes)
        more, sync_token = reply.changes.more, reply.changes.sync_token
    return None
