"""Reads accounts that no request has read for a while, to know which accounts cannot be read."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from providers import registry
from providers.base import PRIMARY
from providers.errors import ProviderError
from store.cache.busy_cache import now_ms
from store.coordination.provider_limits import Access
from store.sql.queries import connections
from workers.egress import Attempt
from workers.execution import call_policy, reads
from workers.fanout.reports import last_read
from workers.jobs import ReadBusy
from workers.runtime import Runtime
from workers.upkeep.batches import SECONDS_FOR_EACH, Batch, one_at_a_time
from workers.upkeep.channel_opening import credentials_of
from workers.upkeep.rate_limit import acquire

log = logging.getLogger(__name__)

# The range of a check: the least that shows whether an account can be read.
RANGE = 86_400_000
# Last reads that are looked up in one round trip.
LOOKED_UP_AT_ONCE = 1000


@one_at_a_time("check_accounts")
def check(runtime: Runtime, *, deadline: float) -> int:
    """Read the accounts that are due, those first that were not read for longest; returns how many were read.

    Ends by ``deadline``, on ``time.monotonic()``.
    """
    seconds = runtime.settings.account_check_seconds
    if not seconds:
        return 0
    due, missing = _due(runtime, before=now_ms() - round(1000 * seconds))
    runtime.stores.last_reads.note_missing(missing)
    read = Batch(runtime, due, lambda connection: _check(runtime, connection), deadline).run()
    # Those without a last read come first.
    runtime.stores.last_reads.note_missing(max(0, missing - read))
    return read


def _due(runtime: Runtime, *, before: int) -> tuple[Sequence[str], int]:
    """The living connections whose last read was before a time, or that have none; and how many have none."""
    with runtime.stores.database.reading() as session:
        living = connections.living(session)
    read_at = {}
    for first in range(0, len(living), LOOKED_UP_AT_ONCE):
        some = living[first : first + LOOKED_UP_AT_ONCE]
        found = runtime.stores.last_reads.load(some)
        read_at.update({each: found[each].at if each in found else 0 for each in some})
    due = sorted((each for each, at in read_at.items() if at < before), key=lambda each: read_at[each])
    return due, sum(not at for at in read_at.values())


def _check(runtime: Runtime, connection: str) -> bool:
    """Read the main calendar of an account, and note whether it could be read."""
    credentials = credentials_of(runtime, connection)
    if credentials is None or not registry.is_known(credentials.provider):
        return False
    if runtime.egress.isolated(credentials.provider):
        return False
    start, deadline = now_ms(), time.monotonic() + SECONDS_FOR_EACH
    job = ReadBusy(connection, (PRIMARY,), start, start + RANGE)
    cost = call_policy.cost_of(job, credentials)
    attempt = Attempt()
    try:
        with (
            acquire(runtime, credentials, cost, Access.READS, deadline=deadline),
            runtime.egress.performing(credentials.provider, attempt),
        ):
            reply = reads.perform(runtime, job, credentials, deadline)
    except ProviderError as error:
        # No permit: the quota is used, or calls to the account are paused. A later run tries again.
        log.info("account not checked: %s", error.reason, extra={"connection": connection})
        return False
    found = last_read(job, reply, credentials.provider)
    if found is None or attempt.elsewhere:
        # Only this worker may be unable to reach the provider.
        return False
    with runtime.stores.redis.pipeline(transaction=False) as pipe:
        runtime.stores.last_reads.note(pipe, [(connection, found)])
        pipe.execute()
    return True
