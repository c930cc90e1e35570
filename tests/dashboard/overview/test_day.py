"""The last day in numbers, and the health checks, which refresh themselves."""

from __future__ import annotations

import pytest

from app.dashboard.overview import pages
from app.observability import health
from app.observability.probes import Fault, FaultKind
from tests.dashboard.visiting import words

PART = {"HX-Request": "true"}


@pytest.fixture
def here(install):
    return install(broker_url="memory://")


def numbers(page):
    return {words(each.dt): words(each.dd) for each in page.html.select(".day > div")}


def test_the_numbers_refresh_themselves(here):
    page = here.browser.get("/")
    places = {each["hx-get"]: each["hx-trigger"] for each in page.html.find_all(attrs={"hx-trigger": True})}

    assert places["/dashboard/overview/day"] == "load, every 60s"
    assert places["/dashboard/overview/health"] == "load, every 15s"
    assert "Almanac" in words(page.html.select_one(".lead"))
    assert here.browser.get("/overview/day").heading == "The last 24 hours"


def test_the_requests_of_a_day_are_counted(here):
    before = numbers(here.browser.get("/overview/day", headers=PART))
    counters = here.stores.counters
    for status in ("2xx", "2xx", "5xx"):
        counters.request("busy", status, 0.01)
    counters.cache(hits=8, stale=1, misses=1)
    counters.failure("google", "rateLimited")

    after = numbers(here.browser.get("/overview/day", headers=PART))

    def grown(name):
        return int(after[name].replace(",", "")) - int(before[name].replace(",", ""))

    assert (grown("Requests"), grown("Failed requests"), grown("Failed provider calls")) == (3, 1, 1)
    assert after["Answered from the cache"].endswith("%")
    assert after["Tasks waiting now"].isdigit()


def test_what_does_not_answer_is_not_known(here, monkeypatch):
    monkeypatch.setattr(pages, "read_day", lambda: pages.DayOfRequests(None, None))

    assert set(numbers(here.browser.get("/overview/day")).values()) == {"not known"}


@pytest.mark.parametrize(
    ("kind", "badge", "advice"),
    [
        (FaultKind.UNREACHABLE, "not responding", "ALMANAC_DATABASE_URL"),
        (FaultKind.SLOW, "slow", "Check its load"),
        (FaultKind.OUTDATED, "not migrated", "almanac db upgrade"),
        (FaultKind.TOO_NEW, "too new", "start that version"),
    ],
)
def test_slow_outdated_and_unreachable_databases_have_own_badges(here, monkeypatch, kind, badge, advice):
    faults = dict.fromkeys(pages.PARTS) | {"database": Fault("says so", kind)}
    monkeypatch.setattr(health, "faults", lambda: faults)

    rows = [words(each) for each in here.browser.get("/overview/health").html.select(".rows li")]

    (database,) = [row for row in rows if row.startswith("Database")]
    assert database.startswith(f"Database {badge} ")
    assert advice in database
