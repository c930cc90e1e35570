"""Connecting an account by the form of its provider, at real servers."""

from __future__ import annotations

import pytest

from providers.caldav.credentials import BasicCredentials
from providers.errors import connection_ended
from store.sql.queries import connection_rows, connections, users
from store.sql.queries.connection_rows import Tokens
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words
from tests.providers.caldav.scripted import scripted
from tests.providers.caldav.servers import PASSWORD, USER, radicale
from tests.providers.ical.texts import calendar, event
from tests.providers.ics.server import feed_server

MEETING = event("DTSTART:20261201T090000Z\nDTEND:20261201T100000Z")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A CalDAV server with one account."""
    with radicale(tmp_path_factory.mktemp("radicale")) as running:
        yield running


@pytest.fixture(scope="module")
def feeds():
    """A server of feeds."""
    with feed_server() as running:
        yield running


def entered(server, **changed):
    return {"url": server.url, "username": USER, "password": PASSWORD, **changed}


def of(api, user):
    return api.get(f"/users/{user}/connections").json["data"]


def test_a_service_fills_in_its_address_and_says_where_to_make_a_password(signed_in, new_user):
    user = new_user()
    path = f"/users/{user}/connect-account/caldav"

    page = signed_in.get(path)

    assert page.heading == f"Connect CalDAV for {user}"
    offered = {words(each): each["href"] for each in page.html.select("nav.filter a")}
    assert list(offered) == ["iCloud", "Fastmail", "Nextcloud", "mailbox.org", "Radicale", "Another"]
    assert page.html.find(id="f-url")["value"] == ""
    assert page.html.find(id="f-password")["type"] == "password"

    page = signed_in.get(offered["iCloud"])

    assert page.html.find(id="f-url")["value"] == "https://caldav.icloud.com/"
    assert "Make an app-specific password" in words(page.html.main)
    assert page.html.select_one("main a[target=_blank]")["href"] == "https://account.apple.com"
    assert words(page.html.select_one("nav.filter [aria-current]")) == "iCloud"


def test_an_account_is_connected_beside_the_others(worker, signed_in, api, stores, sandbox, server, new_user):
    user = new_user(sandbox.account("google", "ada@example.com"))
    path = f"/users/{user}/connect-account/caldav"

    page = signed_in.do(path, entered(server, label="Family"))

    assert page.heading == user
    assert page.notices == ["CalDAV (Family) is connected."]
    caldav, google = of(api, user)
    assert (google["provider"], google["alive"]) == ("google", True)
    assert (caldav["provider"], caldav["type"], caldav["label"]) == ("caldav", "basic", "Family")
    assert records(stores, f"{user}/caldav")[0] == (
        "administrator ada",
        "storeConnection",
        f"{user}/caldav",
    )
    links = [words(each) for each in page.html.select("a[href*='/connect-account/']")]
    assert links == ["Reconnect CalDAV", "Connect another CalDAV", "Connect Calendar feed"]


def reconnect_links(page):
    """The links to the forms that connect an account again, by their words."""
    return {words(each): each["href"] for each in page.html.select("a[href*='account=']")}


def test_each_connection_is_reconnected_by_its_own_form(worker, signed_in, api, server, new_user):
    user = new_user()
    path = f"/users/{user}/connect-account/caldav"
    # Nothing tells that two names are one server.
    other = server.url.replace("127.0.0.1", "localhost")
    for label, url in (("Work", server.url), ("Home", other)):
        page = signed_in.do(path, entered(server, url=url, label=label))
    before = of(api, user)
    for url, facts in zip((server.url, other), page.html.select(".connection dl"), strict=False):
        assert f"Address {url} User name {USER}" in words(facts)
    assert PASSWORD not in page.text

    page = signed_in.get(reconnect_links(page)["Reconnect CalDAV (Home)"])

    assert page.heading == f"Reconnect CalDAV for {user}"
    shown = {each["name"]: each["value"] for each in page.html.select("main form .field input")}
    assert shown == {"url": other, "username": USER, "password": "", "label": "Home"}
    action = page.html.select_one("main form")["action"]
    refused = signed_in.post(action, {**shown, "password": "guessed"})
    assert refused.heading == page.heading
    assert refused.error_of("password") == "Password is not accepted with the values above."
    page = signed_in.do(refused.html.select_one("main form")["action"], {**shown, "password": PASSWORD})
    assert page.notices == ["CalDAV (Home) is connected again."]
    assert [each["id"] for each in of(api, user)] == [each["id"] for each in before]


def test_an_account_at_a_new_address_takes_the_place_of_the_connection(
    worker, signed_in, api, server, new_user, unique
):
    user = new_user()
    main = server.new_calendar(unique("calendar"))
    page = signed_in.do(f"/users/{user}/connect-account/caldav", entered(server, url=str(main.url)))
    (before,) = of(api, user)

    moved = entered(server, url=server.url.replace("127.0.0.1", "localhost"))
    page = signed_in.do(reconnect_links(page)["Reconnect CalDAV"], moved)

    assert page.notices == ["CalDAV is connected again."]
    (after,) = of(api, user)
    assert after["id"] == before["id"]
    calendars = signed_in.get(f"/users/{user}/calendars")
    (row,) = [words(each) for each in calendars.html.select("tbody tr") if "main" in words(each)]
    assert str(main.get_display_name()) in row


def test_another_account_does_not_take_the_place_of_the_connection(worker, signed_in, api, server, new_user):
    user = new_user()
    page = signed_in.do(f"/users/{user}/connect-account/caldav", entered(server))
    before = of(api, user)

    with scripted() as script:
        refused = signed_in.post(reconnect_links(page)["Reconnect CalDAV"], entered(server, url=script.url))

    assert "to another account: connect it beside this one" in refused.error_of("url")
    assert of(api, user) == before


def test_a_feed_gets_a_new_address(worker, signed_in, api, feeds, new_user):
    user = new_user()
    old, new = (feeds.put(calendar(MEETING), f"/{unique}.ics") for unique in ("old", "new"))
    page = signed_in.do(f"/users/{user}/connect-account/ics", {"url": old, "label": "Holiday home"})
    (before,) = of(api, user)

    page = signed_in.get(reconnect_links(page)["Reconnect Calendar feed"])

    assert page.html.find(id="f-url")["value"] == ""
    assert old not in page.text
    page = signed_in.do(page.html.select_one("main form")["action"], {"url": new})
    assert page.notices == ["Calendar feed (Holiday home) is connected again."]
    (after,) = of(api, user)
    assert (after["id"], after["label"]) == (before["id"], "Holiday home")


def test_a_connection_that_is_gone_cannot_be_reconnected(signed_in, new_user):
    user = new_user()
    path = f"/users/{user}/connect-account/caldav?account={0:032x}"

    page = signed_in.get(signed_in.get(path).location)
    assert page.notices == ["That account was disconnected or replaced meanwhile."]
    refused = signed_in.post(path, {"url": "https://a.example/", "username": "a", "password": "b"})
    assert refused.notices == ["OAuth connection not found. Nothing is stored."]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://caldav.icloud.com/", "Make an app-specific password at https://account.apple.com under"),
        ("https://dav.example.org/", ""),
    ],
)
def test_what_to_do_about_an_ended_account(signed_in, api, stores, new_user, url, said):
    user = new_user()
    with stores.database.writing() as session:
        known = BasicCredentials(url, "ada@example.org", PASSWORD, url, (url,), url)
        row, _ = connections.replace(
            session,
            stores.keyring,
            user_id=users.ids(session, [user], organization_id=None)[user],
            provider="caldav",
            email=None,
            scope=["read"],
            tokens=Tokens(known.sealed().reveal, None, None),
        )
        connections.mark_dead(session, row.id, connection_ended("CalDAV"))

    page = signed_in.get(f"/users/{user}")

    assert "says that this connection has ended . Make a new app password, or take" in page.notices[0]
    assert "and enter it under Reconnect." in page.notices[0]
    assert said in page.notices[0]
    assert [each["href"] for each in page.html.select(".notice a")] == (
        ["https://account.apple.com"] if said else []
    )
    for part in ("calendars", "events"):
        (notice,) = signed_in.get(f"/users/{user}/{part}").notices
        assert "and enter it under Reconnect." in notice
    page = signed_in.get(reconnect_links(page)["Reconnect CalDAV"])
    assert said in words(page.html.main)


def test_an_ended_account_is_connected_again(worker, signed_in, api, stores, server, new_user):
    user = new_user()
    path = f"/users/{user}/connect-account/caldav"
    signed_in.do(path, entered(server, label="Family"))
    (before,) = of(api, user)
    with stores.database.writing() as session:
        (ref,) = connection_rows.of_user(session, user, organization_id=None)
        connections.mark_dead(session, ref.id, "CalDAV does not accept this user name and password")
    page = signed_in.get(f"/users/{user}")
    assert "Until it is reconnected" in page.notices[0]

    page = signed_in.do(path, entered(server))

    assert page.notices == ["CalDAV (Family) is connected again."]
    (after,) = of(api, user)
    assert (after["id"], after["label"], after["alive"]) == (before["id"], "Family", True)


@pytest.mark.parametrize(
    ("changed", "name", "error"),
    [
        ({"password": "not that one"}, "password", "Password is not accepted with the values above."),
        ({"username": "a:b"}, "username", "User name must not contain a colon."),
        ({"url": "ftp://dav.example.org"}, "url", "Address must "),
        ({"url": ""}, "url", "Address is required."),
        ({"password": ""}, "password", "Password is required."),
        ({"label": "x" * 129}, "label", "Label must have 0 to 128 characters."),
    ],
)
def test_a_refused_field_has_its_error_and_the_others_are_kept(
    worker, signed_in, api, server, new_user, caplog, changed, name, error
):
    user = new_user()
    form = entered(server, **changed)

    page = signed_in.post(f"/users/{user}/connect-account/caldav?service=Radicale", form)

    assert page.status == 400
    assert page.error_of(name).startswith(error)
    assert len(page.html.select(".error")) == 1
    assert page.notices == ["Please correct the highlighted fields."]
    for each in ("url", "username"):
        # A field that was left empty is empty again, and has not the address of the preset.
        assert page.html.find(id=f"f-{each}")["value"] == form[each]
    assert page.html.find(id="f-password")["value"] == ""
    if form["password"]:
        assert form["password"] not in page.text + caplog.text
    # Still the service that was chosen.
    assert page.html.select_one("main form")["action"].endswith("?service=Radicale")
    assert of(api, user) == []


def test_a_server_that_does_not_answer_is_no_error_of_a_field(worker, signed_in, api, server, new_user):
    user = new_user()

    page = signed_in.post(f"/users/{user}/connect-account/caldav", entered(server, url="http://127.0.0.1:9/"))

    assert page.status == 400
    assert page.html.select(".error") == []
    assert page.notices[0].endswith(". Nothing is stored.")
    assert of(api, user) == []


def test_feeds_are_connected_one_after_another(worker, signed_in, api, feeds, new_user):
    user = new_user()
    path = f"/users/{user}/connect-account/ics"
    for number in range(2):
        url = feeds.put(calendar(MEETING), f"/{number}.ics")
        page = signed_in.do(path, {"url": url, "label": f"Home {number}"})
        assert page.notices == [f"Calendar feed (Home {number}) is connected."]

    assert [each["label"] for each in of(api, user)] == ["Home 0", "Home 1"]
    # The address of a feed is a secret.
    assert feeds.url not in page.text

    page = signed_in.post(path, {"url": f"{feeds.url}/missing.ics"})

    assert page.error_of("url").startswith("Address leads to no calendar")


def test_a_feed_that_asks_for_a_password_is_refused_above_the_form(worker, signed_in, feeds, new_user):
    feeds.replies.append((401, b"", {"WWW-Authenticate": "Basic"}))

    page = signed_in.post(f"/users/{new_user()}/connect-account/ics", {"url": f"{feeds.url}/closed.ics"})

    assert page.html.select(".error") == []
    assert "password" in page.notices[0]


@pytest.mark.parametrize("provider", ["google", "nothing"])
def test_a_provider_without_a_form_has_no_page(signed_in, new_user, provider):
    assert signed_in.get(f"/users/{new_user()}/connect-account/{provider}").status == 404


def test_a_user_who_does_not_exist_has_no_form(signed_in):
    for send in (signed_in.get, signed_in.post):
        assert send("/users/nobody-at-all/connect-account/caldav").status == 404
