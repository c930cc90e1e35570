"""The metric families of ``/metrics``, named by https://prometheus.io/docs/practices/naming/"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from providers import registry
from store.coordination.heartbeats import LiveProcesses
from store.coordination.provider_limits import Access, Circuit, CircuitState
from store.coordination.shares import Quota
from store.metrics.counters import BOUNDS, GROUPS, READS, REQUESTS, STATUSES, WRITES, Histogram, Totals
from store.sql.queries.connections import ConnectionCounts
from store.sql.queries.organization_grants import GrantCounts
from workers.queues import Queue

# The upper bounds of the buckets as label values in seconds; ``BOUNDS`` is in milliseconds.
LIMITS = [str(floatToGoString(bound / 1000)) for bound in BOUNDS]  # type: ignore[no-untyped-call]

# Histograms of durations, each with its label values.
Timed = Iterable[tuple[tuple[str, ...], Histogram]]

PROVIDERS = registry.names()
# All accounts share the servers of these.
SHARED = registry.with_consent()
CIRCUIT_KEYS = tuple(Circuit(provider, access) for provider in SHARED for access in Access)


class QuotaUse(NamedTuple):
    """The largest use by one organization, and the limit of each organization."""

    used: int
    limit: int


class Records(NamedTuple):
    """Counts in the database: connections and grants by provider, deliveries that wait, and active holds."""

    connections: Mapping[str, ConnectionCounts]
    grants: Mapping[str, GrantCounts]
    waiting: int
    holds: int
    held_users: QuotaUse


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The values behind the metrics; None for a part that did not answer.

    ``failing`` has the number of accounts whose last read failed, by provider and reason.
    """

    version: str
    counted: Totals
    present: LiveProcesses
    circuit_breakers: Mapping[Circuit, CircuitState]
    quotas: Mapping[Quota, QuotaUse]
    failing: Mapping[tuple[str, str], int]
    records: Records | None
    queues: Mapping[Queue, int] | None


class Exposition:
    """Stands in for a registry of ``prometheus_client``: its encoders call ``collect``.

    Counters exist with 0 from the start: otherwise Prometheus would not see their first increase.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        """Each metric with its samples."""
        yield self._build()
        yield self._up()
        yield from self._requests()
        yield self._cache()
        yield from self._providers()
        yield from self._breakers()
        yield self._failing()
        yield from self._jobs()
        yield from self._workers()
        yield from self._queues()
        yield from self._quotas()
        yield from self._records()

    def _build(self) -> Metric:
        build = GaugeMetricFamily("almanac_build_info", "The version, as a label", labels=["version"])
        build.add_metric([self._snapshot.version], 1)
        return build

    def _up(self) -> Metric:
        found = self._snapshot
        up = GaugeMetricFamily("almanac_up", "Whether a part is up: 1 or 0", labels=["part"])
        states = {
            "redis": True,
            "database": found.records is not None,
            "broker": found.queues is not None,
            "worker": bool(found.present.workers),
            "beat": found.present.beat_is_alive,
        }
        for part, state in states.items():
            up.add_metric([part], int(state))
        return up

    def _requests(self) -> Iterator[Metric]:
        answers = self._snapshot.counted.counts.answers
        every = {(group, status): Histogram() for group in GROUPS for status in STATUSES} | dict(answers)
        about = "Requests below /v1 by part of the API and status class"
        labels = ["group", "status"]
        yield self._count("almanac_requests", about, labels, every.items())
        about = "Time from a request to the start of its answer"
        yield self._times("almanac_request_seconds", about, labels, REQUESTS, answers.items())

    def _cache(self) -> Metric:
        about = "Calendars looked up in the busy cache: fresh hits, stale hits, and misses"
        looked = CounterMetricFamily("almanac_cache_calendars", about, labels=["result"])
        cache = self._snapshot.counted.counts.cache
        for result, count in (("hit", cache.hits), ("stale", cache.stale), ("miss", cache.misses)):
            looked.add_metric([result], count)
        return looked

    def _providers(self) -> Iterator[Metric]:
        counts = self._snapshot.counted.counts
        yield from self._calls(READS, "reads from providers", counts.read)
        yield from self._calls(WRITES, "changes of events at providers", counts.written)
        about = "Failed reads and changes by reason"
        failures = CounterMetricFamily("almanac_provider_failures", about, labels=["provider", "reason"])
        for names, count in counts.failed.items():
            failures.add_metric(names, count)
        yield failures

    def _breakers(self) -> Iterator[Metric]:
        labels = ["provider", "calls"]
        about = "Whether the circuit breaker of a provider is open for this kind of call: 1 or 0"
        open_ = GaugeMetricFamily("almanac_breaker_open", about, labels=labels)
        about = "Accounts whose circuit breaker is open for this kind of call"
        accounts = GaugeMetricFamily("almanac_breaker_accounts_open", about, labels=labels)
        for key in CIRCUIT_KEYS:
            each = self._snapshot.circuit_breakers.get(key, CircuitState())
            open_.add_metric(key, int(each.open))
            accounts.add_metric(key, each.accounts)
        yield from (open_, accounts)

    def _failing(self) -> Metric:
        failing = GaugeMetricFamily(
            "almanac_accounts_failing",
            "Accounts whose last read failed: their people cannot be booked",
            labels=["provider", "reason"],
        )
        for names, count in self._snapshot.failing.items():
            failing.add_metric(names, count)
        return failing

    def _calls(self, kind: str, words: str, done: Mapping[str, Histogram]) -> Iterator[Metric]:
        every = {(provider,): Histogram() for provider in PROVIDERS}
        every |= {(provider,): latency for provider, latency in done.items()}
        name = f"almanac_provider_{kind}"
        yield self._count(name, f"Number of {words}, successful or not", ["provider"], every.items())
        about = f"Duration of {words}, including retries"
        yield self._times(f"{name}_seconds", about, ["provider"], kind, every.items())

    def _jobs(self) -> Iterator[Metric]:
        counted = self._snapshot.counted.jobs
        about = "Jobs of fan-outs: all (asked), and those that a read of another request answered (followed)"
        jobs = CounterMetricFamily("almanac_fanout_jobs", about, labels=["how"])
        for how in ("asked", "followed"):
            jobs.add_metric([how], counted.get(how, 0))
        yield jobs
        about = "Jobs of fan-outs without a result when their request timed out"
        yield CounterMetricFamily("almanac_fanout_jobs_late", about, counted.get("late", 0))

    def _workers(self) -> Iterator[Metric]:
        workers = self._snapshot.present.workers
        yield GaugeMetricFamily("almanac_workers", "Live worker processes", len(workers))
        used = GaugeMetricFamily(
            "almanac_worker_places_used", "Reads and writes in flight in a worker", labels=["worker"]
        )
        places = GaugeMetricFamily(
            "almanac_worker_places",
            "How many may be in flight, without spare threads",
            labels=["worker"],
        )
        for name, (busy, size) in sorted(workers.items()):
            used.add_metric([name], busy)
            places.add_metric([name], size)
        yield from (used, places)
        yield self._isolated()

    def _isolated(self) -> Metric:
        present = self._snapshot.present
        about = "Whether a worker cannot reach a provider that another worker may reach: 1 or 0"
        isolated = GaugeMetricFamily("almanac_worker_isolated", about, labels=["worker", "provider"])
        found = present.isolated()
        for worker in sorted(present.workers):
            for provider in SHARED:
                isolated.add_metric([worker, provider], int(provider in found.get(worker, ())))
        return isolated

    def _queues(self) -> Iterator[Metric]:
        if self._snapshot.queues is not None:
            depth = GaugeMetricFamily("almanac_queue_depth", "Tasks that wait in a queue", labels=["queue"])
            for queue, length in self._snapshot.queues.items():
                depth.add_metric([queue.value], length)
            yield depth

    def _quotas(self) -> Iterator[Metric]:
        # Without a label for the organization: there may be any number of them.
        about = "What one organization uses at once of what all share: of the one that uses most"
        used = GaugeMetricFamily("almanac_quota_used", about, labels=["quota"])
        limit = GaugeMetricFamily("almanac_quota_limit", "What one organization may use", labels=["quota"])
        uses = dict(self._snapshot.quotas)
        if self._snapshot.records is not None:
            uses[Quota.HELD_USERS] = self._snapshot.records.held_users
        for quota, use in uses.items():
            used.add_metric([quota], use.used)
            limit.add_metric([quota], use.limit)
        yield from (used, limit)

    def _records(self) -> Iterator[Metric]:
        if self._snapshot.records is None:
            return
        records = self._snapshot.records
        connected = GaugeMetricFamily(
            "almanac_connections",
            "Connected accounts; one that is not alive needs a new consent",
            labels=["provider", "alive"],
        )
        for provider in PROVIDERS:
            each = records.connections.get(provider, ConnectionCounts())
            connected.add_metric([provider, "true"], each.alive)
            connected.add_metric([provider, "false"], each.dead)
        yield connected
        granted = GaugeMetricFamily(
            "almanac_grants",
            "Grants of organizations; without one that is alive, the members cannot be read",
            labels=["provider", "alive"],
        )
        for provider in registry.with_grant():
            grants = records.grants.get(provider, GrantCounts())
            granted.add_metric([provider, "true"], grants.alive)
            granted.add_metric([provider, "false"], grants.dead)
        yield granted
        yield GaugeMetricFamily(
            "almanac_webhook_deliveries_waiting",
            "Webhook deliveries that wait for an attempt",
            records.waiting,
        )
        yield GaugeMetricFamily("almanac_holds_active", "Holds that have not expired", records.holds)

    def _count(self, name: str, about: str, labels: Sequence[str], done: Timed) -> Metric:
        counter = CounterMetricFamily(name, about, labels=labels)
        for names, latency in done:
            counter.add_metric(names, latency.total)
        return counter

    def _times(self, name: str, about: str, labels: Sequence[str], kind: str, done: Timed) -> Metric:
        histogram = HistogramMetricFamily(name, about, labels=labels)
        for names, latency in done:
            buckets = list(zip(LIMITS, accumulate(latency.buckets), strict=True))
            histogram.add_metric(names, buckets, self._snapshot.counted.seconds.get((kind, *names), 0.0))
        return histogram
