"""Goal 3: the fan-out alone, from this process through real workers, without web, engine or JSON."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable
from statistics import median

from sqlalchemy import select

from providers.base import PRIMARY
from store.sql.models import OAuthConnection
from store.stores import Stores
from tests.benchmarks import calendars
from tests.benchmarks.installation import LONG_DEADLINE, Installation, Running
from tests.benchmarks.provider import Behaviour
from tests.benchmarks.report import Report, progress, seconds
from tests.benchmarks.scale import Scale
from workers.celery_app import create_celery
from workers.fanout.client import Fanout
from workers.jobs import Job, ReadBusy
from workers.queues import Queue

READS = 1_000


def run(installation: Installation, running: Running, report: Report, scale: Scale) -> None:
    """Even answers beside waiting alone, and uneven ones beside the greedy bound."""
    settings = running.settings
    even, uneven = Behaviour(), Behaviour(least=0.1, most=0.3, seed=1)
    with Stores(settings) as stores:
        fanout = Fanout(
            create_celery(settings), stores.redis, stores.single_flight, tasks=settings.fanout_tasks
        )
        accounts = _accounts(stores)
        jobs: list[Job] = [
            ReadBusy(connection, (PRIMARY,), calendars.START, calendars.START + 7 * calendars.DAY)
            for connection, _ in accounts
        ]
        bounds = {
            each: greedy((each.latency(person) for _, person in accounts), running.in_flight)
            for each in (even, uneven)
        }
        times: dict[Behaviour, list[float]] = {even: [], uneven: []}
        for number in range(scale.rounds):
            progress(f"cold: round {number + 1} of {scale.rounds}, the join alone")
            for each, taken in times.items():
                installation.provider.behave(each)
                start = time.perf_counter()
                replies = fanout.gather(jobs, queue=Queue.READS, deadline=time.monotonic() + LONG_DEADLINE)
                taken.append(time.perf_counter() - start)
                assert all(reply.failed is None and reply.outcomes for reply in replies)
    title = f"The join alone, {READS:,} reads, {running.in_flight} in flight"
    report.table(title, "answers take", "bound", "median", "ratio")
    ratios = {each: median(taken) / bounds[each] for each, taken in times.items()}
    for name, each in (("200 ms", even), ("100 to 300 ms", uneven)):
        cells = seconds(bounds[each]), seconds(median(times[each])), f"{ratios[each]:.3f}"
        report.row(name, *cells)
    report.verdict(3, "join of 1 000 reads at 200 ms", "waiting alone", ratios[even], 1.10)
    report.verdict(3, "join of 1 000 reads at 100 to 300 ms", "greedy bound", ratios[uneven], 1.05)


def greedy(latencies: Iterable[float], places: int) -> float:
    """When the last read ends if each, in order, begins in the slot that is free first."""
    free = [0.0] * places
    for latency in latencies:
        heapq.heapreplace(free, free[0] + latency)
    return max(free)


def _accounts(stores: Stores) -> list[tuple[str, int]]:
    """Personal connections with the number of their person, which stands in the address.

    A delegated connection is read with the token of its grant, which the first read has to request.
    """
    with stores.database.reading() as session:
        query = (
            select(OAuthConnection.id, OAuthConnection.email)
            .where(OAuthConnection.grant_id.is_(None))
            .order_by(OAuthConnection.email)
        )
        rows = session.execute(query.limit(READS)).all()
    return [(connection, int((email or "").partition("@")[0].split("-")[1])) for connection, email in rows]
