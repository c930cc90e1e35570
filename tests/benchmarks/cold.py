"""Organizations that nothing is cached of, over HTTP through every part, beside what waiting alone takes."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

import requests

from app.up import WORKER_PROCESSES, Everything
from providers.names import ProviderName
from providers.sandbox.client import Sandbox, SandboxAccount
from store.models import Membership, Organization, User
from store.queries import api_keys, connections
from store.queries.connections import Tokens
from store.settings import read_settings
from store.stores import Stores

LATENCY = 0.2
ROUNDS = 5
WEEK = {"start": "2026-11-23", "end": "2026-11-30"}


@dataclass(frozen=True)
class Cold:
    """Seconds of each round; ``ideal`` is latency x ceil(reads / in flight)."""

    members: int
    ideal: float
    first: float
    rounds: list[float]
    reads: int
    reads_when_cached: int

    @property
    def ratio(self) -> float:
        return median(self.rounds) / self.ideal


class Installation:
    """`almanac up --sandbox` on data of its own."""

    def __init__(self, url: str, sandbox: Sandbox, stores: Stores) -> None:
        self.url = url
        self.sandbox = sandbox
        self.stores = stores
        with stores.database.writing() as session:
            key = api_keys.create(session, prefix="alm_", name="benchmark")
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers["Authorization"] = f"Bearer {key}"

    def organization(self, members: int) -> str:
        """An organization, half of it on Google and half on Microsoft; returns its slug."""
        slug = f"org-{members}"
        half = members // 2
        accounts = self._accounts(ProviderName.GOOGLE, members - half, slug)
        accounts += self._accounts(ProviderName.MICROSOFT, half, slug)
        with self.stores.database.writing() as session:
            organization = Organization(slug=slug, name=None)
            session.add(organization)
            session.flush()
            for number, account in enumerate(accounts):
                user = User(custom_id=f"{slug}-{number}")
                session.add(user)
                session.flush()
                session.add(Membership(organization_id=organization.id, user_id=user.id))
                connections.replace(
                    session,
                    self.stores.keyring,
                    user_id=user.id,
                    provider=account.provider,
                    email=account.email,
                    scope=account.scope.split(),
                    tokens=Tokens(account.access_token, account.refresh_token, account.expires_at),
                )
        return slug

    def _accounts(self, provider: str, count: int, slug: str) -> list[SandboxAccount]:
        return self.sandbox.accounts_in_bulk(
            provider,
            count,
            email_pattern=f"{provider}{{n}}@{slug}.example",
            events_per_account=40,
            start=WEEK["start"],
            days=14,
            seed=1,
        )

    def slots(self, slug: str, *, fresh: bool) -> float:
        """Seconds that an organization's slots take; every member must be read."""
        headers = {"Cache-Control": "no-cache"} if fresh else {}
        url = f"{self.url}/v1/organizations/{slug}/scheduling"
        start = time.perf_counter()
        answer = self._session.get(url, params=WEEK, headers=headers, timeout=60)
        took = time.perf_counter() - start
        assert answer.status_code == 200, answer.text
        assert answer.json()["failedUsers"] == []
        return took


@contextmanager
def installation() -> Iterator[Installation]:
    """Everything, started for the benchmark and ended after it."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("ALMANAC_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="almanac-bench-") as folder:
        os.environ["ALMANAC_DATA_DIR"] = folder
        try:
            port, sandbox_port = _free_port(), _free_port()
            with (
                Everything(port, sandbox_port, report=lambda _: None) as everything,
                Stores(read_settings()) as stores,
            ):
                yield Installation(everything.url, Sandbox(f"http://127.0.0.1:{sandbox_port}"), stores)
        finally:
            os.environ.clear()
            os.environ.update(before)


def measure(running: Installation, members: int) -> Cold:
    """One organization, read anew in every round."""
    slug = running.organization(members)
    running.sandbox.fault(latency_ms=LATENCY * 1000)
    running.sandbox.forget_requests()
    first = running.slots(slug, fresh=False)
    reads = running.sandbox.requests().total
    running.slots(slug, fresh=False)
    again = running.sandbox.requests().total - reads
    rounds = [running.slots(slug, fresh=True) for _ in range(ROUNDS)]
    running.sandbox.clear_faults()
    in_flight = WORKER_PROCESSES * running.stores.settings.reads_in_flight
    return Cold(members, LATENCY * -(-reads // in_flight), first, rounds, reads, again)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
