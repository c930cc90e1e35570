"""The metric families of ``/metrics``, named by https://prometheus.io/docs/practices/naming/"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from providers.names import ProviderName
from store.coordination.circuit_breaker import CircuitKey, CircuitState, Family
from store.coordination.heartbeats import LiveProcesses
from store.metrics.histogram import BOUNDS, Histogram
from store.metrics.schema import GROUPS, READS, REQUESTS, STATUSES, WRITES
from store.metrics.totals import Totals
from store.sql.queries.connections import Standing
from workers.queues import Queue

# The upper bounds of the buckets as label values in seconds; ``BOUNDS`` is in milliseconds.
LIMITS = [str(floatToGoString(bound / 1000)) for bound in BOUNDS]  # type: ignore[no-untyped-call]

# Histograms of durations, each with its label values.
Timed = Iterable[tuple[tuple[str, ...], Histogram]]

PROVIDERS = tuple(each.value for each in ProviderName)
GUARDED = tuple(CircuitKey(provider, family) for provider in PROVIDERS for family in Family)


@dataclass(frozen=True, slots=True)
class Found:
    """The values behind the metrics; None for a part that did not answer.

    ``records`` are the connections by provider, and the number of waiting webhook deliveries.
    """

    version: str
    counted: Totals
    present: LiveProcesses
    circuit_breakers: Mapping[CircuitKey, CircuitState]
    records: tuple[Mapping[str, Standing], int] | None
    queues: Mapping[Queue, int] | None


class Exposition:
    """Stands in for a registry of ``prometheus_client``: its encoders call ``collect``.

    Counters exist with 0 from the start: otherwise Prometheus would not see their first increase.
    """

    def __init__(self, found: Found) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        """Each metric with its samples."""
        yield self._build()
        yield self._up()
        yield from self._requests()
        yield self._cache()
        yield from self._providers()
        yield from self._breakers()
        yield from self._jobs()
        yield from self._workers()
        yield from self._queues()
        yield from self._records()

    def _build(self) -> Metric:
        build = GaugeMetricFamily("almanac_build_info", "The version, as a label", labels=["version"])
        build.add_metric([self._found.version], 1)
        return build

    def _up(self) -> Metric:
        found = self._found
        up = GaugeMetricFamily("almanac_up", "Whether a part is there: 1, or 0", labels=["part"])
        states = {
            "redis": True,
            "database": found.records is not None,
            "broker": found.queues is not None,
            "worker": bool(found.present.workers),
            "beat": found.present.beats,
        }
        for part, state in states.items():
            up.add_metric([part], int(state))
        return up

    def _requests(self) -> Iterator[Metric]:
        answers = self._found.counted.counts.answers
        every = {(group, status): Histogram() for group in GROUPS for status in STATUSES} | dict(answers)
        about = "Requests below /v1 by part of the API and class of status"
        labels = ["group", "status"]
        yield self._count("almanac_requests", about, labels, every.items())
        about = "Time until the answers to requests began"
        yield self._times("almanac_request_seconds", about, labels, REQUESTS, answers.items())

    def _cache(self) -> Metric:
        about = "Calendars looked up in the busy cache: fresh hits, stale ones, misses that had to be read"
        looked = CounterMetricFamily("almanac_cache_calendars", about, labels=["result"])
        cache = self._found.counted.counts.cache
        for result, count in (("hit", cache.hits), ("stale", cache.stale), ("miss", cache.misses)):
            looked.add_metric([result], count)
        return looked

    def _providers(self) -> Iterator[Metric]:
        counts = self._found.counted.counts
        yield from self._calls(READS, "reads from providers", counts.read)
        yield from self._calls(WRITES, "changes of events at providers", counts.written)
        about = "Reads and changes that failed, once for each reason"
        failures = CounterMetricFamily("almanac_provider_failures", about, labels=["provider", "reason"])
        for names, count in counts.failed.items():
            failures.add_metric(names, count)
        yield failures

    def _breakers(self) -> Iterator[Metric]:
        labels = ["provider", "calls"]
        about = "Whether a provider is not asked, as it does not answer such calls: 1, or 0"
        open_ = GaugeMetricFamily("almanac_breaker_open", about, labels=labels)
        about = "Accounts that are not asked, as their provider does not answer for them"
        accounts = GaugeMetricFamily("almanac_breaker_accounts_open", about, labels=labels)
        for guarded in GUARDED:
            each = self._found.circuit_breakers.get(guarded, CircuitState())
            open_.add_metric(guarded, int(each.open))
            accounts.add_metric(guarded, each.accounts)
        yield from (open_, accounts)

    def _calls(self, kind: str, words: str, done: Mapping[str, Histogram]) -> Iterator[Metric]:
        every = {(provider,): Histogram() for provider in PROVIDERS}
        every |= {(provider,): latency for provider, latency in done.items()}
        name = f"almanac_provider_{kind}"
        yield self._count(name, f"How many {words}, whatever came of them", ["provider"], every.items())
        about = f"Time of {words}, with all that was sent again"
        yield self._times(f"{name}_seconds", about, ["provider"], kind, every.items())

    def _jobs(self) -> Iterator[Metric]:
        counted = self._found.counted.jobs
        about = "Jobs of fan-outs: asked of workers, or followed where another request had asked"
        jobs = CounterMetricFamily("almanac_fanout_jobs", about, labels=["how"])
        for how in ("asked", "followed"):
            jobs.add_metric([how], counted.get(how, 0))
        yield jobs
        about = "Jobs of fan-outs that had no answer when their request gave up"
        yield CounterMetricFamily("almanac_fanout_jobs_late", about, counted.get("late", 0))

    def _workers(self) -> Iterator[Metric]:
        workers = self._found.present.workers
        yield GaugeMetricFamily("almanac_workers", "Worker processes that are there", len(workers))
        used = GaugeMetricFamily(
            "almanac_worker_places_used", "Reads and writes in flight in a worker", labels=["worker"]
        )
        places = GaugeMetricFamily(
            "almanac_worker_places", "How many may be in flight, without spare places", labels=["worker"]
        )
        for name, (busy, size) in sorted(workers.items()):
            used.add_metric([name], busy)
            places.add_metric([name], size)
        yield from (used, places)
        yield self._isolated()

    def _isolated(self) -> Metric:
        present = self._found.present
        about = "Whether a worker cannot reach a provider that another worker may reach: 1, or 0"
        isolated = GaugeMetricFamily("almanac_worker_isolated", about, labels=["worker", "provider"])
        found = present.isolated()
        for worker in sorted(present.workers):
            for provider in PROVIDERS:
                isolated.add_metric([worker, provider], int(provider in found.get(worker, ())))
        return isolated

    def _queues(self) -> Iterator[Metric]:
        if self._found.queues is not None:
            depth = GaugeMetricFamily(
                "almanac_queue_depth", "Tasks in a queue that no worker has taken", labels=["queue"]
            )
            for queue, length in self._found.queues.items():
                depth.add_metric([queue.value], length)
            yield depth

    def _records(self) -> Iterator[Metric]:
        if self._found.records is None:
            return
        standing, waiting = self._found.records
        connected = GaugeMetricFamily(
            "almanac_connections",
            "Connected accounts; one that is not alive needs a new consent",
            labels=["provider", "alive"],
        )
        for provider in PROVIDERS:
            each = standing.get(provider, Standing())
            connected.add_metric([provider, "true"], each.alive)
            connected.add_metric([provider, "false"], each.dead)
        yield connected
        yield GaugeMetricFamily(
            "almanac_webhook_deliveries_waiting", "Webhook deliveries that wait for an attempt", waiting
        )

    def _count(self, name: str, about: str, labels: Sequence[str], done: Timed) -> Metric:
        counter = CounterMetricFamily(name, about, labels=labels)
        for names, latency in done:
            counter.add_metric(names, latency.total)
        return counter

    def _times(self, name: str, about: str, labels: Sequence[str], kind: str, done: Timed) -> Metric:
        histogram = HistogramMetricFamily(name, about, labels=labels)
        for names, latency in done:
            buckets = list(zip(LIMITS, accumulate(latency.buckets), strict=True))
            histogram.add_metric(names, buckets, self._found.counted.seconds.get((kind, *names), 0.0))
        return histogram
