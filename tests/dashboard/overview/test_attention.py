"""What needs attention, on the overview and as filters of users."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from store.cache.busy_cache import now_ms
from store.cache.last_reads import LastRead
from store.sql.models import OAuthConnection, User, WebhookEndpoint, now
from store.sql.queries import api_keys, connections
from store.sql.queries.webhook_events import WebhookEvent
from tests.dashboard.installations import Installation
from tests.dashboard.visiting import words
from tests.store.webhook_world import WebhookWorld

LIST_ONLY = "https://www.googleapis.com/auth/calendar.calendarlist.readonly"


@pytest.fixture
def here(install) -> Installation:
    return install(broker_url="memory://")


@pytest.fixture
def world(here) -> WebhookWorld:
    return WebhookWorld(here.stores.database, here.stores.keyring)


def change(here, connection, **values):
    with here.stores.database.writing() as session:
        session.execute(update(OAuthConnection).where(OAuthConnection.id == connection).values(values))


def plant(here, world):
    """One problem of each kind, beside a user and an endpoint without any."""
    ids = {name: world.connection(name) for name in ("well", "gone", "blind", "short")}
    with here.stores.database.writing() as session:
        session.add(User(custom_id="nobody"))
        connections.mark_dead(session, ids["gone"], "Google says that it is gone")
        api_keys.create(session, prefix="alm_", name="soon", expires_at=now() + timedelta(days=3))
        api_keys.create(session, prefix="alm_", name="later", expires_at=now() + timedelta(days=90))
    change(here, ids["blind"], scope=["openid", LIST_ONLY])
    change(here, ids["short"], sealed_refresh_token=None, expires_at=now() + timedelta(hours=1))
    failing, _ = world.endpoint(), world.endpoint(events=[WebhookEvent.CONNECTION_RESTORED])
    world.record(WebhookEvent.CALENDAR_CHANGED, ids["well"], "calendar")
    world.fail(world.claim(failing))
    google = here.app.extensions["almanac"].settings.providers.google_client_id
    here.stores.registration_checks.note("google", google, accepted=False)
    return failing


@pytest.fixture
def planted(here, world):
    yield plant(here, world)
    here.stores.registration_checks.forget("google")


def listed(here):
    """The kinds on the overview, each with its count, the names, and the action."""
    found = {}
    for each in here.browser.get("/").html.select(".attention > li"):
        names = [words(name) for name in each.select(".plain-list a")]
        found[each["id"].removeprefix("attention-")] = (words(each.select_one(".badge")), names)
        assert each.select_one(".actions a.button")["href"].startswith("/dashboard/")
    return found


def read(here, connection, **failure):
    """Note a read as a worker does."""
    with here.stores.redis.pipeline(transaction=False) as pipe:
        here.stores.last_reads.note(pipe, [(connection, LastRead(now_ms(), **failure))])
        pipe.execute()


def test_who_cannot_be_booked_is_named_until_the_account_is_read(here, world):
    failing, ended, well = (world.connection(name) for name in ("failing", "ended", "well"))
    down = {"reason": "providerError", "message": "Google is down"}
    for each in (failing, ended):
        read(here, each, **down)
    read(here, well)
    with here.stores.database.writing() as session:
        connections.mark_dead(session, ended, "Google says that it is gone")

    assert listed(here)["unbookable"] == ("2", ["ended", "failing"])
    item = here.browser.get("/").html.find(id="attention-unbookable")
    assert "Google is down." in words(item)
    assert "Google says that it is gone" in words(item)
    # An invitation helps the one; the other is read again.
    assert item.select_one(".actions a.button")["href"] == "/dashboard/invitations/new?show=unread"
    invited = here.browser.get("/invitations/new?show=unread").html.find(id="f-users")
    assert words(invited) == "ended"
    for show in ("unread", "attention"):
        page = here.browser.get("/users", show=show)
        assert [words(each) for each in page.html.select("tbody th a")] == ["ended", "failing"]
    page = here.browser.get("/users", show="connected")
    assert [words(each) for each in page.html.select("tbody th a")] == ["well"]

    read(here, failing)
    assert listed(here)["unbookable"] == ("1", ["ended"])


def test_every_user_counts_however_many_fail(here, world):
    for number in range(30):
        read(here, world.connection(f"user-{number:02}"), reason="providerError", message="Google is down")
    count, names = listed(here)["unbookable"]
    assert (count, len(names)) == ("30", 5)
    assert "Cannot be booked now 30" in {
        words(each) for each in here.browser.get("/users").html.select(".filter a")
    }


def test_each_kind_is_listed_with_its_count_and_an_action(here, planted):
    assert listed(here) == {
        "registrations": ("1", ["Google"]),
        "unbookable": ("1", ["gone"]),
        "webhooks": ("1", ["https://example.com/"]),
        "no-calendars": ("1", ["blind"]),
        "expiring": ("1", ["short"]),
        "unconnected": ("1", ["nobody"]),
        "keys": ("1", ["soon"]),
    }


@pytest.mark.parametrize(
    ("show", "found"),
    [
        ("attention", ["blind", "gone", "nobody", "short"]),
        ("ended", ["gone"]),
        ("no-calendars", ["blind"]),
        ("expiring", ["short"]),
        ("unconnected", ["nobody"]),
        ("anything else", ["blind", "gone", "nobody", "short", "well"]),
    ],
)
def test_the_same_kinds_are_filters_of_the_users(here, planted, show, found):
    page = here.browser.get("/users", show=show)

    assert [words(each) for each in page.html.select("tbody th a")] == found
    chips = {words(each) for each in page.html.select(".filter a")}
    assert {"Needs attention 4", "Ended 1", "Never connected 1"} <= chips


def test_without_anything_it_claims_no_more_than_is_known(here, world):
    def said():
        return words(here.browser.get("/").html.find("section", {"aria-labelledby": "attention"}))

    # Nothing was read from any provider yet.
    assert said() == "Needs attention Nothing. No account is connected yet."
    world.connection("ada")
    assert "No provider has reported an ended connection" in said()
    assert "works" not in said()
    assert "not read yet" not in said()
    here.stores.last_reads.note_missing(1200)
    assert "1,200 accounts are not read yet" in said()
    here.stores.last_reads.note_missing(0)


def state_of(here, endpoint):
    rows = here.browser.get("/webhooks").html.select("tbody tr")
    (row,) = [each for each in rows if endpoint in each.a["href"]]
    return words(row.select_one(".badge"))


def test_webhook_with_failed_deliveries_is_shown_as_failing(here, world):
    endpoint, connection = world.endpoint(), world.connection()
    assert state_of(here, endpoint) == "nothing delivered yet"

    world.record(WebhookEvent.CALENDAR_CHANGED, connection, "calendar")
    world.fail(world.claim(endpoint))
    assert state_of(here, endpoint) == "failing"
    world.succeed(world.claim(endpoint))
    assert state_of(here, endpoint) == "enabled"

    world.record(WebhookEvent.CALENDAR_CHANGED, connection, "other")
    world.fail(world.claim(endpoint))
    with here.stores.database.writing() as session:
        session.get_one(WebhookEndpoint, endpoint).paused_at = now()
    assert state_of(here, endpoint) == "paused"
    assert "webhooks" not in listed(here)
