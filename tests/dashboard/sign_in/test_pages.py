"""Signing in and out: permissions, refusals and redirects."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from threading import BoundedSemaphore
from time import sleep
from unittest.mock import Mock
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from limits import RateLimitItemPerHour, RateLimitItemPerSecond
from redis.exceptions import RedisError

from app.dashboard.sign_in import login_throttle, passwords
from store.sql.queries import administrators
from tests.dashboard.audit_records import actions
from tests.dashboard.visiting import Person

WRONG = "Name or password is wrong."


def test_signing_in_and_out(browser_of, new_administrator, stores):
    ada = new_administrator()
    browser = browser_of(ada, address="10.9.8.7")

    assert browser.get("/").heading == "Overview"
    assert actions(stores, actor=f"administrator {ada.name}") == [("signIn", "10.9.8.7")]
    out = browser.post("/sign-out")
    assert (out.status, out.location) == (303, "/dashboard/sign-in")
    assert browser.get("/").location.startswith("/dashboard/sign-in")


def test_a_wrong_name_and_a_wrong_password_are_refused_alike(browser_of, administrator, client_address):
    answers = []
    for person in (Person("nobody at all", "x" * 20), Person(administrator.name, "x" * 20)):
        browser = browser_of(address=client_address())
        page = browser.sign_in(person)
        page.html.find(id="f-name")["value"] = ""
        for each in page.html.find_all("input", {"name": "csrf_token"}):
            each["value"] = ""
        answers.append((page.status, page.notices, str(page.html)))
        assert browser.get("/").status == 303

    assert answers[0] == answers[1]
    assert answers[0][:2] == (401, [WRONG])


def test_a_page_with_a_form_answers_head_as_get(visitor, signed_in):
    for browser, path in ((visitor, "/sign-in"), (signed_in, "/keys/new")):
        page = browser.open("HEAD", path)

        assert (page.status, page.text) == (200, "")
    away = visitor.open("HEAD", "/keys?sort=name")
    assert (away.status, away.location) == (303, "/dashboard/sign-in?after=/dashboard/keys?sort%3Dname")


def test_a_password_is_never_shown_again(browser_of, administrator, client_address):
    page = browser_of(address=client_address()).sign_in(Person(administrator.name, "not the password"))

    assert "not the password" not in page.text
    assert page.html.find(id="f-name")["value"] == administrator.name


def test_a_name_is_written_as_it_was_made(browser_of, administrator, client_address):
    page = browser_of(address=client_address()).sign_in(
        Person(administrator.name.upper(), administrator.password)
    )

    assert page.notices == [WRONG]


@pytest.mark.parametrize(
    ("form", "field", "complaint"),
    [
        ({"password": "x"}, "name", "Name is required."),
        ({"name": "ada"}, "password", "Password is required."),
        ({"name": "a" * 129, "password": "x"}, "name", "Name must have 0 to 128 characters."),
        ({"name": "a\x00b", "password": "x"}, "name", "Name must not contain control characters."),
    ],
)
def test_a_form_that_is_not_filled_in_is_no_attempt(visitor, form, field, complaint):
    page = visitor.post("/sign-in", form)

    assert page.status == 400
    assert page.error_of(field) == complaint


# Redirects


@pytest.mark.parametrize("after", ["/dashboard/account", "/dashboard/account?x=1", "/dashboard"])
def test_signing_in_leads_to_the_requested_page(browser_of, administrator, after):
    browser = browser_of()
    redirect = browser.get(after)

    assert parse_qs(urlsplit(redirect.location).query) == {"after": [after]}
    browser.get(redirect.location)
    page = browser.post(redirect.location, {"name": administrator.name, "password": administrator.password})
    assert (page.status, page.location) == (303, after)
    # A signed-in browser is redirected at once.
    assert browser.get(redirect.location).location == after


@pytest.mark.parametrize(
    "after",
    [
        "https://evil.example/",
        "//evil.example/dashboard",
        "///evil.example/dashboard",
        "/\\evil.example/dashboard",
        "/dashboard\\@evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "evil.example/dashboard",
        "https:/dashboard",
        "https:dashboard",
        "http://localhost/dashboard",
        "//[",
        "http://[::1",
        "/\t/evil.example/dashboard",
        "\t//evil.example/dashboard",
        " //evil.example",
        "/v1/users",
        "/",
        "",
        "/dashboardly",
        "/dashboard/../v1/docs",
        "/dashboard/sign-out/../../v1/docs",
        "/dashboard/%2e%2e/v1/docs",
        "/dashboard\r\nX-Evil: 1",
        "/dashboard\x01",
    ],
)
def test_signing_in_leads_nowhere_else(browser_of, administrator, after):
    browser = browser_of()
    path = f"/sign-in?after={quote(after)}"

    page = browser.post(path, {"name": administrator.name, "password": administrator.password})

    assert (page.status, page.location) == (303, "/dashboard/")
    assert "X-Evil" not in page.headers
    assert browser.get(path).location == "/dashboard/"


def test_a_part_of_a_page_sends_the_whole_of_it_to_the_sign_in(visitor):
    part = visitor.get("/account", headers={"HX-Request": "true"})

    assert (part.status, part.text) == (401, "")
    assert part.headers["HX-Redirect"] == "/dashboard/sign-in"


PLACE = "/dashboard/explorer?users=ada&day=2026-12-03"
KEPT = f"/dashboard/sign-in?after={quote(PLACE, safe='/?')}"


def test_a_part_of_a_page_comes_back_to_the_page_after_the_sign_in(visitor):
    htmx = {"HX-Request": "true", "HX-Current-URL": f"https://almanac.example{PLACE}"}

    assert visitor.get("/explorer/grid", headers=htmx).headers["HX-Redirect"] == KEPT


def test_a_form_comes_back_to_its_page_after_the_sign_in(visitor):
    sent = visitor.post("/webhooks/new", {}, headers={"Referer": f"http://localhost{PLACE}"})

    assert (sent.status, sent.location) == (303, KEPT)


@pytest.mark.parametrize(
    "sender", ["https://evil.example/", "http://[", "", "/dashboardly", "https://x/v1/users"]
)
def test_only_pages_of_the_dashboard_are_kept_for_after_the_sign_in(visitor, sender):
    htmx = {"HX-Request": "true", "HX-Current-URL": sender}

    assert visitor.get("/account", headers=htmx).headers["HX-Redirect"] == "/dashboard/sign-in"


# Guessing


@pytest.fixture
def few(monkeypatch, unique):
    """Lower a limit: ``few("BY_NAME", 3)``; its counters are separate from other tests'."""

    def set_limit(limit, most, kind=RateLimitItemPerHour):
        monkeypatch.setattr(login_throttle, limit, kind(most, 1, namespace=unique("few")))

    return set_limit


def statuses(browser, *people):
    return [browser.sign_in(person).status for person in people]


def test_five_failures_with_one_name_from_one_address_have_to_wait(
    browser_of, new_administrator, client_address
):
    ada = new_administrator()
    guesser = browser_of(address=client_address())

    assert statuses(guesser, *[Person(ada.name, "wrong")] * 5) == [401] * 5
    # The right password is refused too, as it may be a guess.
    page = guesser.sign_in(ada)

    assert page.status == 429
    assert page.notices == ["Too many attempts. Try again in 15 minutes."]
    assert 14 * 60 < int(page.headers["Retry-After"]) <= 15 * 60 + 1
    assert guesser.sign_in(Person("another", "wrong")).status == 401
    assert browser_of(address=client_address()).sign_in(ada).status == 303


def test_failures_with_one_name_from_everywhere_have_to_wait(
    browser_of, new_administrator, client_address, few
):
    few("BY_NAME", 3)
    ada, bob = new_administrator(), new_administrator()

    for _ in range(3):
        assert browser_of(address=client_address()).sign_in(Person(ada.name, "wrong")).status == 401

    assert browser_of(address=client_address()).sign_in(ada).status == 429
    assert browser_of(address=client_address()).sign_in(bob).status == 303


def test_failures_with_any_name_from_one_address_have_to_wait(
    browser_of, new_administrator, client_address, few
):
    few("BY_ADDRESS", 3)
    ada = new_administrator()
    guesser = browser_of(address=client_address())

    assert statuses(guesser, *[Person(f"guess {n}", "wrong") for n in range(3)]) == [401] * 3

    assert guesser.sign_in(ada).status == 429
    assert browser_of(address=client_address()).sign_in(ada).status == 303


@pytest.mark.slow
def test_after_the_wait_an_attempt_is_allowed(browser_of, new_administrator, client_address, few):
    few("FROM_HERE", 1, RateLimitItemPerSecond)
    ada = new_administrator()
    browser = browser_of(address=client_address())

    assert browser.sign_in(Person(ada.name, "wrong")).status == 401
    refused = browser.sign_in(ada)
    assert refused.status == 429
    assert refused.notices == ["Too many attempts. Try again in a minute."]
    sleep(1.1)
    assert browser.sign_in(ada).status == 303


def test_signing_in_resets_the_failures(browser_of, new_administrator, client_address, few):
    few("FROM_HERE", 2)
    ada = new_administrator()
    browser = browser_of(address=client_address())

    for _ in range(3):
        assert statuses(browser, Person(ada.name, "mistyped"), ada) == [401, 303]
        browser.post("/sign-out")


def test_sign_in_resets_only_failures_of_same_name_and_address(
    browser_of, new_administrator, client_address, few
):
    for limit in ("FROM_HERE", "BY_NAME", "BY_ADDRESS"):
        few(limit, 3)
    ada, bob = new_administrator(), new_administrator()
    here, there = client_address(), client_address()

    assert statuses(browser_of(address=here), *[Person(ada.name, "wrong")] * 2, ada) == [401, 401, 303]

    # The third failure: with that name from another address, and from that address with another name.
    assert statuses(browser_of(address=there), Person(ada.name, "wrong"), ada) == [401, 429]
    assert statuses(browser_of(address=here), Person(bob.name, "wrong"), bob) == [401, 429]


def test_an_address_of_ipv6_is_one_of_a_whole_network(browser_of, new_administrator, few):
    few("FROM_HERE", 2)
    ada = new_administrator()
    wrong = Person(ada.name, "wrong")

    for address in ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"):
        assert browser_of(address=address).sign_in(wrong).status == 401

    assert browser_of(address="2001:db8:0:1::3").sign_in(ada).status == 429
    assert browser_of(address="2001:db8:0:2::1").sign_in(ada).status == 303
    for address in ("::ffff:192.0.2.7", "192.0.2.7"):
        assert browser_of(address=address).sign_in(wrong).status == 401
    assert browser_of(address="192.0.2.7").sign_in(ada).status == 429
    assert browser_of(address="::ffff:192.0.2.8").sign_in(ada).status == 303


def test_a_failure_is_logged_once_and_once_that_a_limit_is_reached(
    browser_of, new_administrator, client_address, few, caplog
):
    few("FROM_HERE", 2)
    ada, address = new_administrator(), client_address()

    assert statuses(browser_of(address=address), *[Person(ada.name, "wrong")] * 4) == [401, 401, 429, 429]

    failed = ("WARNING", f"sign-in failed: administrator {ada.name} from {address}")
    *before, (level, limited) = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert before == [failed, failed]
    assert level == "WARNING"
    assert limited.startswith(f"sign-in throttled: administrator {ada.name} from {address}, wait 3")


def test_unknown_name_is_neither_logged_nor_readable_in_redis(browser_of, client_address, stores, caplog):
    address = client_address()

    assert browser_of(address=address).sign_in(Person("planted password", "wrong")).status == 401

    assert caplog.messages == [f"sign-in failed: an unknown name from {address}"]
    keys = [key.decode() for key in stores.redis.scan_iter("*sign-in*")]
    assert any(address in key for key in keys)
    guessed = hashlib.sha256(b"planted password").hexdigest()
    assert not [key for key in keys if "planted" in key or guessed in key]


def test_more_than_four_concurrent_sign_ins_are_refused(browser_of, new_administrator, client_address):
    ada = new_administrator()
    crowd = [browser_of(address=client_address()) for _ in range(6)]
    for browser in crowd:
        browser.get("/sign-in")

    with ThreadPoolExecutor(len(crowd)) as threads:
        with login_throttle._attempt_lock:
            answers = [
                threads.submit(each.post, "/sign-in", {"name": "nobody", "password": "w"}) for each in crowd
            ]
            refused = [each.result() for each in islice(as_completed(answers, timeout=10), 2)]
            assert [each.done() for each in answers].count(True) == 2

        assert sorted(each.result().status for each in answers) == [401] * 4 + [429] * 2
    for page in refused:
        assert (page.status, page.headers["Retry-After"]) == (429, "1")
        assert page.notices == ["Too many people sign in at this moment. Try again in a moment."]
    # There is room again.
    assert crowd[0].sign_in(ada).status == 303


def test_a_failed_attempt_releases_its_slot(browser_of, new_administrator, client_address, monkeypatch):
    ada, browser = new_administrator(), browser_of(address=client_address())
    with monkeypatch.context() as patched:
        patched.setattr(login_throttle, "wait", Mock(side_effect=RedisError("down")))
        assert statuses(browser, *[ada] * 5) == [503] * 5

    assert browser.sign_in(ada).status == 303


def test_concurrent_guesses_are_counted_one_after_another(
    browser_of, new_administrator, client_address, few, monkeypatch
):
    monkeypatch.setattr(login_throttle, "_attempt_slots", BoundedSemaphore(12))
    few("FROM_HERE", 2)
    ada, address = new_administrator(), client_address()
    guessers = [browser_of(address=address) for _ in range(12)]
    for each in guessers:
        each.get("/sign-in")

    with ThreadPoolExecutor(len(guessers)) as threads:
        answers = list(
            threads.map(lambda each: each.post("/sign-in", {"name": ada.name, "password": "w"}), guessers)
        )

    assert sorted(each.status for each in answers) == [401] * 2 + [429] * 10


# Browsers that an administrator has used before


def test_a_known_browser_is_not_locked_out_by_the_failures_of_others(
    browser_of, new_administrator, client_address, few
):
    """All clients share one address, as behind a proxy without ALMANAC_TRUSTED_PROXIES."""
    for limit in ("BY_NAME", "BY_ADDRESS"):
        few(limit, 6)
    ada, bob = new_administrator(), new_administrator()
    proxy = client_address()
    known = browser_of(ada, address=proxy)
    known.post("/sign-out")

    guesser = browser_of(address=proxy)
    assert statuses(guesser, *[Person(ada.name, "wrong")] * 5) == [401] * 5
    assert statuses(guesser, Person("another", "wrong"), bob, ada) == [401, 429, 429]

    assert known.sign_in(ada).status == 303


def test_a_known_browser_is_limited_too(browser_of, new_administrator, client_address, few):
    ada, here = new_administrator(), client_address()
    known = browser_of(ada, address=here)
    known.post("/sign-out")

    assert statuses(known, *[Person(ada.name, "wrong")] * 5, ada) == [401] * 5 + [429]
    known.address = client_address()
    assert known.sign_in(ada).status == 429
    # Its failures are counted separately.
    assert browser_of(address=here).sign_in(ada).status == 303


def test_known_browser_needs_same_name_and_valid_signature(
    browser_of, new_administrator, client_address, few
):
    few("BY_ADDRESS", 1)
    ada, bob, here = new_administrator(), new_administrator(), client_address()
    known = browser_of(ada, address=here)
    known.post("/sign-out")
    assert browser_of(address=here).sign_in(Person("another", "wrong")).status == 401
    value = known.client.get_cookie(login_throttle.COOKIE, path="/dashboard").value

    assert known.sign_in(bob).status == 429
    forger = browser_of(address=here)
    for forged in ("", "x", value[:-1], "A" + value):
        forger.client.set_cookie(login_throttle.COOKIE, forged, path="/dashboard")
        assert forger.sign_in(ada).status == 429
    assert known.sign_in(ada).status == 303


def test_known_browser_cookie_has_no_name_and_no_access(browser_of, new_administrator, new_app):
    ada = new_administrator()
    app = new_app(public_url="https://calendar.example.com")
    browser = browser_of(at=app)
    page = browser.sign_in(ada)
    (header,) = [each for each in page.headers.getlist("Set-Cookie") if login_throttle.COOKIE in each]
    kept = browser.client.get_cookie(login_throttle.COOKIE, path="/dashboard")

    for attribute in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/dashboard"):
        assert attribute in header
    assert ada.name not in header
    other = browser_of(at=app)
    other.client.set_cookie(login_throttle.COOKIE, kept.value, path="/dashboard")
    assert other.get("/account").status == 303


@pytest.mark.parametrize(
    ("proxies", "header", "warned"),
    [(0, "X-Forwarded-For", True), (0, "Forwarded", True), (0, None, False), (1, "X-Forwarded-For", False)],
)
def test_a_lockout_behind_an_undeclared_proxy_names_the_setting(
    new_app, browser_of, new_administrator, client_address, few, caplog, proxies, header, warned
):
    few("FROM_HERE", 1)
    proxy = client_address()
    browser = browser_of(at=new_app(trusted_proxies=proxies), address=proxy)
    if header:
        browser.client.environ_base[f"HTTP_{header.upper().replace('-', '_')}"] = client_address()

    assert browser.sign_in(Person(new_administrator().name, "wrong")).status == 401

    hints = [each for each in caplog.messages if "ALMANAC_TRUSTED_PROXIES" in each]
    assert [proxy in each for each in hints] == [True] * warned


# Stored data


def test_a_password_is_kept_as_a_hash_by_argon2id(new_administrator, stores, monkeypatch):
    monkeypatch.setattr(passwords, "_hasher", passwords.PasswordHasher())
    ada = new_administrator()

    with stores.database.reading() as session:
        stored = administrators.find(session, ada.name).password_hash
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert ada.password not in stored
    assert passwords.matches(ada.password, stored)
    assert not passwords.matches(ada.password + " ", stored)
    assert not passwords.matches(ada.password, None)
    assert not passwords.matches("nobody's password", None)
    assert stored != passwords.hashed(ada.password)


def test_a_hash_that_has_changed_since_it_was_verified_stays(new_administrator, stores):
    """Otherwise a sign-in could restore the password from before a change."""
    ada = new_administrator()
    with stores.database.writing() as session:
        found = administrators.find(session, ada.name)
        administrators.change_password(session, found.id, "new")
        administrators.rehash_password(session, found.id, "verified", "old password, hashed again")
    with stores.database.reading() as session:
        assert administrators.find(session, ada.name).password_hash == "new"


def test_a_weaker_hash_is_replaced_when_its_password_is_known(browser_of, new_administrator, stores):
    ada = new_administrator()
    weak = passwords.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(ada.password)
    with stores.database.writing() as session:
        found = administrators.find(session, ada.name)
        administrators.change_password(session, found.id, weak)

    browser_of(ada)

    with stores.database.reading() as session:
        stored = administrators.find(session, ada.name).password_hash
    assert not passwords.outdated(stored)
    assert passwords.matches(ada.password, stored)
