"""Whether this worker can reach the providers, and which worker can when it cannot.

A worker that is alive but has no way to a provider would fail its share of all requests. The circuit
breakers do not notice, because the calls of the other workers succeed. So each worker watches its own calls
at the level of connections. When calls get no HTTP answer for a moment, it probes the provider with a cheap
request. Without an answer to the probe the provider is unreachable from here. The worker reports that with
its heartbeat and probes every second until there is an answer.

A worker is isolated from a provider when it cannot reach it and another worker does not report the same
(``store.coordination.heartbeats``). It then hands jobs for that provider to that other worker
(``workers.fanout.handover``).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from redis.exceptions import RedisError

from providers.errors import NoAnswer
from providers.http import transport
from store.config.settings import ProviderSettings
from store.coordination.heartbeats import Heartbeats, LiveProcesses

log = logging.getLogger(__name__)

# Seconds without an answer, while calls are in flight, that are a reason to probe.
QUIET_SECONDS = 1.0
# A provider that is well answers a request for nothing within a fraction of this.
PROBE_SECONDS = 1.0
# Between two probes of one provider.
PROBE_EVERY = 1.0
# Between two looks at the calls in flight.
LOOK_SECONDS = 0.25
# For so long the heartbeats of the other workers count as known.
KNOWN_SECONDS = 1.0

Probe = Callable[[str], bool]


@dataclass(slots=True)
class Attempt:
    """One job on its way through this worker.

    ``movable``: another worker may do it instead. ``sent``: a call may have arrived at the provider.
    ``left``: a call failed and was not retried here, because another worker is to do the job.
    """

    movable: bool
    sent: bool = False
    left: bool = False


# The job that this thread performs.
_attempt: ContextVar[Attempt | None] = ContextVar("attempt", default=None)


class Route:
    """The way to one provider, as its calls show it. Safe for threads."""

    def __init__(self) -> None:
        self.unreachable = False
        self._lock = threading.Lock()
        self._in_flight: dict[object, float] = {}
        self._answered = 0.0
        self._failed = False
        self._probed = 0.0

    @contextmanager
    def call(self) -> Iterator[None]:
        """The time during which a job may be waiting for the provider."""
        token = object()
        with self._lock:
            self._in_flight[token] = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                del self._in_flight[token]

    def answered(self) -> None:
        """Note an HTTP answer."""
        self._answered = time.monotonic()
        self._failed = False

    def failed(self) -> None:
        """Note a call that got none."""
        self._failed = True

    def suspicious(self, now: float) -> bool:
        """Whether it is time for a probe."""
        if now - self._probed < PROBE_EVERY:
            return False
        with self._lock:
            oldest = min(self._in_flight.values(), default=now)
        return self.unreachable or self._failed or now - max(oldest, self._answered) >= QUIET_SECONDS

    def probed(self, *, answered: bool) -> bool:
        """Note the result of a probe; whether that changes the state."""
        self._probed = time.monotonic()
        if answered:
            self.answered()
        changed = self.unreachable is answered
        self.unreachable = not answered
        return changed


class Egress:
    """The ways from this process to the providers. ``probe`` says whether one answers.

    ``publish`` is called after each change, to send a heartbeat at once.
    """

    def __init__(
        self,
        presence: Heartbeats,
        hosts: Mapping[str, Sequence[str]],
        publish: Callable[[], None],
        *,
        probe: Probe | None = None,
    ) -> None:
        self._presence = presence
        self._hosts = hosts
        self._publish = publish
        self._probe = probe or self._answers
        self._routes = {provider: Route() for provider in hosts}
        self._name = ""
        self._over = threading.Event()
        self._known: LiveProcesses | None = None
        self._known_at = 0.0

    def start(self, worker: str) -> None:
        """Watch the calls of this process, the worker of that name."""
        self._name = worker
        for provider in self._routes:
            threading.Thread(
                target=self._watch, args=(provider,), name=f"egress-{provider}", daemon=True
            ).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._over.set()

    @property
    def unreachable(self) -> list[str]:
        """The providers that this worker cannot reach."""
        return [provider for provider, route in self._routes.items() if route.unreachable]

    def isolated(self, provider: str) -> bool:
        """Whether this worker cannot reach a provider that another worker may reach."""
        return self._routes[provider].unreachable and self.peer(provider) is not None

    def any_isolated(self) -> bool:
        """Whether it is isolated from any provider."""
        return any(self.isolated(provider) for provider in self.unreachable)

    def peer(self, provider: str | None) -> str | None:
        """Another worker that may reach a provider, or all of them: one of the two with most free places."""
        present = self._present()
        if present is None:
            return None
        wanted = self._hosts if provider is None else (provider,)
        reaching = set.intersection(*(set(present.reaching(each)) for each in wanted)) - {self._name}
        by_room = sorted(reaching, key=lambda each: present.workers[each][0] - present.workers[each][1])
        return random.choice(by_room[:2]) if by_room else None

    @contextmanager
    def performing(self, provider: str | None, attempt: Attempt) -> Iterator[None]:
        """The time in which this thread performs a job for a provider."""
        token = _attempt.set(attempt)
        try:
            if provider is None:
                yield
            else:
                with self._routes[provider].call():
                    yield
        finally:
            _attempt.reset(token)

    def answered(self, provider: str) -> None:
        """Note an HTTP answer of a provider, also an error."""
        self._routes[provider].answered()
        if (attempt := _attempt.get()) is not None:
            attempt.sent = True

    def failed(self, provider: str, error: NoAnswer) -> bool:
        """Note a call without an answer; whether its job is left to another worker.

        Such a call is not repeated here, and says nothing about the provider.
        """
        self._routes[provider].failed()
        attempt = _attempt.get()
        if attempt is None:
            return False
        attempt.sent = attempt.sent or not error.unsent
        attempt.left = (
            attempt.movable
            and (error.unsent or self._routes[provider].unreachable)
            and self.peer(provider) is not None
        )
        return attempt.left

    def look(self, provider: str) -> None:
        """Probe a provider if there is a reason to."""
        route = self._routes[provider]
        if not route.suspicious(time.monotonic()):
            return
        answered = self._probe(provider)
        if not route.probed(answered=answered):
            return
        if answered:
            log.warning("%s can be reached from this worker again", provider)
        else:
            log.warning("%s cannot be reached from this worker", provider)
        self._publish()

    def _watch(self, provider: str) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self.look(provider)
            except Exception:
                # Without this thread the worker would keep its last state for ever.
                log.exception("the way to %s could not be checked", provider)

    def _answers(self, provider: str) -> bool:
        return all(transport.answers(url, seconds=PROBE_SECONDS) for url in self._hosts[provider])

    def _present(self) -> LiveProcesses | None:
        """The heartbeats of all workers, known for a moment; None while Redis is down."""
        now = time.monotonic()
        if self._known is None or now - self._known_at >= KNOWN_SECONDS:
            try:
                self._known = self._presence.present() if self._name else None
            except RedisError as error:
                log.warning("the heartbeats of other workers are unknown: %s", type(error).__name__)
                self._known = None
            self._known_at = now
        return self._known


def hosts(there: ProviderSettings) -> dict[str, tuple[str, ...]]:
    """One address of each host that the jobs of a provider call."""
    return {
        "google": (there.google_api_url, there.google_token_url),
        "microsoft": (there.microsoft_graph_url, there.microsoft_login_url),
    }
