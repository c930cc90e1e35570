"""The first page: what needs attention, the state of the installation, and the next steps of its setup."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

from flask import url_for
from flask.typing import ResponseReturnValue

from app.accounts import oauth_clients
from app.accounts.oauth_clients import Registration
from app.availability.parameters import now_ms
from app.dashboard.blueprint import blp, page
from app.dashboard.overview import attention, unread
from app.dashboard.sign_in import roles
from app.http.hosts import base_url
from app.http.routes import route_facts
from app.observability import health
from app.observability.metrics import CIRCUIT_KEYS
from app.observability.probes import Fault, FaultKind
from app.services import Services, services
from providers import registry
from store.coordination.provider_limits import Access, CircuitState
from store.metrics.counters import DAY, Counts, together
from store.sql.queries import api_keys, connections, users
from workers import broker

PARTS = {
    "beat": ("Beat", "Start exactly one: almanac beat. Without it no token is renewed ahead of time."),
    "database": ("Database", "Check that it runs, and ALMANAC_DATABASE_URL."),
    "redis": ("Redis", "Check that it runs, and ALMANAC_REDIS_URL."),
    "worker": ("Worker", "Start one: almanac worker. Without it no calendar is read."),
}

# The badge of a part by its fault, and what to do where the kind of the fault says it.
FAULTS = {
    FaultKind.UNREACHABLE: ("bad", "not responding", None),
    FaultKind.SLOW: ("warn", "slow", "It has not answered within a second. Check its load and the network."),
    FaultKind.OUTDATED: (
        "bad",
        "not migrated",
        "It answers, but lacks migrations: almanac db upgrade.",
    ),
    FaultKind.TOO_NEW: ("warn", "too new", "A later version has migrated it: start that version here too."),
}


WORDS = {Access.READS: "reads", Access.WRITES: "changes of events"}


class FaultyPart(NamedTuple):
    """A part of the installation that has a fault, with its badge and what to do."""

    title: str
    kind: str
    state: str
    advice: str

    @classmethod
    def of(cls, title: str, advice: str, fault: Fault) -> FaultyPart:
        """The part of that title, by its fault; ``advice`` is for a part that does not respond."""
        kind, state, better = FAULTS[fault.kind]
        return cls(title, kind, state, better or advice)


class OpenBreaker(NamedTuple):
    """A provider with an open circuit breaker, for all its accounts or for some.

    ``calls`` names the kind of call that is blocked. ``since`` is when the breaker opened.
    """

    title: str
    calls: str
    breaker: CircuitState
    since: datetime


class Setup(NamedTuple):
    """The number of things that each step of the setup has made so far."""

    users: int
    connections: int
    keys: int


class Step(NamedTuple):
    """One step in setting up a new installation."""

    title: str
    hint: str
    address: str
    done: bool
    # The route of the step, which decides who is offered it.
    route: str


@blp.get("/", strict_slashes=False)
def overview() -> ResponseReturnValue:
    """The page. The number of SQL statements does not depend on the amount of data."""
    registrations = oauth_clients.overview(base_url())
    with services().stores.database.reading() as session:
        connected = sum(each.alive + each.dead for each in connections.counts(session).values())
        setup = Setup(users.count(session), connected, api_keys.count_in_force(session))
        items = attention.items(session, registrations)
    return page(
        "overview.html",
        connected=connected > 0,
        items=items,
        missing=unread.missing(),
        steps=_steps(setup, registrations),
        version=version("almanac"),
    )


@blp.get("/overview/day")
@route_facts(polled=True)
def overview_day() -> ResponseReturnValue:
    """The numbers of the last day, which refresh themselves."""
    return page("overview_day.html", day=read_day())


@blp.get("/overview/health")
@route_facts(polled=True)
def overview_health() -> ResponseReturnValue:
    """Whether each part is up. Loaded separately, because an absent worker takes a second to detect."""
    faults = health.faults()
    parts = [FaultyPart.of(*PARTS[name], fault) for name, fault in faults.items() if fault is not None]
    silent, isolated = ([], []) if faults["redis"] else (_open_breakers(), _isolated())
    return page("overview_health.html", parts=parts, silent=silent, isolated=isolated)


def _isolated() -> list[tuple[str, str]]:
    """Workers that cannot reach a provider that other workers may reach: pairs of worker and provider."""
    isolated = services().stores.heartbeats.live_processes().isolated()
    return [(worker, registry.service(provider)) for worker, each in isolated.items() for provider in each]


def _open_breakers() -> list[OpenBreaker]:
    """The circuit breakers that are open now, for a provider or for some of its accounts."""
    states = services().stores.provider_limits.states(CIRCUIT_KEYS)
    return [
        OpenBreaker(
            registry.service(key.provider),
            WORDS[key.access],
            breaker,
            datetime.now(UTC) - timedelta(seconds=breaker.ago),
        )
        for key, breaker in states.items()
        if breaker.open or breaker.accounts
    ]


def _steps(setup: Setup, registrations: list[Registration]) -> list[Step]:
    """The setup steps; empty once all but the last are done, as opening the explorer is not recorded.

    Steps that the person's role does not permit are left out.
    """
    steps = [
        Step(
            "Configure a provider",
            f"Register this installation with {registry.titles('or')}, and enter what they give you.",
            url_for("dashboard.settings"),
            any(each.configured for each in registrations),
            "save_registration",
        ),
        Step(
            "Create an API key",
            "Your programs call the API with it.",
            url_for("dashboard.keys"),
            setup.keys > 0,
            "new_key",
        ),
        Step(
            "Create a user",
            "A person whose calendars are read, under an identifier that you choose.",
            url_for("dashboard.users"),
            setup.users > 0,
            "create_user",
        ),
        Step(
            "Connect an account",
            "The user's page makes a link by which the user gives consent.",
            url_for("dashboard.users"),
            setup.connections > 0,
            "connect",
        ),
        Step(
            "Open the explorer",
            "See when people are free, and why.",
            url_for("dashboard.explorer"),
            False,
            "explorer",
        ),
    ]
    if all(step.done for step in steps[:-1]):
        return []
    permitted = [step for step in steps if roles.may(step.route)]
    return permitted if len(permitted) > 1 else []


# The time for both, in seconds; they are read in parallel.
SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DayOfRequests:
    """The requests of the last day and the tasks that wait now; None where a part does not answer."""

    counts: Counts | None
    waiting: int | None

    @property
    def requests(self) -> int | None:
        """The requests below ``/v1``."""
        return None if self.counts is None else self.counts.requests().total

    @property
    def failed(self) -> int | None:
        """The requests that were answered with a server error."""
        return None if self.counts is None else self.counts.requests(status="5xx").total

    @property
    def unread(self) -> int | None:
        """The calls to providers that failed."""
        return None if self.counts is None else sum(self.counts.failed.values())

    @property
    def from_cache(self) -> str | None:
        """The share of calendars that were answered from the cache; None without any."""
        if self.counts is None:
            return None
        cache = self.counts.cache
        every = cache.hits + cache.stale + cache.misses
        return f"{100 * (cache.hits + cache.stale) / every:.0f} %" if every else None


def read_day() -> DayOfRequests:
    """The numbers now."""
    ours = services()
    found = ours.probes.run(
        {"day counted": partial(_counts, ours), "queues counted": lambda: broker.lengths(ours.settings)},
        seconds=SECONDS,
    )
    counts, lengths = found["day counted"], found["queues counted"]
    return DayOfRequests(
        None if isinstance(counts, Fault) else counts,
        None if isinstance(lengths, Fault) else sum(lengths.values()),
    )


def _counts(ours: Services) -> Counts:
    # Include the requests that this process has counted since its last periodic flush.
    ours.stores.counters.flush()
    until = now_ms()
    return together(point.counts for point in ours.stores.counters.points(until - DAY, until))
