"""A copy of a calendar that is made of its changes alone, at every provider (``worlds.py``)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import cast

import hypothesis
import pytest
import requests

from providers.base import Account, Failed
from providers.changes import ChangeFeed, ChangePage
from providers.errors import ProviderError, SyncTokenExpired
from providers.events import Event
from providers.google import change_feed
from providers.timestamps import instant
from tests.providers.caldav.servers import PASSWORD, USER
from tests.providers.caldav.world import CalDavWorld
from tests.providers.ical.texts import calendar
from tests.providers.ics.server import account as feed_account
from tests.providers.ics.world import FeedWorld
from tests.providers.other_clients import Client, GoogleClient, GraphClient, Others, TextClient, feed
from tests.providers.worlds import WORLDS, Fault, SandboxWorld, World, each_world

START, END = instant("2026-12-01T00:00:00Z"), instant("2026-12-31T00:00:00Z")
CHANGES = hypothesis.settings.default.max_examples if hypothesis.settings.default else 25
FAULTS = (Fault.DOWN, Fault.NO_ANSWER, Fault.THROTTLED)


@pytest.fixture(params=each_world())
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    found = WORLDS[request.param](request)
    yield found
    found.mend()


@dataclass
class Place:
    """A calendar, other applications that change it, and how its sync tokens expire."""

    world: World
    account: Account
    client: Client


def place_at(world: World, random: Random) -> Place:
    """A new calendar."""
    if isinstance(world, FeedWorld):
        server = world.server
        account = feed_account(server.put(calendar(), "/changes.ics"))
        client = TextClient(random, lambda texts, _: cast("None", server.put(feed(texts), "/changes.ics")))
        return Place(world, account, client)
    account = world.account()
    if isinstance(world, CalDavWorld):
        return Place(world, account, TextClient(random, lambda texts, uid: _store(world, texts, uid)))
    if not isinstance(world, SandboxWorld):
        assert not hasattr(world.adapter, "changes"), f"{world.name} needs a client that changes calendars"
        pytest.skip("the provider does not read changes")
    token = account.tokens.access_token(deadline=0).reveal
    if world.name == "google":
        path = f"{world.sandbox.url}/google/calendar/v3/calendars/primary/events"
        return Place(world, account, GoogleClient(path, token))
    path = f"{world.sandbox.url}/microsoft/v1.0/me/calendar/events"
    return Place(world, account, GraphClient(path, token))


def _store(world: CalDavWorld, texts: dict[str, str], uid: str) -> None:
    # Half of the names are not the UID.
    name = f"{uid}.ics" if int(uid[0], 16) % 2 else f"object-{uid[:8]}.ics"
    url = f"{world.main_calendar}{name}"
    body = calendar(texts[uid]) if uid in texts else None
    answer = requests.request(
        "DELETE" if body is None else "PUT",
        url,
        data=body,
        auth=(USER, PASSWORD),
        headers={"Content-Type": "text/calendar; charset=utf-8"},
        timeout=10,
    )
    assert answer.ok, answer.text


@dataclass
class Mirror:
    """A copy of a calendar; ``expired`` counts how often it began again."""

    place: Place
    events: dict[str, Event] = field(default_factory=dict)
    sync_token: str | None = None
    pages: int = 0
    expired: int = 0
    failed: int = 0

    def page(self) -> ChangePage:
        """Read the next page, and take its changes."""
        adapter = cast("ChangeFeed", self.place.world.adapter)
        deadline = time.monotonic() + 20
        page = adapter.changes(self.place.account, "primary", START, END, self.sync_token, deadline=deadline)
        for each in (*page.deleted, *(event.id for event in page.updated)):
            self.events = {
                key: kept for key, kept in self.events.items() if each not in (key, kept.recurring_event_id)
            }
        self.events |= {event.id: event for event in page.updated}
        self.sync_token = page.sync_token
        self.pages += 1
        return page

    def follow(self) -> None:
        """Read until nothing is left; failed pages are read again, and an expired token begins again.

        The last page may be of a list that others have changed since its first page.
        """
        more = True
        while more:
            try:
                page = self.page()
                more = page.more or bool(page.updated or page.deleted)
            except SyncTokenExpired:
                self.expired += 1
                self.events, self.sync_token = {}, None
            except ProviderError:
                self.failed += 1
                self.place.world.mend()


def listed(place: Place) -> dict[str, Event]:
    """The events that the list has."""
    deadline = time.monotonic() + 20
    found = place.world.adapter.events(place.account, ["primary"], START, END, deadline=deadline)["primary"]
    assert not isinstance(found, Failed), found
    return {each.id: each for each in found}


@pytest.mark.timeout(3600)
def test_a_copy_made_of_the_changes_equals_the_calendar(world, monkeypatch):
    monkeypatch.setattr(change_feed, "CHANGES_PER_PAGE", 5)
    random = Random(41)
    place = place_at(world, random)
    others = Others(place.client, random)
    mirror = Mirror(place)
    names: list[str] = []
    while len(names) < CHANGES * 4:
        names += [others.change() for _ in range(random.randrange(12))]
        if random.random() < 0.3:
            world.fault(random.choice(FAULTS), times=random.randrange(1, 4))
        if random.random() < 0.1 and isinstance(world, SandboxWorld):
            world.sandbox.expire_sync_tokens(world.name)
        if random.random() < 0.3 and mirror.pages:
            # Others change the calendar between two pages.
            try:
                mirror.page()
            except ProviderError:
                world.mend()
                mirror.events, mirror.sync_token = {}, None
            names.append(others.change())
        mirror.follow()
        world.mend()
        assert mirror.events == listed(place), names[-15:]
    assert mirror.events
    assert mirror.pages > 10
