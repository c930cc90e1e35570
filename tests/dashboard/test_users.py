"""Users: searched, registered, renamed and deleted, and the page of one user."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from redis.connection import AbstractConnection

from store.sql.queries import connection_rows, connections
from tests.conftest import connect
from tests.dashboard.audit_records import records
from tests.dashboard.untrusted import HTML
from tests.dashboard.visiting import words
from tests.store.webhook_world import WebhookWorld

PART = {"HX-Request": "true"}


def test_a_user_is_registered_and_the_next_step_is_named(signed_in, stores, new_organization, unique):
    user, slug = unique("fresh"), new_organization()

    page = signed_in.do("/users", {"id": user, "organization": slug})

    assert page.heading == user
    assert page.notices == [f"{user} is registered. Connect a calendar next."]
    assert page.html.find("a", href=f"/dashboard/organizations/{slug}")
    assert records(stores, user) == [("administrator ada", "createUser", user)]


@pytest.mark.parametrize(
    ("form", "field", "status", "complaint"),
    [
        ({}, "id", 400, "Identifier is required."),
        ({"id": "a b"}, "id", 400, "Identifier must have 3 to 128 letters"),
        ({"id": "{taken}"}, "id", 409, "Identifier is taken by another user."),
        (
            {"id": "someone", "organization": "nowhere-at-all"},
            "organization",
            400,
            "Organization with this slug does not exist.",
        ),
    ],
)
def test_refused_user_has_a_field_error(signed_in, new_user, form, field, status, complaint):
    taken = new_user()

    page = signed_in.post("/users", {name: text.replace("{taken}", taken) for name, text in form.items()})

    assert page.status == status
    assert page.error_of(field).startswith(complaint)


def test_users_are_found_by_identifier_or_address(signed_in, sandbox, new_user, unique):
    address = f"{unique('Search.Me')}@example.com"
    user = new_user(sandbox.account("google", address), name="findable")

    for text in (user[3:], address.upper(), address):
        rows = [words(each) for each in signed_in.get("/users", q=text).html.select("tbody tr")]
        assert [each for each in rows if each.startswith(f"{user} Google: connected {address}")], rows
    assert "No users found" in signed_in.get("/users", q="no%body").text


@pytest.fixture
def redis_commands(monkeypatch):
    """The number of commands that this thread, which answers the test's requests, has sent to Redis."""
    commands, here, send = [], threading.get_ident(), AbstractConnection.send_packed_command

    def counted(connection, *arguments, **options):
        if threading.get_ident() == here:
            commands.append(arguments)
        return send(connection, *arguments, **options)

    monkeypatch.setattr(AbstractConnection, "send_packed_command", counted)
    return lambda: len(commands)


def test_a_longer_list_needs_no_more_round_trips(install, redis_commands):
    here = install(registered=False)
    world = WebhookWorld(here.stores.database, here.stores.keyring)

    def cost(rows):
        before = redis_commands()
        badges = here.browser.get("/users").html.select("tbody .badge")
        assert [words(each) for each in badges] == ["Google: connected"] * rows
        return redis_commands() - before

    world.connection("user-00")
    # The first request loads again what the write has invalidated.
    cost(1)
    few = cost(1)
    for number in range(1, 20):
        world.connection(f"user-{number:02}")
    cost(20)
    assert cost(20) == few > 0


def test_a_user_shows_accounts_with_their_access_in_words(signed_in, sandbox, new_user):
    wide = sandbox.account("google", "wide@example.com")
    narrow = sandbox.account("microsoft", "narrow@example.com", scope="Calendars.ReadBasic User.Read")
    user = new_user(wide, narrow)

    page = signed_in.get(f"/users/{user}")

    google, microsoft, caldav, ics, _ = (words(each) for each in page.html.select(".connection"))
    # One choice for all providers, and no card of its own for an invitation.
    assert len(page.html.select("select[name=scope]")) == 1
    assert [words(each) for each in page.html.find_all("h2")][:3] == [
        "Connections",
        "Is a time offered, and why?",
        "Working hours",
    ]
    assert google.startswith("Google connected")
    assert "wide@example.com" in google
    assert "Calendars and events: reading and writing" in google
    assert "refreshed automatically" in google
    assert "narrow@example.com" in microsoft
    assert "Free and busy times only" in microsoft
    # Their accounts are connected by a form.
    assert caldav == "CalDAV not connected Connect CalDAV"
    assert ics == "Calendar feed not connected Connect Calendar feed"
    form = f"/dashboard/users/{user}/connect-account"
    links = [each["href"] for each in page.html.select(f"a[href^='{form}']")]
    assert links == [f"{form}/caldav", f"{form}/ics"]
    reconnect, another = page.html.select(f"[formaction='/dashboard/users/{user}/connect/google']")
    assert (words(reconnect), words(another)) == ("Reconnect Google", "Connect another Google account")
    assert reconnect["form"] == another["form"] == page.html.select_one("form:has([name=scope])")["id"]
    # The access of the first account.
    assert [each["value"] for each in page.html.select("option[selected]")] == ["write"]


def test_ended_connection_shows_time_reason_and_advice(signed_in, stores, sandbox, new_user):
    user = new_user(sandbox.account("google", "gone@example.com"))
    with stores.database.writing() as session:
        (ref,) = connection_rows.of_user(session, user, organization_id=None)
        connections.mark_dead(session, ref.id, f"Google answered {HTML}")

    page = signed_in.get(f"/users/{user}")

    notice = words(page.html.select_one(".connection .notice"))
    assert notice.startswith("This connection ended on")
    assert HTML in notice
    assert words(page.html.select_one(".connection .badge")) == "ended"
    assert page.html.select_one(".connection button.primary").get_text() == "Reconnect Google"


def test_a_token_that_cannot_be_refreshed_is_reported(signed_in, sandbox, new_user, api):
    user = new_user()
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    connect(api, user, sandbox.account("google", "old@example.com"), refreshToken=None, expiresAt=past)

    connection = words(signed_in.get(f"/users/{user}").html.select_one(".connection"))

    assert connection.startswith("Google expiring or expired")
    assert "cannot be refreshed: a new consent is needed" in connection


def test_a_user_is_renamed(signed_in, api, stores, new_user, unique):
    user, other, new_id = new_user(), new_user(), unique("renamed")

    refused = signed_in.post(f"/users/{user}/rename", {"id": other})
    page = signed_in.do(f"/users/{user}/rename", {"id": new_id})

    assert refused.status == 409
    assert refused.error_of("id") == "Identifier is taken by another user."
    assert page.heading == new_id
    assert api.get(f"/users/{user}").status_code == 404
    assert records(stores, user) == [("administrator ada", "renameUser", f"{user} to {new_id}")]


def test_the_longest_identifiers_fit_into_the_audit_log(signed_in, new_user, stores, unique):
    long, longer = (unique(letter * 110).ljust(128, letter) for letter in "ab")
    signed_in.do("/users", {"id": long})

    assert signed_in.do(f"/users/{long}/rename", {"id": longer}).heading == longer


def test_deleting_a_user_revokes_and_forgets_as_the_api_does(
    worker, signed_in, api, stores, sandbox, new_user
):
    user = new_user(sandbox.account("google", "leaver@example.com"), obtained=True)
    form = signed_in.get(f"/users/{user}").html.find("form", action=f"/dashboard/users/{user}/delete")
    assert form["data-confirm"].startswith(f"Delete {user}?")
    sandbox.forget_requests()

    assert form["data-confirm-typed"] == user
    for typed in ({}, {"confirm": user[:-1]}):
        page = signed_in.do(form["action"], typed)
        assert page.notices == [f"Nothing was deleted: type {user} to confirm it."]

    page = signed_in.do(form["action"], {"confirm": user})

    assert page.notices == [f"{user} is deleted, with all tokens and cached calendar data."]
    assert api.get(f"/users/{user}").status_code == 404
    assert sandbox.requests().by_operation["google.revoke"] == 1
    assert records(stores, user)[:2] == [
        ("administrator ada", "deleteUser", user),
        ("administrator ada", "deleteConnection", f"{user}/google"),
    ]
    assert signed_in.post(form["action"]).status == 404


def test_calendars_come_after_the_page_with_role_colour_and_zone(worker, signed_in, sandbox, new_user):
    user = new_user(
        sandbox.account(
            "google",
            "cal@example.com",
            time_zone="Europe/Berlin",
            calendars=[
                {"primary": True},
                {"id": "team@example.com", "subject": HTML, "accessRole": "reader"},
            ],
        )
    )
    page = signed_in.get(f"/users/{user}")
    part = page.html.find(attrs={"hx-get": f"/dashboard/users/{user}/calendars"})
    assert "Loading" in words(part)

    calendars = signed_in.get(part["hx-get"], headers=PART)

    assert not calendars.html.find("html")
    main, team = calendars.html.select("tbody tr")
    assert words(main).startswith("cal@example.com main Google everything Europe/Berlin #")
    assert words(team.th) == HTML
    assert "read events" in words(team)
    assert team.rect["fill"] == words(team.code)
    assert not calendars.html.find("b")


def test_unreadable_calendars_are_shown_with_advice(worker, signed_in, sandbox, new_user):
    well = sandbox.account("microsoft", "well@example.com")
    ill = sandbox.account("google", "ill@example.com")
    user = new_user(well, ill)
    sandbox.revoke("ill@example.com")

    calendars = signed_in.get(f"/users/{user}/calendars", headers=PART)
    events = signed_in.get(f"/users/{user}/events", headers=PART)

    assert calendars.notices == [
        "Google could not be read: Google says that this connection has ended . "
        "Connect the account again, on the page of the user."
    ]
    assert len(calendars.html.select("tbody tr")) == 1
    assert events.notices[0].endswith("Connect the account again, on the page of the user.")
    google = signed_in.get(f"/users/{user}").html.select_one(".connection")
    assert words(google.h3) == "Google"
    assert words(google.select_one(".badge")) == "ended"


def test_events_of_the_next_days_are_listed_in_the_mailbox_zone(worker, signed_in, sandbox, new_user):
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date()
    later = tomorrow + timedelta(days=20)
    user = new_user(
        sandbox.account(
            "google",
            "busy@example.com",
            time_zone="Asia/Tokyo",
            events=[
                {"subject": HTML, "start": f"{tomorrow}T10:00:00Z", "end": f"{tomorrow}T11:30:00Z"},
                {"subject": "", "start": f"{tomorrow}T12:00:00Z", "end": f"{tomorrow}T12:30:00Z"},
                {
                    "subject": "Holiday",
                    "start": f"{tomorrow}",
                    "end": f"{tomorrow + timedelta(days=1)}",
                    "allDay": True,
                },
                {"subject": "Too late", "start": f"{later}T10:00:00Z", "end": f"{later}T11:00:00Z"},
            ],
        )
    )

    page = signed_in.get(f"/users/{user}/events", headers=PART)

    assert "Times of the mailbox: Asia/Tokyo." in page.text
    (day,) = page.html.select("h3 time")
    assert day["datetime"] == tomorrow.isoformat()
    assert [words(each) for each in page.html.select("li")] == [
        "all day Holiday Google, busy@example.com",
        f"19:00 to 20:30 {HTML} Google, busy@example.com",
        "21:00 to 21:30 Without a subject Google, busy@example.com",
    ]
    assert not page.html.find("b")


def test_account_without_event_details_shows_a_notice(worker, signed_in, sandbox, new_user):
    narrow = sandbox.account("microsoft", "narrow@example.com", scope="Calendars.ReadBasic User.Read")
    user = new_user(narrow)

    page = signed_in.get(f"/users/{user}/events", headers=PART)

    assert "grant the requested access" in page.notices[0]


def test_without_scripts_the_parts_are_pages(worker, signed_in, sandbox, new_user):
    user = new_user(sandbox.account("google", "plain@example.com"))

    for part, heading in (("calendars", "Calendars"), ("events", "The next seven days")):
        page = signed_in.get(f"/users/{user}/{part}")
        assert page.heading == heading
        assert page.html.find("a", href=f"/dashboard/users/{user}")
