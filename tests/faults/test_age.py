"""A history in which notifications are lost, the web tier is away and everything is killed during writes.

Readers ask all the time. No answer may offer a time for longer than the highest age allows, nor, after the
web tier was away, for longer than an unwatched calendar is cached.

``ALMANAC_HISTORY_SECONDS=3600 ALMANAC_HISTORY_DEFAULTS=1`` runs an hour with the default settings, in which
the web tier is also away for 200 seconds.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta

import pytest
import requests

from providers.sandbox.client import SandboxAccount
from store.cache.busy_cache import MARK_MARGIN_SECONDS, CalendarKey
from store.sql.queries import connection_rows
from tests.app.at_provider import INSERT, AtProvider
from tests.faults.history import HOUR, Gap, History, Reader, Times, table
from tests.faults.installation import PATIENCE, PROVIDERS, children
from tests.faults.measured import Measured, keep
from tests.faults.questions import Verdict
from tests.faults.witness import CUT_OFF
from tests.installation.builder import Installation, installed
from tests.installation.processes import free_port
from tests.waiting import until

DEFAULTS = bool(os.environ.get("ALMANAC_HISTORY_DEFAULTS"))
SECONDS = float(os.environ.get("ALMANAC_HISTORY_SECONDS", "180"))
TIMES = Times(600.0, 60.0, 10.0) if DEFAULTS else Times(max_age=10.0, ttl=1.0, deadline=2.0)
PAUSE = 1.0 if DEFAULTS else 0.3
# The share of notifications that are lost.
LOST = 0.75
AWAY = (2.0, 2.0, 20.0, 200.0) if DEFAULTS else (2.0, 2.0, 20.0)
SEED = 20_261_126

pytestmark = [pytest.mark.faults, pytest.mark.timeout(SECONDS + 3000)]


@pytest.fixture
def installation(environment, tmp_path) -> Iterator[Installation]:
    port = free_port()
    changed = {
        "ALMANAC_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "ALMANAC_MAX_AGE": f"{TIMES.max_age:g}",
        "ALMANAC_BUSY_TTL": f"{TIMES.ttl:g}",
        "ALMANAC_FANOUT_DEADLINE": f"{TIMES.deadline:g}",
    }
    with installed(
        environment, tmp_path, web=2, beat=True, port=port, patience=PATIENCE, **changed
    ) as installation:
        yield installation


class Calendar:
    """A watched calendar, and what happens to it."""

    def __init__(self, installation: Installation, sandbox, account: SandboxAccount) -> None:
        tomorrow = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        self.history = History(TIMES, tomorrow)
        self.installation, self.sandbox, self.account = installation, sandbox, account
        self.user = installation.user(f"user-{account.provider}", account)
        self.there = AtProvider(sandbox, account)
        self.lost = 0
        installation.get(f"/users/{self.user}/calendar/busy", start=tomorrow, end=tomorrow + HOUR)
        with installation.stores.database.reading() as session:
            (ref,) = connection_rows.of_user(session, self.user, organization_id=None) or []
        self.key = CalendarKey(ref.id, "primary")
        until(lambda: installation.stores.busy.watched([self.key])[0])

    @property
    def slots(self) -> str:
        return f"{self.installation.url}/v1/users/{self.user}/scheduling"

    def change(self, *, lost: bool) -> None:
        """Create an event as another program does; its notification may be lost."""
        if lost:
            self.lost += 1
            self.sandbox.fault(operation=f"{self.account.provider}.push", body="lost")
        start = self.history.next_hour()
        utc = {} if self.account.provider == "google" else {"timeZone": "UTC"}
        form = "%Y-%m-%dT%H:%M:%SZ" if not utc else "%Y-%m-%dT%H:%M:%S"
        edges = {"start": start, "end": start + HOUR}
        self.there.post(**{name: {"dateTime": f"{at:{form}}", **utc} for name, at in edges.items()})
        self.history.exists(start, time.monotonic())

    def write(self) -> bool:
        """Create an event through the API; it may not be offered once that is answered."""
        start = self.history.next_hour()
        path = f"/users/{self.user}/calendar/events/{self.account.provider}/primary"
        body = {"start": start.isoformat(), "end": (start + HOUR).isoformat()}
        began = time.monotonic()
        with suppress(requests.RequestException):
            if self.installation.call("POST", path, json=body).status_code == 201:
                now = time.monotonic()
                self.history.exists(start, now, now)
                return True
        # It may have been executed. The mark of the write ends with its deadline and the margin.
        if any(start.isoformat()[:16] in str(event["start"]) for event in self.there.events()):
            self.history.exists(start, time.monotonic(), began + TIMES.deadline + MARK_MARGIN_SECONDS)
        return False


class Director:
    """Breaks the installation, and repairs it."""

    def __init__(self, installation: Installation, sandbox, calendars: list[Calendar]) -> None:
        self.installation, self.sandbox, self.calendars = installation, sandbox, calendars
        self.random = random.Random(SEED)
        self.killed_writes = 0

    def calm(self, seconds: float) -> None:
        """Changes elsewhere, most of them without notification, and some writes of our own."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            calendar = self.random.choice(self.calendars)
            if self.random.random() < 0.1:
                calendar.write()
            else:
                calendar.change(lost=self.random.random() < LOST)
                self.sandbox.clear_faults()
            time.sleep(self.random.uniform(0.1, 0.3) * TIMES.max_age)

    def away(self, seconds: float) -> None:
        """No web process runs for a while; calendars change without notification."""
        killed = self.random.random() < 0.5
        processes = children(self.installation.parts["web"].pid)
        begin = time.monotonic()
        if killed:
            self.installation.kill("web")
        else:
            for each in processes:
                os.kill(each, signal.SIGSTOP)
        time.sleep(seconds / 2)
        for calendar in self.calendars:
            calendar.change(lost=True)
        time.sleep(seconds / 2)
        self.sandbox.clear_faults()
        end = time.monotonic()
        if killed:
            self.installation.start("web")
            until(self.installation.ready, PATIENCE)
        else:
            for each in processes:
                os.kill(each, signal.SIGCONT)
        self._gap(begin, end)

    def kill_during_a_write(self) -> None:
        """Web and workers are killed while the provider executes a create, without notification."""
        calendar = self.random.choice(self.calendars)
        provider = calendar.account.provider
        self.sandbox.forget_requests()
        self.sandbox.fault(operation=f"{provider}.push", body="lost")
        self.sandbox.fault(operation=INSERT[provider], latency_ms=TIMES.deadline * 800)
        writing = threading.Thread(target=calendar.write)
        writing.start()
        until(lambda: self.sandbox.requests().by_operation.get(INSERT[provider]))
        begin = time.monotonic()
        for part in ("worker1", "web"):
            self.installation.kill(part)
        writing.join()
        self.sandbox.clear_faults()
        end = time.monotonic()
        for part in ("worker1", "web"):
            self.installation.start(part)
        until(self.installation.ready, PATIENCE)
        self._gap(begin, end)
        self.killed_writes += 1

    def _gap(self, begin: float, end: float) -> None:
        for calendar in self.calendars:
            calendar.history.gaps.append(Gap(begin, end))


def test_no_answer_offers_a_time_for_longer_than_it_may(installation, sandbox, capsys):
    # The tests change events with the first access token for the whole time.
    lifetime = int(SECONDS) + 3600
    accounts = [sandbox.account(each, f"{each}@example.com", expires_in=lifetime) for each in PROVIDERS]
    calendars = [Calendar(installation, sandbox, each) for each in accounts]
    director = Director(installation, sandbox, calendars)
    end = time.monotonic() + SECONDS
    with ExitStack() as reading:
        for calendar in calendars:
            reading.enter_context(Reader(calendar.slots, installation.key, calendar.history, PAUSE))
        while time.monotonic() < end:
            for seconds in AWAY:
                director.calm(2 * TIMES.max_age if not DEFAULTS else 120)
                director.away(seconds)
            director.calm(TIMES.max_age if not DEFAULTS else 120)
            director.kill_during_a_write()
        # The last changes are seen too.
        time.sleep(TIMES.max_age + 2)

    rows = [(calendar.account.provider, calendar.history) for calendar in calendars]
    with capsys.disabled():
        sys.stdout.write(f"\n{table(rows)}\n")
    for calendar in calendars:
        history = calendar.history
        assert not history.wrong(), history.wrong()[:5]
        # An age is that of the answer, and a request takes a while.
        assert all(each.age <= TIMES.max_age + each.ended - each.began + 1 for each in history.answers)
        # All of it has happened: cached answers that only push allows, lost notifications, gaps.
        assert any(each.age > TIMES.ttl + 1 for each in history.answers)
        assert calendar.lost
        last = history.answers[-1].offered
        assert not [each for each in history.events if each.start in last]
    assert director.killed_writes
    _keep([calendar.history for calendar in calendars])


def _keep(histories: list[History]) -> None:
    """Store the row of docs/engineering/reliability.md."""
    answers = [each for history in histories for each in history.answers]
    seen = Counter(error for history in histories for error in history.errors)
    cut_off = sum(count for kind, count in seen.items() if not kind.isdigit())
    keep(
        Measured(
            "test_age.py::test_no_answer_offers_a_time_for_longer_than_it_may",
            f"for {SECONDS:.0f} s, three of four notifications are lost, no web process runs for {AWAY[0]:g} "
            f"and {AWAY[-1]:g} s, and web and workers are killed during writes",
            {Verdict.RIGHT: len(answers), CUT_OFF: cut_off}
            | {kind: count for kind, count in seen.items() if kind.isdigit()},
            round(max(each.ended - each.began for each in answers), 1),
            round(max(history.back() for history in histories), 1),
            writes=0,
            again=0,
        )
    )
