"""How old an answer may be when notifications are lost, or no web process could take them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from app.services import EXTENSION
from providers.sandbox.client import SandboxAccount
from store.cache.busy_cache import CLOCK_MARGIN, GAP_KEY, CalendarKey
from store.sql.queries import connection_rows
from tests.app.at_provider import AtProvider
from tests.app.days import PROVIDERS
from tests.app.provider_installation import DAY, READ, Person, installed, kept, when
from tests.faults.installation import children
from tests.installation import builder
from tests.installation.builder import Installation
from tests.installation.processes import free_port
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

# Seconds for the start of processes on a busy machine.
PATIENCE = 150.0

# Seconds for which watched calendars are used, and unwatched ones.
MAX_AGE, TTL = 5.0, 1.0


@pytest.fixture(scope="module")
def aging(environment, tmp_path_factory) -> Iterator[Any]:
    times = {"ALMANAC_MAX_AGE": f"{MAX_AGE:g}", "ALMANAC_BUSY_TTL": f"{TTL:g}"}
    with installed(environment, tmp_path_factory.mktemp("aging"), **times) as made:
        yield made


@pytest.fixture
def person(aging, sandbox, unique):
    """A user whose calendar is watched, with a meeting at nine tomorrow."""

    def make(provider: str) -> Person:
        events = [{"start": f"{when(9)}Z", "end": f"{when(10)}Z"}]
        account = sandbox.account(provider, f"{unique('ada')}@example.com", events=events)
        made = aging.person(sandbox, unique("user"), account)
        made.settle()
        return made

    return make


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_change_without_notification_is_seen_within_the_highest_age(person, provider):
    ada = person(provider)
    ada.sandbox.fault(operation=f"{provider}.push", body="lost")
    ada.meet(12)
    changed = time.monotonic()
    until(lambda: ada.busy() == ["09:00", "12:00"])

    # With the time that a request takes on a busy machine.
    assert time.monotonic() - changed < MAX_AGE + 3
    assert ada.is_watched()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_audits_keep_the_answers_of_a_calendar_in_use_young_and_cached(person, aging, provider):
    ada = person(provider)
    end = time.monotonic() + 3 * MAX_AGE
    ages = []
    url = f"{aging.settings.public_url}/v1/users/{ada.user}/scheduling"
    headers = {"Authorization": f"Bearer {aging.api.key}"}
    while time.monotonic() < end:
        aging.keep()
        answer = requests.get(url, params={"slotDuration": "30", **DAY}, headers=headers, timeout=30)
        assert answer.status_code == 200, answer.text
        ages.append(int(answer.headers["Age"]))
        time.sleep(MAX_AGE / 20)

    assert TTL < max(ages) <= MAX_AGE
    # Without push there would be one in each second.
    assert 2 <= ada.reads <= 6


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_channel_that_the_provider_drops_is_noticed(person, aging, provider):
    ada = person(provider)
    assert ada.sandbox.drop_channels(email=ada.account.email) == 1
    channel = ada.channel
    ada.meet(18)
    of_web = aging.api.client.application.extensions[EXTENSION].stores

    def noticed() -> bool:
        # As the web processes do, in the background.
        of_web.asked_calendars.flush()
        return ada.busy() == ["09:00", "18:00"] and ada.channel != channel

    kept(aging, noticed)
    # Another is opened in its place, which works.
    until(ada.is_watched, meanwhile=ada.busy)
    ada.busy()
    ada.meet(20)
    until(lambda: "20:00" in ada.busy())


class Watched:
    """A user of an installation with a web tier of its own, whose calendar is watched."""

    def __init__(self, made: Installation, sandbox, account: SandboxAccount) -> None:
        self.made, self.sandbox, self.account = made, sandbox, account
        self.user = made.user("ada", account)
        self.busy()
        with made.stores.database.reading() as session:
            (ref,) = connection_rows.of_user(session, self.user, organization_id=None) or []
        self.key = CalendarKey(ref.id, "primary")
        until(lambda: made.stores.busy.watched([self.key])[0])
        self.settle("09:00")

    def settle(self, *hours: str) -> None:
        """Cache the calendar, and wait until that is older than an unwatched calendar may be."""
        redis = self.made.stores.redis
        until(lambda: time.time() * 1000 > int(redis.get(GAP_KEY)) + CLOCK_MARGIN)
        self.made.stores.busy.invalidate_calendar(self.key)
        self.busy()
        time.sleep(TTL + 0.5)
        self.sandbox.forget_requests()
        assert self.busy() == [*hours]
        assert self.reads == 0

    def busy(self) -> list[str]:
        answer = self.made.get(f"/users/{self.user}/scheduling", slotDuration="60", **DAY)
        assert answer.status_code == 200, answer.text
        offered = {each["start"][11:16] for each in answer.json()["data"]["availableSlots"]}
        return [hour for hour in (f"{n:02d}:00" for n in range(24)) if hour not in offered]

    @property
    def reads(self) -> int:
        return self.sandbox.requests().by_operation.get(READ[self.account.provider], 0)

    def meet_unnoticed(self, hour: int) -> None:
        """Create an event of which the notification is lost."""
        provider = self.account.provider
        self.sandbox.fault(operation=f"{provider}.push", body="lost")
        utc = {} if provider == "google" else {"timeZone": "UTC"}
        suffix = "" if utc else "Z"
        AtProvider(self.sandbox, self.account).post(
            start={"dateTime": when(hour) + suffix, **utc}, end={"dateTime": when(hour + 1) + suffix, **utc}
        )


@contextmanager
def tier(environment, folder, sandbox, provider: str, web: int) -> Iterator[Watched]:
    port = free_port()
    changed = {"ALMANAC_PUBLIC_URL": f"http://127.0.0.1:{port}", "ALMANAC_BUSY_TTL": f"{TTL:g}"}
    with builder.installed(environment, folder, port=port, web=web, **changed) as made:
        events = [{"start": f"{when(9)}Z", "end": f"{when(10)}Z"}]
        account = sandbox.account(provider, "ada@example.com", events=events)
        yield Watched(made, sandbox, account)


def _paused(processes: list[int], seconds: float) -> None:
    for each in processes:
        os.kill(each, signal.SIGSTOP)
    time.sleep(seconds)
    for each in processes:
        os.kill(each, signal.SIGCONT)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_change_while_no_web_process_could_be_notified_is_seen_at_once(
    environment, tmp_path, sandbox, provider
):
    with tier(environment, tmp_path, sandbox, provider, web=2) as ada:
        web = children(ada.made.parts["web"].pid)
        assert len(web) == 2
        ada.meet_unnoticed(12)
        _paused(web, 2.0)
        assert ada.busy() == ["09:00", "12:00"]

        ada.settle("09:00", "12:00")
        ada.made.kill("web")
        ada.meet_unnoticed(14)
        ada.made.start("web")
        until(ada.made.answers, PATIENCE)
        assert ada.busy() == ["09:00", "12:00", "14:00"]

        ada.settle("09:00", "12:00", "14:00")
        before = ada.made.stores.redis.get(GAP_KEY)
        ada.meet_unnoticed(16)
        ada.made.stop("web")
        ada.made.start("web")
        until(ada.made.answers, PATIENCE)
        assert ada.made.stores.redis.get(GAP_KEY) != before
        assert ada.busy() == ["09:00", "12:00", "14:00", "16:00"]
