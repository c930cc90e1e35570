"""The whole installation under load, and its people at the sandbox."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from app.server.supervisor import sandbox_environment
from providers.sandbox.client import Sandbox, SandboxDomain
from providers.sandbox.process import running
from store.config.settings import new_secrets
from tests import services
from tests.databases import own_postgresql
from tests.installation.builder import Installation, installed
from tests.people import grant_of
from tests.receiver import Receiver, receiving
from tests.soak.model import MINUTE, START, Calendar, Period, Person, text

PROVIDERS = ("google", "microsoft")
DOMAINS = {"google": "google.example", "microsoft": "microsoft.example"}
# The account that Google's bundles are read as, and the application that reads Microsoft's mailboxes.
SUBJECT, APPLICATION = "admin@google.example", "almanac"
AUTHORIZED = {
    "google": {"subject": SUBJECT},
    "microsoft": {"clientId": APPLICATION, "clientSecret": "planted-secret"},
}
# Seconds for which the cache may show the state before a change made elsewhere.
TTL = 4
DEADLINE = 3
MEETINGS = 12
# Seconds for the start of everything, also on a busy machine.
START_SECONDS = 300.0


@dataclass
class SoakInstallation:
    """``circles`` are the people of each client; they form an organization with the client's number.

    Every other one is read by the grants of the organization, the rest by connections of their own. The last
    one is a second user with the calendars of the first.
    """

    almanac: Installation
    sandbox: Sandbox
    receiver: Receiver
    circles: list[list[Person]]
    database: str

    def refusable(self) -> list[Calendar]:
        """The calendars of which a part of a batch may be refused: a few, which no grant reads."""
        personal = [person for circle in self.circles for person in circle[1::2]]
        found = [
            each for person in personal for each in person.calendars if each.account.provider == "microsoft"
        ]
        return found[:4]

    def mailboxes_by_grant(self) -> list[str]:
        """The addresses at Microsoft that are read by grants."""
        return [
            each.account.email
            for circle in self.circles
            for person in by_grant(circle)
            for each in person.calendars
            if each.account.provider == "microsoft"
        ]


@contextmanager
def soak_installation(people: int, clients: int, seed: int) -> Iterator[SoakInstallation]:
    """Web with two processes, two workers, beat, sandbox, a Redis of its own; PostgreSQL where it is."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="almanac-soak-")))
        sandbox = Sandbox(stack.enter_context(running()))
        present = services.postgresql().present
        url = stack.enter_context(own_postgresql()) if present else f"sqlite:///{folder / 'almanac.db'}"
        secret, encryption = new_secrets()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
        environment = clean | sandbox_environment(sandbox.url)
        environment |= {
            "ALMANAC_DATABASE_URL": url,
            "ALMANAC_SECRET_KEY": secret,
            "ALMANAC_ENCRYPTION_KEYS": encryption,
            "ALMANAC_BUSY_TTL": str(TTL),
            "ALMANAC_FANOUT_DEADLINE": str(DEADLINE),
            "ALMANAC_FAILURE_TTL": "0",
            "ALMANAC_WEBHOOKS_ALLOW_PRIVATE": "true",
            # The sandbox has no quotas, and the load is above any quota.
            "ALMANAC_GOOGLE_PER_MINUTE": "10000000",
            "ALMANAC_GOOGLE_PER_MINUTE_AND_USER": "1000000",
            "ALMANAC_MICROSOFT_PER_MAILBOX": "10000000",
        }
        receiver = stack.enter_context(receiving())
        made = stack.enter_context(
            installed(
                environment, folder, web=2, workers=("worker1", "worker2"), beat=True, patience=START_SECONDS
            )
        )
        answer = made.call("POST", "/webhooks", json={"url": receiver.url})
        assert answer.status_code == 201, answer.text
        domains = [
            sandbox.domain(provider, DOMAINS[provider], **AUTHORIZED[provider]) for provider in PROVIDERS
        ]
        random = Random(seed)
        circles = []
        for number in range(clients):
            people_of = [_person(sandbox, random, n) for n in range(number, people, clients)]
            people_of.append(Person(f"{people_of[0].user}-again", people_of[0].calendars))
            _organize(made, f"circle-{number}", people_of, domains)
            circles.append(people_of)
        yield SoakInstallation(made, sandbox, receiver, circles, "PostgreSQL" if present else "SQLite")


def _person(sandbox: Sandbox, random: Random, number: int) -> Person:
    """Every third has both accounts."""
    providers = PROVIDERS if number % 3 == 2 else (PROVIDERS[number % 2],)
    return Person(f"person-{number}", [_calendar(sandbox, random, each, number) for each in providers])


def _calendar(sandbox: Sandbox, random: Random, provider: str, number: int) -> Calendar:
    meetings = [meeting(random) for _ in range(MEETINGS)]
    account = sandbox.account(
        provider,
        f"person-{number}@{DOMAINS[provider]}",
        events=[{"start": text(a), "end": text(b), "subject": "Seeded"} for a, b in meetings],
    )
    return Calendar(account, {f"seeded-{n}": each for n, each in enumerate(meetings)})


def by_grant(circle: Sequence[Person]) -> Sequence[Person]:
    """The people of a circle who are read by the grants of their organization."""
    return circle[:-1:2]


def meeting(random: Random) -> Period:
    """In the requested week, and at minutes of the clock at which people meet.

    The worker's cache of timestamps would otherwise grow for half an hour, up to its bound.
    """
    start = START + random.randrange(0, 7 * 24 * 60 - 180, 5) * MINUTE
    return start, start + random.choice((15, 25, 30, 45, 60, 90, 120)) * MINUTE


def _organize(
    made: Installation, slug: str, people: Sequence[Person], domains: Sequence[SandboxDomain]
) -> None:
    """An organization in which every other member is read by its grants."""
    _call(made, "POST", "/organizations", {"slug": slug, "name": None})
    for domain in domains:
        path = f"/organizations/{slug}/grants/{domain.provider}"
        _call(made, "PUT", path, grant_of(domain))
        imported = [
            {"userId": person.user, "email": each.account.email}
            for person in by_grant(people)
            for each in person.calendars
            if each.account.provider == domain.provider
        ]
        _call(made, "POST", f"{path}/members", {"members": imported})
    delegated = by_grant(people)
    personal = [
        made.user(each.user, *(calendar.account for calendar in each.calendars))
        for each in people
        if each not in delegated
    ]
    _call(made, "POST", f"/organizations/{slug}/members", {"userIds": personal})


def _call(made: Installation, method: str, path: str, body: Any) -> None:
    answer = made.call(method, path, json=body)
    assert answer.ok, answer.text
