"""The first page of the dashboard."""

from __future__ import annotations

import re

import pytest

from app.dashboard.overview.pages import PARTS
from app.observability import health
from store.sql.queries import api_keys, connections
from tests.dashboard.installations import Installation
from tests.dashboard.visiting import words
from tests.store.webhook_world import WebhookWorld


@pytest.fixture
def here(install) -> Installation:
    return install(broker_url="memory://")


@pytest.fixture
def bare(install) -> Installation:
    return install(registered=False)


@pytest.fixture
def world(here) -> WebhookWorld:
    return WebhookWorld(here.stores.database, here.stores.keyring)


def section(page, name):
    return page.html.find("section", {"aria-labelledby": name})


def add_key(installation, **more):
    with installation.stores.database.writing() as session:
        api_keys.create(session, prefix="alm_", name="test", **more)


def end(installation, connection, because="Google says that it is gone"):
    with installation.stores.database.writing() as session:
        connections.mark_dead(session, connection, because)


def test_the_overview_repeats_no_count_and_no_page(here, world):
    world.connection()

    page = here.browser.get("/")

    assert [words(each) for each in page.html.find_all("h2")] == [
        "First steps",
        "Needs attention",
        "The last 24 hours",
        "Health",
    ]
    assert page.html.select(".figures, #providers") == []
    assert "at a glance" not in page.text


def test_connections_that_ended_last_are_named_with_the_reason(here, world):
    for number in range(7):
        end(here, world.connection(f"user-{number}", email=f"{number}@example.com"), f"Reason {number}")

    item = here.browser.get("/").html.find(id="attention-unbookable")

    rows = item.select(".plain-list li")
    assert [words(row.find("a")) for row in rows] == [f"user-{number}" for number in (6, 5, 4, 3, 2)]
    assert rows[0].find("a")["href"] == "/dashboard/users/user-6"
    assert words(rows[0].select_one(".note")) == "Google: 6@example.com: Reason 6"
    assert "and 2 more" in words(item)


def test_new_installation_shows_a_checklist(bare):
    page = bare.browser.get("/")

    steps = [words(each.a) for each in page.html.select(".checklist li")]
    assert steps == [
        "Configure a provider",
        "Create an API key",
        "Create a user",
        "Connect an account",
        "Open the explorer",
    ]
    assert page.html.select(".checklist .done") == []


def test_steps_that_are_done_are_marked_and_go_with_the_last(here, world):
    def done():
        return [words(each.a) for each in here.browser.get("/").html.select(".checklist .done")]

    assert done() == ["Configure a provider"]
    add_key(here)
    assert done() == ["Configure a provider", "Create an API key"]
    world.connection()

    assert here.browser.page.html.select(".checklist") != []
    assert here.browser.get("/").html.select(".checklist") == []


@pytest.mark.usefixtures("worker")
def test_the_health_checks_run_after_the_page_has_loaded(signed_in):
    place = section(signed_in.get("/"), "health").find(attrs={"hx-get": True})
    assert place["hx-trigger"] == "load, every 15s"

    part = signed_in.get(place["hx-get"], headers={"HX-Request": "true"})

    # Beat does not run beside the tests: what responds is not listed.
    assert [words(each).split()[0] for each in part.html.select(".rows li")] == ["Beat"]
    assert part.html.find("h1") is None
    assert signed_in.get(place["hx-get"]).heading == "Health"


def test_a_part_that_does_not_answer_is_named_with_what_to_do(here):
    page = here.browser.get("/overview/health")

    *_, worker, beat = [words(each) for each in page.html.select(".rows li")]
    assert worker == "Worker not responding Start one: almanac worker. Without it no calendar is read."
    assert beat.startswith("Beat not responding Start exactly one: almanac beat.")


def test_health_without_a_fault_is_one_line(here, monkeypatch):
    monkeypatch.setattr(health, "faults", lambda: dict.fromkeys(PARTS))

    page = here.browser.get("/overview/health")

    assert page.html.select(".rows") == []
    assert words(page.html.select_one("main .quiet")).startswith(
        "The database, Redis, the worker and beat respond"
    )


@pytest.mark.slow
def test_an_open_circuit_breaker_is_shown_with_its_times(here, stores, open_breaker):
    def rows():
        found = [words(each) for each in here.browser.get("/overview/health").html.select(".rows li")]
        return [each for each in found if each.startswith(("Google", "Microsoft"))]

    assert rows() == []
    open_breaker("google", ago=90, seconds=9.5)
    expires = (stores.redis.time()[0] + 60) * 1000
    stores.redis.zadd("open-accounts:microsoft:writes", {"a": expires})
    google, microsoft = rows()
    assert google.startswith("Google Calendar: reads paused The provider has not answered these calls since ")
    assert "Until it answers, they fail at once" in google
    assert re.search(r"The first request after ([1-9]|10) seconds tests the provider again\.", google)
    assert microsoft.startswith(
        "Microsoft 365: changes of events 1 account paused Calls for this account failed repeatedly."
    )
    open_breaker("google", seconds=-9)
    assert "The next request tests the provider again." in rows()[0]
    open_breaker("google", seconds=-9, probed=60)
    assert "A request is testing the provider now." in rows()[0]


def test_a_worker_that_cannot_reach_a_provider_is_named(here, stores):
    def rows():
        found = [words(each) for each in here.browser.get("/overview/health").html.select(".rows li")]
        return [each for each in found if each.startswith("cut-off@")]

    assert rows() == []
    stores.heartbeats.record_worker("cut-off@a", used=0, places=64, unreachable=["google"])
    stores.heartbeats.record_worker("well@a", used=0, places=64)
    (row,) = rows()
    assert row.startswith("cut-off@a cannot reach Google Calendar Other workers make the calls")
    for worker in ("cut-off@a", "well@a"):
        stores.heartbeats.record_worker_exit(worker)
    assert rows() == []
