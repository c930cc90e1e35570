"""Behind proxies: the client's address, and the headers that are trusted."""

from __future__ import annotations

import pytest

from tests.dashboard.audit_records import actions
from tests.dashboard.sign_in.test_account import invite
from tests.dashboard.visiting import Person

PROXY = "10.200.0.1"
CHAIN = "198.51.100.1, 198.51.100.2, 198.51.100.3"


def through(browser, **headers):
    """Add the headers of proxies to every request of a browser: ``through(browser, For="192.0.2.1")``."""
    for name, value in headers.items():
        browser.client.environ_base[f"HTTP_X_FORWARDED_{name.upper()}"] = value
    return browser


@pytest.mark.parametrize(
    ("proxies", "sent", "counted"),
    [
        (0, CHAIN, PROXY),
        (1, CHAIN, "198.51.100.3"),
        (2, CHAIN, "198.51.100.2"),
        # Fewer entries than proxies: the client bypassed a proxy, and its header is not trusted.
        (2, "198.51.100.9", PROXY),
    ],
)
def test_number_of_trusted_proxies_follows_the_setting(
    new_app, browser_of, new_administrator, stores, proxies, sent, counted
):
    ada = new_administrator()
    browser = through(browser_of(at=new_app(trusted_proxies=proxies), address=PROXY), For=sent)

    assert browser.sign_in(ada).status == 303

    assert actions(stores, actor=f"administrator {ada.name}") == [("signIn", counted)]
    assert counted in browser.get("/account").text


def test_guesses_behind_a_proxy_do_not_lock_out_its_other_clients(
    new_app, browser_of, new_administrator, client_address
):
    app, ada = new_app(trusted_proxies=1), new_administrator()
    guesser, owner = (through(browser_of(at=app, address=PROXY), For=client_address()) for _ in range(2))

    guesses = [guesser.sign_in(Person(ada.name, "wrong")).status for _ in range(6)]

    assert guesses == [401] * 5 + [429]
    assert owner.sign_in(ada).status == 303


def test_a_client_cannot_choose_the_address_by_which_it_is_counted(
    new_app, browser_of, new_administrator, client_address
):
    proxy, here, ada = client_address(), client_address(), new_administrator()
    for proxies, added in ((0, ""), (1, f", {here}")):
        guesser = browser_of(at=new_app(trusted_proxies=proxies), address=proxy)
        for _ in range(5):
            through(guesser, For=f"{client_address()}{added}").sign_in(Person(ada.name, "wrong"))

        assert through(guesser, For=f"{client_address()}{added}").sign_in(ada).status == 429


@pytest.mark.slow
@pytest.mark.parametrize(("proxies", "scheme"), [(0, "http"), (1, "https")])
def test_the_forwarded_scheme_is_trusted_and_the_host_is_not(
    new_app, browser_of, administrator, proxies, scheme
):
    browser = browser_of(at=new_app(trusted_proxies=proxies), address=PROXY)
    through(browser, Proto="https", Host="evil.example", Port="4443", Prefix="/evil")
    browser.client.environ_base["HTTP_REFERER"] = "https://localhost/dashboard/sign-in"
    assert browser.sign_in(administrator).location == "/dashboard/"

    page = invite(browser)

    link = page.html.find(id="link").get_text()
    assert link.startswith(f"{scheme}://localhost/dashboard/welcome/")
