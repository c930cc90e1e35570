"""The first page: the state of the installation, and the next steps of its setup."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from flask import url_for
from flask.typing import ResponseReturnValue
from sqlalchemy.orm import Session

from app.accounts import oauth_clients
from app.accounts.oauth_clients import Registration
from app.dashboard.blueprint import blp, page
from app.dashboard.providers import badge_of
from app.http.hosts import base_url
from app.observability import health
from app.observability.metrics import CIRCUIT_KEYS
from app.services import services
from store.coordination.circuit_breaker import CircuitState, Family
from store.sql.queries import api_keys, connections, deliveries, organization_grants, organizations, users
from store.sql.queries.connections import Standing
from workers.execution.call_policy import TITLES

# The page lists at most this many ended connections and grants, the latest first.
MOST_ENDED = 5

PARTS = {
    "beat": ("Beat", "Start exactly one: almanac beat. Without it no token is renewed ahead of time."),
    "database": ("Database", "Check that it runs, and that its tables are up to date: almanac db upgrade."),
    "redis": ("Redis", "Check that it runs, and ALMANAC_REDIS_URL."),
    "worker": ("Worker", "Start one: almanac worker. Without it no calendar is read."),
}


WORDS = {
    Family.BUSY: "busy periods",
    Family.CALENDARS: "lists of calendars",
    Family.EVENTS: "events",
    Family.WRITES: "changes of events",
    Family.CHANNELS: "push channels",
}


class OpenBreaker(NamedTuple):
    """A provider with an open circuit breaker, for all its accounts or for some.

    ``calls`` names the kind of call that is blocked. ``since`` is when the breaker opened.
    """

    title: str
    calls: str
    breaker: CircuitState
    since: datetime


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts of the whole installation; ``waiting`` is of webhook deliveries."""

    users: int
    organizations: int
    connections: dict[str, Standing]
    keys: int
    waiting: int

    @property
    def alive(self) -> int:
        """Connections that work."""
        return sum(each.alive for each in self.connections.values())

    @property
    def dead(self) -> int:
        """Connections whose grant has ended."""
        return sum(each.dead for each in self.connections.values())


class Step(NamedTuple):
    """One step in setting up a new installation."""

    title: str
    hint: str
    address: str
    done: bool


@blp.get("/", strict_slashes=False)
def overview() -> ResponseReturnValue:
    """The page. The number of SQL statements does not depend on the amount of data."""
    with services().stores.database.reading() as session:
        figures = _figures(session)
        ended = connections.dead(session, limit=MOST_ENDED)
        ended_grants = organization_grants.dead(session, limit=MOST_ENDED)
    registrations = oauth_clients.overview(base_url())
    return page(
        "overview.html",
        figures=figures,
        ended=ended,
        ended_grants=ended_grants,
        providers=registrations,
        titles={each.provider.value: each.title for each in registrations},
        badge_of=badge_of,
        steps=_steps(figures, registrations),
    )


@blp.get("/overview/health")
def overview_health() -> ResponseReturnValue:
    """Whether each part is up. Loaded separately, because an absent worker takes a second to detect."""
    faults = health.faults()
    parts = [(*PARTS[name], fault is None) for name, fault in faults.items()]
    silent, isolated = ([], []) if faults["redis"] else (_open_breakers(), _isolated())
    return page("overview_health.html", parts=parts, silent=silent, isolated=isolated)


def _isolated() -> list[tuple[str, str]]:
    """Workers that cannot reach a provider that other workers may reach: pairs of worker and provider."""
    isolated = services().stores.heartbeats.present().isolated()
    return [(worker, TITLES[provider]) for worker, each in isolated.items() for provider in each]


def _open_breakers() -> list[OpenBreaker]:
    """The circuit breakers that are open now, for a provider or for some of its accounts."""
    states = services().stores.circuit_breakers.states(CIRCUIT_KEYS)
    return [
        OpenBreaker(
            TITLES[key.provider],
            WORDS[key.family],
            breaker,
            datetime.now(UTC) - timedelta(seconds=breaker.ago),
        )
        for key, breaker in states.items()
        if breaker.open or breaker.accounts
    ]


def _figures(session: Session) -> Figures:
    return Figures(
        users=users.count(session),
        organizations=organizations.count(session),
        connections=connections.counts(session),
        keys=api_keys.count_in_force(session),
        waiting=deliveries.waiting(session),
    )


def _steps(figures: Figures, registrations: list[Registration]) -> list[Step]:
    """The setup steps; empty once all but the last are done, as opening the explorer is not recorded."""
    steps = [
        Step(
            "Configure a provider",
            "Register this installation with Google or Microsoft, and enter what they give you.",
            url_for("dashboard.settings"),
            any(each.configured for each in registrations),
        ),
        Step(
            "Create an API key",
            "Your programs call the API with it.",
            url_for("dashboard.keys"),
            figures.keys > 0,
        ),
        Step(
            "Create a user",
            "A person whose calendars are read, under an identifier that you choose.",
            url_for("dashboard.users"),
            figures.users > 0,
        ),
        Step(
            "Connect an account",
            "The user's page makes a link by which the user gives consent.",
            url_for("dashboard.users"),
            figures.alive + figures.dead > 0,
        ),
    ]
    if all(step.done for step in steps):
        return []
    explore = Step(
        "Open the explorer", "See who is free when, and why.", url_for("dashboard.explorer"), False
    )
    return [*steps, explore]
