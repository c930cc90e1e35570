"""The account page: password, signed-in browsers and the other administrators."""

from __future__ import annotations

import pytest
from limits import RateLimitItemPerHour

from app.cli import administrator_setup
from app.dashboard.sign_in import login_throttle, passwords
from store.sql.models import Invitation
from store.sql.queries import administrators, dashboard_sessions
from tests.conftest import stores_of
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import PASSWORD
from tests.dashboard.visiting import Person, words

NEW = "eight louder calendars"
CHANGED = (
    "Your password is changed. Every other browser is signed out, and open links and invitations that you "
    "made are withdrawn."
)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def ada(new_administrator):
    return new_administrator()


def sessions_of(page) -> list:
    return page.html.select("section[aria-labelledby=browsers] tbody tr")


def ending_of(row) -> str:
    return row.find("form")["action"]


def test_account_lists_browsers_and_marks_the_current_one(browser_of, ada):
    browser_of(ada, address="10.1.2.3").get("/account")
    page = browser_of(ada, address="10.1.2.4").get("/account")

    this, other = sorted(sessions_of(page), key=lambda row: "this one" not in words(row))
    assert ("10.1.2.4" in words(this), "10.1.2.3" in words(other)) == (True, True)
    assert this.find("form") is None
    assert other.find("form")["data-confirm"] == "Sign that browser out?"


def test_it_names_a_browser(browser_of, ada):
    browser = browser_of()
    browser.client.environ_base["HTTP_USER_AGENT"] = FIREFOX
    browser.sign_in(ada)

    (row,) = sessions_of(browser.get("/account"))
    assert "Firefox on Linux" in words(row)


def test_another_browser_is_signed_out_at_once(browser_of, ada):
    here, there = browser_of(ada), browser_of(ada)
    (row,) = [row for row in sessions_of(here.get("/account")) if row.find("form")]

    page = here.do(ending_of(row))

    assert page.notices == ["That browser is signed out."]
    assert there.get("/account").status == 303
    assert here.do(ending_of(row)).notices == ["That session had ended before."]


def test_the_browser_of_another_administrator_cannot_be_signed_out(browser_of, ada, new_administrator):
    bob = new_administrator()
    first, second = browser_of(bob), browser_of(bob)
    (row,) = [row for row in sessions_of(first.get("/account")) if row.find("form")]

    page = browser_of(ada).do(ending_of(row))

    assert page.notices == ["That session had ended before."]
    assert second.get("/account").status == 200


def change(browser, **changed):
    form = {"current": PASSWORD, "password": NEW, "again": NEW, **changed}
    return browser.do("/account/password", form)


def test_a_new_password_signs_every_other_browser_out(browser_of, ada, client_address, stores):
    here, there = browser_of(ada), browser_of(ada)

    page = change(here)

    assert page.notices == [CHANGED]
    assert here.get("/account").status == 200
    assert there.get("/account").status == 303
    assert browser_of(address=client_address()).sign_in(ada).status == 401
    assert browser_of().sign_in(Person(ada.name, NEW)).status == 303
    assert ("changePassword", ada.name) in actions(stores, actor=f"administrator {ada.name}")


@pytest.mark.parametrize(
    ("changed", "field", "complaint"),
    [
        ({"current": "not mine at all"}, "current", "Current password is not your password."),
        ({"current": ""}, "current", "Current password is required."),
        (
            {"password": "short", "again": "short"},
            "password",
            "New password must have at least 12 characters.",
        ),
        ({"again": "another one, longer"}, "again", "New password again must be the same password."),
    ],
)
def test_an_invalid_new_password_changes_nothing(browser_of, ada, changed, field, complaint):
    here, there = browser_of(ada), browser_of(ada)

    page = change(here, **changed)

    assert page.status == 400
    assert page.error_of(field) == complaint
    assert page.notices == ["Please correct the highlighted fields."]
    assert NEW not in page.text
    assert there.get("/account").status == 200
    assert browser_of().sign_in(ada).status == 303


def test_wrong_current_password_counts_as_failed_sign_in(browser_of, ada, client_address, app, caplog):
    """A stolen session must not allow unlimited guesses of the password."""
    stolen = browser_of(ada, address=client_address())
    stolen.client.delete_cookie(login_throttle.COOKIE, path="/dashboard")
    caplog.clear()

    guesses = [change(stolen, current=f"a wrong guess {n}").status for n in range(5)]
    page = change(stolen)

    assert guesses == [400] * 5
    assert page.status == 429
    assert page.notices == ["Too many attempts. Try again in 15 minutes."]
    assert 14 * 60 < int(page.headers["Retry-After"]) <= 15 * 60 + 1
    failed = f"password change failed: administrator {ada.name} from {stolen.address}"
    assert caplog.messages.count(failed) == 5
    # The same counter: signing in with that name from there is refused too.
    assert browser_of(address=stolen.address).sign_in(ada).status == 429
    assert browser_of(address=client_address()).sign_in(ada).status == 303


def test_the_right_password_resets_the_failures(browser_of, ada, client_address):
    browser = browser_of(ada, address=client_address())
    for _ in range(2):
        assert [change(browser, current="mistyped it").status for _ in range(4)] == [400] * 4
        assert change(browser, password=PASSWORD, again=PASSWORD).status == 200


def test_a_new_password_withdraws_open_invitations(browser_of, ada, visitor, stores):
    """An intruder with the old password may have made an invitation."""
    for renew in (
        lambda browser: change(browser, password=PASSWORD, again=PASSWORD),
        lambda _: administrator_setup.create(stores, ada.name, PASSWORD),
    ):
        browser = browser_of(ada)
        link = invite(browser).html.find(id="link").get_text()
        path = link.partition("/dashboard")[2]
        assert visitor.get(path).status == 200

        renew(browser)

        assert visitor.get(path).status == 404


def test_a_stronger_hash_of_the_same_password_withdraws_nothing(browser_of, ada, visitor, stores):
    weak = passwords.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(ada.password)
    browser = browser_of(ada)
    with stores.database.writing() as session:
        found = administrators.find(session, ada.name)
        administrators.change_password(session, found.id, weak, keep_session=session_of(session, found.id))
    link = invite(browser).html.find(id="link").get_text()

    browser_of(ada)

    with stores.database.reading() as session:
        assert administrators.find(session, ada.name).password_hash != weak

    assert visitor.get(link.partition("/dashboard")[2]).status == 200


def session_of(session, administrator_id: int) -> str:
    (found,) = dashboard_sessions.of_administrator(session, administrator_id)
    return found.id


def ticket_of(page) -> str:
    return page.html.find("input", {"name": "ticket"})["value"]


def invite(browser, ticket=None):
    """Press the button; ``ticket`` replaces the page's token."""
    return browser.post(
        "/account/administrators/invite", {"ticket": ticket or ticket_of(browser.get("/account"))}
    )


def invitations_of(stores) -> int:
    with stores.database.reading() as session:
        return session.query(Invitation).count()


def test_a_page_loaded_again_makes_no_second_link_and_shows_none(browser_of, ada, stores):
    browser, before = browser_of(ada), invitations_of(stores)
    ticket = ticket_of(browser.get("/account"))
    link = invite(browser, ticket).html.find(id="link").get_text()

    again = browser.get(invite(browser, ticket).location)

    assert "no second link was made" in again.notices[0]
    assert link not in again.text
    assert again.html.find(id="link") is None
    assert invitations_of(stores) == before + 1
    assert actions(stores, actor=f"administrator {ada.name}").count(("inviteAdministrator", "by a link")) == 1
    assert invite(browser).html.find(id="link").get_text() != link


def test_an_administrator_invites_another(browser_of, ada, stores, unique):
    browser = browser_of(ada)

    page = invite(browser)

    link = page.html.find(id="link").get_text()
    assert page.status == 200
    assert link.startswith("http://localhost/dashboard/welcome/")
    assert link not in browser.get("/account").text
    assert actions(stores, actor=f"administrator {ada.name}")[-1] == ("inviteAdministrator", "by a link")
    form = {"name": (name := unique("bob")), "password": PASSWORD, "again": PASSWORD}
    other = browser_of()
    assert other.do(link.removeprefix("http://localhost"), form).notices == [f"Welcome, {name}."]


def remove(browser, name):
    page = browser.get("/account")
    rows = page.html.select("section[aria-labelledby=administrators] tbody tr")
    (row,) = [each for each in rows if words(each.find("th")) == name]
    page = browser.get(row.find("a")["href"])
    found = page.html.select_one("section[aria-labelledby=remove] form")
    assert found["data-confirm"] == (
        f"Remove {name}? All their browsers are signed out, and their open links and invitations are "
        "withdrawn."
    )
    return browser.do(found["action"])


def test_removed_administrator_is_signed_out_everywhere(
    browser_of, ada, new_administrator, stores, client_address
):
    bob = new_administrator()
    theirs = browser_of(bob)

    page = remove(browser_of(ada), bob.name)

    assert page.notices == [f"{bob.name} is removed. Their open links and invitations are withdrawn."]
    assert theirs.get("/account").status == 303
    assert browser_of(address=client_address()).sign_in(bob).status == 401
    assert actions(stores, actor=f"administrator {ada.name}")[-1] == ("removeAdministrator", bob.name)


def test_administrators_cannot_remove_themselves(browser_of, ada, stores):
    browser = browser_of(ada)
    with stores.database.reading() as session:
        mine = administrators.find(session, ada.name).id
    path = f"/dashboard/account/administrators/{mine}/remove"

    assert path not in browser.get("/account").text
    page = browser.do(path)

    assert page.notices == ["You cannot remove yourself: another administrator can."]
    assert browser_of().sign_in(ada).status == 303


def test_a_password_set_by_the_command_line_ends_a_lockout(
    browser_of, ada, new_administrator, client_address, stores, monkeypatch, unique
):
    limit = RateLimitItemPerHour(7, 1, namespace=unique("few"))
    monkeypatch.setattr(login_throttle, "BY_NAME", limit)
    bob, here, there = new_administrator(), client_address(), client_address()
    for name in (ada.name, bob.name):
        for address in (*[here] * 5, *[there] * 2):
            assert browser_of(address=address).sign_in(Person(name, "wrong")).status == 401
    assert browser_of(address=client_address()).sign_in(ada).status == 429

    administrator_setup.create(stores, ada.name, NEW)

    # The counters by name, and by name and address; no counters of other names.
    assert browser_of(address=here).sign_in(Person(ada.name, NEW)).status == 303
    assert browser_of(address=client_address()).sign_in(bob).status == 429


def test_command_line_sets_password_while_redis_is_down(new_app, ada, stores, browser_of, caplog):
    away = stores_of(new_app(redis_url="redis://127.0.0.1:1/0", broker_url="redis://127.0.0.1:1/0"))

    assert not administrator_setup.create(away, ada.name, NEW)

    assert "login throttle not reset for that name: ConnectionError" in caplog.messages
    assert browser_of().sign_in(Person(ada.name, NEW)).status == 303


def test_a_password_set_by_the_command_line_signs_every_browser_out(browser_of, ada, stores):
    browser = browser_of(ada)

    assert not administrator_setup.create(stores, ada.name, NEW)

    assert browser.get("/account").status == 303
    assert browser_of().sign_in(Person(ada.name, NEW)).status == 303


def test_a_form_that_made_no_link_may_be_sent_again(install):
    here = install()
    ticket = ticket_of(here.browser.get("/account"))

    with here.locked():
        assert invite(here.browser, ticket).status == 503
    assert invite(here.browser, ticket).status == 200
    assert invite(here.browser, ticket).status == 303


def test_a_form_without_a_ticket_makes_no_link(browser_of, ada, stores):
    before = invitations_of(stores)

    page = browser_of(ada).do("/account/administrators/invite")

    assert page.notices == ["This form had no one-time token. Send it again."]
    assert invitations_of(stores) == before
