"""People who sign in by OpenID Connect, and passwords that are turned off.

``tests/identity_provider`` signs people in at a real provider.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from app.cli import administrator_setup
from app.dashboard.sign_in import openid, passwords
from store.security.one_time_secrets import PendingSignIn
from store.sql.models import Administrator, Identity, Role, UserInvitation, now
from store.sql.queries import administrators, dashboard_sessions, identities, issuers, user_invitations
from store.sql.queries.issuers import Issuer
from store.stores import Stores
from tests import people
from tests.conftest import stores_of
from tests.dashboard.visiting import Browser
from tests.waiting import until
from workers.fanout.admission import Admission, admitted_key
from workers.jobs import FindSignInPage, Reply, SignIn, SignInResult
from workers.queues import Queue

ISSUER = "https://login.example.com"
OPENID = {
    "oidc_issuer": ISSUER,
    "oidc_client_id": "almanac",
    "oidc_client_secret": "planted-openid-secret",
    "oidc_roles": (("admins", "administrator"),),
}


@pytest.fixture
def person(stores, unique):
    """A person of the directory, confirmed for another hour."""
    name = unique("person")
    with stores.database.writing() as session:
        return identities.create(
            session,
            issuer=ISSUER,
            subject=f"subject of {name}",
            name=name,
            role=Role.ADMINISTRATOR,
            until=now() + timedelta(hours=1),
        )


@pytest.fixture
def signed_in_as(stores):
    """A browser in which a person of the directory has signed in."""

    def make(app, person) -> Browser:
        browser = Browser(app.test_client())
        browser.get("/sign-in")
        with stores.database.writing() as session:
            secret = dashboard_sessions.begin(session, person.id, address="", agent="")
        with browser.client.session_transaction("/dashboard/") as cookie:
            cookie["session"] = secret
        return browser

    return make


def confirmed(stores, person, until):
    with stores.database.writing() as session:
        row = update(Identity).where(Identity.administrator_id == person.id)
        session.execute(row.values(confirmed_until=until))


@pytest.fixture
def answer(monkeypatch):
    """Have the workers answer so: ``answer(page=...)`` and the jobs that they were sent."""

    def make(**result):
        jobs = []

        def gather(self, sent, **_):
            jobs.extend(sent)
            return [Reply(sign_in=SignInResult(**result))]

        monkeypatch.setattr("workers.fanout.client.Fanout.gather", gather)
        return jobs

    return make


@pytest.fixture
def at(new_app, client_address):
    """A browser without sign-in, of an installation with OpenID Connect and other settings."""
    return lambda **changed: Browser(new_app(**(OPENID | changed)).test_client(), client_address())


def test_without_an_issuer_only_passwords_are_offered(visitor):
    page = visitor.get("/sign-in")

    assert page.html.find(id="f-password") is not None
    assert "openid" not in page.text
    assert visitor.get("/sign-in/openid").location == "/dashboard/sign-in"
    assert visitor.get("/sign-in/openid/callback", state="x").heading == "This sign-in was begun elsewhere"


def test_both_are_offered(at):
    page = at().get("/sign-in", after="/dashboard/keys")

    (link,) = [each["href"] for each in page.html.select("a.button")]
    assert link == "/dashboard/sign-in/openid?after=/dashboard/keys"
    assert page.html.find(id="f-password") is not None


def test_passwords_that_are_turned_off_sign_nobody_in(at, visitor, administrator, stores):
    browser = at(password_sign_in=False)
    page = browser.get("/sign-in")
    with stores.database.writing() as session:
        secret = administrators.invite(session)

    assert page.html.find("form") is None
    assert page.html.select_one("a.button") is not None
    # A form of the time before, which has a valid token.
    token = visitor.get("/sign-in").token
    browser.client.set_cookie("almanac", visitor.cookie, path="/dashboard")
    for path, form in {
        "/sign-in": {"name": administrator.name, "password": administrator.password},
        "/sign-in/code": {"code": "123456"},
        f"/welcome/{secret}": {"name": "eve", "password": "seven quiet calendars", "again": "x"},
    }.items():
        browser.open("POST", path, data={"csrf_token": token} | form)
        assert browser.get("/account").status == 303
    assert browser.get(f"/welcome/{secret}").heading == "Nobody registers with a password here"


def test_a_password_session_ends_when_passwords_are_turned_off(new_app, browser_of, administrator):
    browser, other = (
        browser_of(administrator),
        Browser(new_app(**OPENID, password_sign_in=False).test_client()),
    )
    other.client.set_cookie("almanac", browser.cookie, path="/dashboard")

    assert browser.get("/account").status == 200
    assert other.get("/account").status == 303


def test_there_is_no_first_link_when_passwords_are_turned_off(new_service, settings):
    url = new_service.extensions["almanac"].settings.database_url
    with Stores(replace(settings, database_url=url, password_sign_in=False)) as stores:
        assert administrator_setup.first_link(stores, "http://x") is None
    with Stores(replace(settings, database_url=url)) as stores:
        assert administrator_setup.first_link(stores, "http://x") is not None


def test_a_session_lasts_as_long_as_the_identity_is_confirmed(app, stores, person, signed_in_as):
    browser = signed_in_as(app, person)
    assert browser.get("/account").status == 200

    confirmed(stores, person, now())

    assert browser.get("/account").status == 303


def test_a_cached_session_ends_when_the_confirmation_has_passed(app, person, signed_in_as, monkeypatch):
    browser = signed_in_as(app, person)
    assert browser.get("/account").status == 200
    monkeypatch.setattr(dashboard_sessions, "now", lambda: now() + timedelta(hours=1, seconds=1))

    assert browser.get("/account").status == 303


def test_links_are_valid_while_the_identity_is_confirmed(stores, person, unique):
    issuer = Issuer(administrator_id=person.id, security_stamp=person.security_stamp)
    with stores.database.writing() as session:
        secret = administrators.invite(session, by=issuer)
        user = people.add_user(session, unique("user"))
        user_invitations.make(session, {"x": user.id}, scope="", created_by="x", issuer=issuer)
        invitation = session.scalars(select(UserInvitation.id).where(UserInvitation.user_id == user.id)).one()

    def valid() -> tuple[bool, bool, bool]:
        with stores.database.reading() as session:
            return (
                issuers.in_force(session, issuer),
                administrators.invited(session, secret) is not None,
                session.get(UserInvitation, invitation).issuer_in_force,
            )

    assert valid() == (True, True, True)
    confirmed(stores, person, now())
    assert valid() == (False, False, False)
    confirmed(stores, person, now() + timedelta(hours=1))
    assert valid() == (True, True, True)
    with stores.database.writing() as session:
        identities.end(session, person.id, because="gone")
    confirmed(stores, person, now() + timedelta(hours=1))
    assert valid() == (False, False, False)


def test_no_password_fits_a_person_of_the_directory(visitor, person, monkeypatch, client_address):
    # Unknown names are compared with the hash of this text, so that they take as long.
    for password in ("", "no administrator's password", "x"):
        browser = Browser(visitor.client, client_address())
        page = browser.get("/sign-in")
        page = browser.post("/sign-in", {"name": person.name, "password": password})
        assert page.status in (400, 401)
    assert not passwords.matches("no administrator's password", "")


def test_the_account_has_no_password_and_no_second_factor(app, person, signed_in_as):
    browser = signed_in_as(app, person)

    page = browser.get("/account")

    assert page.html.select("input[type=password]") == []
    assert "Your organization's account" in page.text
    assert browser.get("/account/second-factor").location == "/dashboard/account"


def test_the_directory_decides_about_the_role(stores, signed_in, person):
    path = f"/account/administrators/{person.id}"

    page = signed_in.do(f"{path}/role", {"role": "viewer"})

    assert page.notices == ["The identity provider decides about this role, by the groups of the person."]
    assert page.html.find("select") is None
    with stores.database.reading() as session:
        assert administrators.load(session, person.id).role == Role.ADMINISTRATOR


def test_the_command_gives_no_password_to_a_person_of_the_directory(stores, person):
    with pytest.raises(ValueError, match="signs in by OpenID Connect"):
        administrator_setup.create(stores, person.name, "seven quiet calendars")


def test_the_last_administrator_may_lose_the_role_in_the_directory(new_service):
    stores = new_service.extensions["almanac"].stores
    with stores.database.writing() as session:
        person = identities.create(
            session, issuer=ISSUER, subject="a", name="ada", role=Role.ADMINISTRATOR, until=now()
        )
        identities.change_role(session, person, Role.VIEWER)
        session.expire_all()
        assert session.get(Administrator, person.id).role == Role.VIEWER


def test_the_browser_is_sent_to_the_page_of_the_provider(at, answer):
    jobs = answer(page=f"{ISSUER}/authorize")
    browser = at(public_url="https://almanac.example.com")

    page = browser.get("/sign-in/openid")

    assert page.status == 303
    assert page.location.startswith(f"{ISSUER}/authorize?response_type=code&client_id=almanac&")
    assert "redirect_uri=https%3A%2F%2Falmanac.example.com%2Fdashboard%2Fsign-in%2Fopenid%2Fcallback" in (
        page.location
    )
    assert jobs == [FindSignInPage()]


@pytest.mark.parametrize("word", sorted(set(openid.REFUSALS) - {"denied", "browser", "many", "address"}))
def test_every_refusal_is_a_page_that_says_what_to_do(at, answer, word):
    answer(refused=word)
    status, title, hint = openid.REFUSALS[word]

    page = at().get("/sign-in/openid")

    assert (page.status, page.heading) == (status, title)
    assert hint in " ".join(page.html.get_text(" ").split())


@pytest.fixture
def returning(at, stores):
    """A browser that comes back from the provider: ``returning(code="x")``."""

    def make(**query):
        browser = at()
        begun = PendingSignIn("nonce", "verifier", "http://localhost/x", "/dashboard/keys")
        state = stores.begun_sign_ins.put(begun)
        browser.get("/sign-in")
        with browser.client.session_transaction("/dashboard/") as cookie:
            cookie["openid state"] = state
        return browser.get("/sign-in/openid/callback", **({"state": state} | query))

    return make


def test_the_code_goes_to_a_worker_encrypted(returning, answer, stores, person):
    jobs = answer(administrator_id=person.id)

    page = returning(code="planted-code")

    assert (page.status, page.location) == (303, "/dashboard/keys")
    (job,) = jobs
    assert isinstance(job, SignIn)
    assert "planted" not in repr(job)
    taken = stores.sign_ins.take(job.secret_name)
    assert (taken.code, taken.verifier) == ("planted-code", "verifier")
    assert "planted" not in repr(taken)


@pytest.mark.parametrize(
    ("query", "heading"),
    [
        ({"error": "access_denied"}, "The identity provider did not sign you in"),
        ({"error": "temporarily_unavailable"}, "The identity provider did not answer"),
        ({"error": "invalid_scope"}, "The identity provider refused the sign-in"),
        ({"error": "<script>"}, "The identity provider refused the sign-in"),
        ({}, "The answer of the identity provider could not be trusted"),
        (
            {"code": "x", "iss": "https://evil.example"},
            "The answer of the identity provider could not be trusted",
        ),
        ({"code": "x", "state": "other"}, "This sign-in was begun elsewhere"),
        ({"code": "x", "state": ""}, "This sign-in was begun elsewhere"),
        ({"code": "x", "state": "\xe9"}, "This sign-in was begun elsewhere"),
    ],
)
def test_a_way_back_without_a_sign_in_says_why(returning, answer, query, heading):
    jobs = answer(administrator_id=1)

    page = returning(**query)

    assert page.heading == heading
    assert "<script>" not in page.text.replace('<script src="', "")
    assert jobs == []


def test_sign_ins_from_one_address_are_limited(at, answer):
    answer(page=f"{ISSUER}/authorize")
    browser = at()

    pages = [browser.get("/sign-in/openid") for _ in range(openid.FROM_ADDRESS.amount + 1)]

    assert {page.status for page in pages[:-1]} == {303}
    assert (pages[-1].status, pages[-1].heading) == (429, "Too many sign-ins from your address")


def test_an_identity_provider_that_hangs_takes_few_places(new_app, settings, client_address):
    # In a Redis database of its own, in which no worker is: no reply comes before the deadline.
    app = new_app(**OPENID, redis_url=f"{settings.redis_url}?db=2")
    stores, path = stores_of(app), "/sign-in/openid"
    with ThreadPoolExecutor(openid.AT_ONCE) as threads:
        waiting = [
            threads.submit(Browser(app.test_client(), client_address()).get, path)
            for _ in range(openid.AT_ONCE)
        ]
        until(lambda: stores.redis.zcard(admitted_key(Queue.WRITES)) == openid.AT_ONCE)

        page = Browser(app.test_client(), client_address()).get(path)

        assert (page.status, page.heading) == (503, "Too many people are signing in at this moment")
        assert not any(each.done() for each in waiting)
        # All others may still write.
        Admission(stores.redis).check(Queue.WRITES)
    headings = {each.result().heading for each in waiting}
    assert headings == {"The identity provider did not answer"}
    stores.redis.flushdb()


def test_behind_an_unknown_address_nobody_is_sent_away(new_app, answer):
    jobs = answer(page=f"{ISSUER}/authorize")
    browser = Browser(new_app(**OPENID).test_client())

    page = browser.get("/sign-in/openid", headers={"Host": "calendar.example.com"})

    assert (page.status, page.heading) == (503, "The address of this service is not known")
    assert jobs == []
