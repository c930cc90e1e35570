"""Whether this worker can reach the providers. A worker that cannot, while another can, takes no more work.

A worker that is alive but cannot connect to a provider would fail its share of all requests. The circuit
breakers stay closed, because the calls of the other workers succeed. So each worker watches whether its own
calls get an HTTP response. If they do not for a moment, it probes the provider with a cheap request. Without
a response to the probe, the provider is unreachable from this worker. The worker reports that with its
heartbeat, and probes every second until there is a response.

A worker is isolated from a provider when it cannot reach it and another worker does not report the same
(``store.coordination.heartbeats``). It then answers its reads of that provider at once, and the requests
send them again. While another worker reaches every provider, it also takes no tasks of reads and writes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from redis.exceptions import RedisError

from providers.errors import NoAnswer
from providers.http import transport
from store.coordination.heartbeats import Heartbeats, LiveProcesses

log = logging.getLogger(__name__)

# Seconds without a response, while calls are in flight, before a probe.
QUIET_SECONDS = 1.0
# Timeout of a probe in seconds; a healthy provider answers within a fraction of it.
PROBE_SECONDS = 1.0
# Seconds between two probes of one provider.
PROBE_EVERY = 1.0
# Seconds between two checks of the calls in flight.
CHECK_SECONDS = 0.25
# Seconds for which the heartbeats of the other workers are cached.
KNOWN_SECONDS = 1.0

Probe = Callable[[str], bool]


@dataclass(slots=True, eq=False)
class Attempt:
    """One job or bundle while this worker performs it.

    ``leave`` answers its reads, so that another worker performs them. ``sent``: a call may have reached the
    provider. ``elsewhere``: the last call failed, and was not retried here, because another worker may reach
    the provider.
    """

    leave: Callable[[], None] = lambda: None
    sent: bool = False
    elsewhere: bool = False


# The job that this thread performs.
_attempt: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class Route:
    """Whether one provider is reachable, from the results of calls. Thread-safe."""

    def __init__(self) -> None:
        self.unreachable = False
        self.suspect = threading.Event()
        self._lock = threading.Lock()
        self._in_flight: dict[Attempt, float] = {}
        self._answered = self._probed = 0.0

    @contextmanager
    def call(self, attempt: Attempt) -> Iterator[None]:
        """Context for a job that may be waiting for the provider."""
        with self._lock:
            self._in_flight[attempt] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._in_flight[attempt]

    def leave(self) -> None:
        """Answer the reads that are under way."""
        with self._lock:
            attempts = list(self._in_flight)
        for each in attempts:
            each.leave()

    def answered(self) -> None:
        """Record an HTTP response."""
        self._answered = time.monotonic()
        self.suspect.clear()

    def suspicious(self, now: float, *, without_calls: bool) -> bool:
        """Whether a probe is due; ``without_calls``: no calls of this worker show whether it is reachable."""
        if now - self._probed < PROBE_EVERY:
            return False
        with self._lock:
            oldest = min(self._in_flight.values(), default=now)
        quiet = now - max(oldest, self._answered) >= QUIET_SECONDS
        return self.unreachable or without_calls or self.suspect.is_set() or quiet

    def probed(self, *, answered: bool) -> bool:
        """Record the result of a probe; returns whether the state has changed."""
        self._probed = time.monotonic()
        self.suspect.clear()
        if answered:
            self.answered()
        changed = self.unreachable is answered
        self.unreachable = not answered
        return changed


class Egress:
    """Which providers this process can reach. ``probe`` returns whether an address answers.

    ``publish`` is called after each change, to send a heartbeat at once. ``consume`` makes the worker take
    tasks of reads and writes, or none.
    """

    def __init__(
        self,
        heartbeats: Heartbeats,
        hosts: Mapping[str, Sequence[str]],
        publish: Callable[[], None],
        *,
        consume: Callable[[bool], None] = lambda _: None,
        probe: Probe | None = None,
    ) -> None:
        self._heartbeats = heartbeats
        self._hosts = hosts
        self._publish = publish
        self._consume = consume
        self._probe = probe or self._answers
        self._routes = {provider: Route() for provider in hosts}
        self._name = ""
        self._over = threading.Event()
        self._known: LiveProcesses | None = None
        self._known_at = 0.0
        # One thread at a time changes what is consumed.
        self._consuming_lock = threading.Lock()
        self.consuming = True

    def start(self, worker: str) -> None:
        """Start to watch the calls of this process, the worker of that name."""
        self._name = worker
        for provider in self._routes:
            threading.Thread(
                target=self._watch, args=(provider,), name=f"egress-{provider}", daemon=True
            ).start()

    def stop(self) -> None:
        """Stop watching."""
        self._over.set()

    @property
    def unreachable(self) -> list[str]:
        """The providers that this worker cannot reach."""
        return [provider for provider, route in self._routes.items() if route.unreachable]

    def isolated(self, provider: str) -> bool:
        """Whether this worker cannot reach a provider that another worker may reach."""
        return self._routes[provider].unreachable and self._others_reach(provider)

    @contextmanager
    def performing(self, provider: str | None, attempt: Attempt) -> Iterator[None]:
        """Context in which this thread performs a job for a provider."""
        token = _attempt.set(attempt)
        try:
            if provider is None:
                yield
            else:
                with self._routes[provider].call(attempt):
                    yield
        finally:
            _attempt.reset(token)

    def answered(self, provider: str) -> None:
        """Record an HTTP response of a provider, including errors."""
        self._routes[provider].answered()
        if (attempt := _attempt.get()) is not None:
            attempt.sent = True

    def failed(self, provider: str, error: NoAnswer) -> bool:
        """Record a call without a response; returns whether its job is left to another worker.

        Such a call is not retried here, and does not count as a failure of the provider.
        """
        route = self._routes[provider]
        route.suspect.set()
        # Without hosts that all accounts share, the failure shows nothing about this worker.
        if (attempt := _attempt.get()) is None or not self._hosts[provider]:
            return False
        attempt.sent = attempt.sent or not error.unsent
        attempt.elsewhere = (error.unsent or route.unreachable) and self._others_reach(provider)
        return attempt.elsewhere

    def probe_if_due(self, provider: str) -> None:
        """Probe a provider if a probe is due, and leave its reads to other workers if it is unreachable."""
        route = self._routes[provider]
        if route.suspicious(time.monotonic(), without_calls=not self.consuming):
            answered = self._probe(provider)
            if route.probed(answered=answered):
                state = "reachable again" if answered else "unreachable"
                log.warning("provider %s from this worker: %s", state, provider)
                self._publish()
        if self.isolated(provider):
            route.leave()
        self._decide_consuming()

    def _decide_consuming(self) -> None:
        """Consume unless another worker reaches every provider and this one does not."""
        with self._consuming_lock:
            wanted = not self.unreachable or not self._others_reach(*self._hosts)
            if wanted is not self.consuming:
                self._consume(wanted)
                self.consuming = wanted
                log.warning("this worker takes %s reads and writes", "new" if wanted else "no more")

    def _watch(self, provider: str) -> None:
        while not self._over.is_set():
            # A failed call is looked into at once.
            self._routes[provider].suspect.wait(CHECK_SECONDS)
            try:
                self.probe_if_due(provider)
            except Exception:
                # If this thread ended, the worker would keep its last state forever.
                log.exception("reachability check failed: %s", provider)
            if self._routes[provider].suspect.is_set():
                self._over.wait(CHECK_SECONDS)

    def _answers(self, provider: str) -> bool:
        return all(transport.answers(url, seconds=PROBE_SECONDS) for url in self._hosts[provider])

    def _others_reach(self, *providers: str) -> bool:
        """Whether another worker reports none of these providers as unreachable."""
        now = time.monotonic()
        if self._known is None or now - self._known_at >= KNOWN_SECONDS:
            try:
                self._known = self._heartbeats.live_processes() if self._name else None
            except RedisError as error:
                log.warning("heartbeats of other workers not read: %s", type(error).__name__)
                self._known = None
            self._known_at = now
        if self._known is None:
            return False
        reaching = (set(self._known.reaching(each)) for each in providers)
        return bool(set.intersection(*reaching) - {self._name})
