"""The cookie, and the session behind it."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from app.http.routes import declared_facts
from store.sql.models import now
from store.sql.queries import administrators, dashboard_sessions, webhook_events, webhooks
from tests.dashboard.routes import rules
from tests.dashboard.visiting import Browser


def signing_in(browser, person):
    """The cookie of the session that signing in sets, with its attributes."""
    cookies = browser.sign_in(person).headers.getlist("Set-Cookie")
    (cookie,) = [each for each in cookies if each.startswith("almanac=")]
    value, *attributes = cookie.split("; ")
    return value, {each for each in attributes if not each.startswith("Expires=")}


def test_the_cookie_is_for_the_dashboard_and_no_script(visitor, administrator):
    _, attributes = signing_in(visitor, administrator)

    assert attributes == {"HttpOnly", "Path=/dashboard", "SameSite=Lax"}


def test_session_cookie_is_secure_if_the_service_has_https(new_app, administrator):
    browser = Browser(new_app(public_url="https://localhost").test_client())

    _, attributes = signing_in(browser, administrator)

    assert attributes == {"HttpOnly", "Path=/dashboard", "SameSite=Lax", "Secure"}


def test_the_cookie_lasts_as_long_as_the_session_may(visitor, administrator):
    value, _ = signing_in(visitor, administrator)

    kept = visitor.client.get_cookie("almanac", path="/dashboard")
    assert value == f"almanac={kept.value}"
    assert timedelta(days=13, hours=23) < kept.expires - now() <= dashboard_sessions.LIFETIME


def test_signing_in_keeps_nothing_of_the_cookie_before(browser_of, visitor, administrator):
    """Session fixation: an attacker who planted a cookie must not know the session after the sign-in."""
    visitor.get("/sign-in")
    fixed, token = visitor.cookie, visitor.page.token
    visitor.sign_in(administrator)
    thief = browser_of()
    thief.client.set_cookie("almanac", fixed, path="/dashboard")

    assert visitor.cookie != fixed
    assert visitor.get("/account").token != token
    assert thief.get("/account").status == 303


def test_a_cookie_from_before_the_sign_out_is_invalid(browser_of, administrator):
    browser, thief = browser_of(administrator), browser_of()
    thief.client.set_cookie("almanac", browser.cookie, path="/dashboard")
    assert thief.get("/account").status == 200

    browser.post("/sign-out")

    assert thief.get("/account").status == 303
    assert browser.get("/account").status == 303


@pytest.mark.parametrize("changed", [lambda cookie: cookie[:-1] + "!", lambda cookie: cookie[1:]])
def test_a_tampered_cookie_is_invalid(signed_in, visitor, changed):
    visitor.client.set_cookie("almanac", changed(signed_in.cookie), path="/dashboard")

    assert visitor.get("/account").status == 303


@pytest.mark.parametrize("passed", [timedelta(days=2, seconds=1), timedelta(days=14)])
def test_a_session_that_has_ended_is_refused_at_once(signed_in, monkeypatch, passed):
    assert signed_in.get("/account").status == 200
    monkeypatch.setattr(dashboard_sessions, "now", lambda: now() + passed)

    assert signed_in.get("/account").status == 303
    assert signed_in.post("/sign-out").location.startswith("/dashboard/sign-in")


def test_the_last_use_of_a_session_is_stored(signed_in, stores, monkeypatch):
    later = now() + timedelta(hours=1)
    monkeypatch.setattr(dashboard_sessions, "now", lambda: later)
    monkeypatch.setattr("app.dashboard.sign_in.sessions.now", lambda: later)

    signed_in.get("/account")
    signed_in.get("/account")

    seen = signed_in.get("/account").html.select("tr:has(.badge.good) time")[-1]
    assert seen["datetime"] == f"{later:%Y-%m-%dT%H:%M:%SZ}"


# The pages with parts that refresh themselves.
REFRESHING = {
    "/": {"overview_day", "overview_health"},
    "/activity": {"activity_plots"},
    "/webhooks/{webhook}": {"webhook_log"},
}


@pytest.fixture
def webhook(stores, no_webhook_endpoints):
    """The id of a webhook."""
    events = (webhook_events.WebhookEvent.CALENDAR_CHANGED,)
    with stores.database.writing() as session:
        made, _ = webhooks.create(
            session, stores.keyring, url="https://example.com/left-open", events=events, organization_id=None
        )
    return made.id


def test_a_page_that_is_left_open_does_not_extend_the_session(
    app, browser_of, new_administrator, webhook, stores, monkeypatch
):
    person = new_administrator()
    browser = browser_of(person)
    polled = set()
    for where, expected in REFRESHING.items():
        parts = [
            each["hx-get"]
            for each in browser.get(where.format(webhook=webhook)).html.select("[hx-trigger*=every]")
        ]
        found = {app.url_map.bind("").match(each.partition("?")[0])[0] for each in parts}
        assert found == {f"dashboard.{name}" for name in expected}
        polled |= set(parts)

    def last_use():
        with stores.database.reading() as session:
            (row,) = dashboard_sessions.of_administrator(
                session, administrators.find(session, person.name).id
            )
            return row.seen_at

    signed_in_at = last_use()
    later = now() + timedelta(hours=1)
    monkeypatch.setattr(dashboard_sessions, "now", lambda: later)
    monkeypatch.setattr("app.dashboard.sign_in.sessions.now", lambda: later)

    for each in polled:
        assert browser.get(each, headers={"HX-Request": "true"}).status == 200
    assert last_use() == signed_in_at
    browser.get("/account")
    assert last_use() - signed_in_at >= timedelta(minutes=59)


def test_every_part_that_refreshes_itself_is_declared(app):
    polled = {
        rule.endpoint
        for rule in rules(app, "GET")
        if (facts := declared_facts(app, rule.endpoint, "GET")) is not None and facts.polled
    }
    assert polled == {f"dashboard.{name}" for names in REFRESHING.values() for name in names}
    triggers = [
        line
        for template in Path(app.root_path, "dashboard/templates").rglob("*.html")
        for line in re.findall(r'hx-trigger="[^"]*every[^"]*"', template.read_text())
    ]
    assert len(triggers) == len(polled)


def test_a_page_is_shown_although_its_use_cannot_be_stored(install, monkeypatch, caplog):
    here = install()
    monkeypatch.setattr("app.dashboard.sign_in.sessions.now", lambda: now() + timedelta(hours=1))

    with here.locked():
        page = here.browser.get("/account")

    assert (page.status, page.heading) == (200, "Your account")
    assert "last use of a session not stored: OperationalError" in caplog.messages
