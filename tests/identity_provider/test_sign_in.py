"""People of a directory sign in to the dashboard, and lose it with their account or their groups."""

from __future__ import annotations

import time
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import select, update

from providers.base import Token
from providers.errors import Misconfigured
from providers.oauth import consent
from providers.oauth.consent import ConsentRequest
from providers.openid.client import ClientRegistration, IdentityProvider
from store.sql.models import Administrator, Identity, now
from store.sql.queries import administrators, audit
from store.sql.queries.identities import refresh_token
from tests.dashboard.visiting import words
from tests.identity_provider.conftest import REDIRECT
from tests.identity_provider.provider import SECRET
from workers.upkeep import identities

pytestmark = pytest.mark.openid


def checked(installation) -> int:
    """Check every identity now, as the task does when the check is due; how many were confirmed."""
    with installation.stores.database.writing() as session:
        session.execute(update(Identity).values(checked_at=now() - timedelta(hours=1)))
    return identities.check(installation.runtime, deadline=time.monotonic() + 600)


def person(installation, subject) -> Administrator:
    with installation.stores.database.reading() as session:
        joined = select(Administrator).join(Identity, Identity.administrator_id == Administrator.id)
        return session.scalars(joined.where(Identity.subject == subject)).one()


def actions(installation) -> list[tuple[str, str]]:
    with installation.stores.database.reading() as session:
        return [(row.actor, row.action) for row in audit.page(session, limit=5)]


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["admins"], "administrator"),
        (["staff", "operators"], "operator"),
        (["unknown", "staff"], "viewer"),
    ],
)
def test_the_groups_of_a_person_decide_about_the_role(installation, unique, groups, role):
    name = unique("person")
    installation.provider.put(name, *groups)

    browser, page = installation.sign_in(name)

    assert (page.status, page.location) == (303, "/dashboard/")
    account = browser.get("/account")
    (lead,) = account.html.select(".lead")
    assert words(lead) == f"You are signed in as {name} , with the role {role}."
    assert not account.html.select("input[type=password]")
    assert actions(installation)[0] == (f"{role} {name}", "signInByOpenId")


def test_a_person_returns_to_the_page_that_asked_for_the_sign_in(installation, unique):
    name = unique("person")
    installation.provider.put(name, "staff")
    browser = installation.browser()
    page = browser.get(browser.get("/users").location)
    (link,) = [each["href"] for each in page.html.select("a.button") if "openid" in each["href"]]
    back = installation.provider.visit(browser.get(link).location, name)

    assert browser.get(back.removeprefix("http://localhost")).location == "/dashboard/users"


def test_the_same_account_is_the_same_person(installation, unique):
    name = unique("person")
    installation.provider.put(name, "staff")
    installation.sign_in(name)
    first = person(installation, name).id
    installation.provider.put(name, "operators")
    browser, _ = installation.sign_in(name)

    assert person(installation, name).id == first
    assert browser.get("/users").status == 200
    assert person(installation, name).role == "operator"


def test_without_a_role_a_person_is_refused_with_what_to_do(installation, unique):
    name = unique("person")
    installation.provider.put(name, "unknown")

    browser, page = installation.sign_in(name)

    assert (page.status, page.heading) == (403, "You have no role here")
    assert "ALMANAC_OIDC_ROLES" in page.text
    assert browser.get("/account").status == 303
    assert ("not signed in", "signInWithoutRole") in actions(installation)


def test_a_person_who_declines_is_told(installation, unique):
    name = unique("person")
    installation.provider.put(name, "staff")

    browser, page = installation.sign_in(name, declines=True)

    assert (page.status, page.heading) == (403, "The identity provider did not sign you in")
    assert browser.get("/account").status == 303


def test_a_person_who_left_is_signed_out_everywhere_and_their_links_end(installation, unique):
    name = unique("person")
    installation.provider.put(name, "admins")
    browser, _ = installation.sign_in(name)
    second, _ = installation.sign_in(name)
    welcome = browser.post("/account/administrators/invite", invitation_form(browser))
    path = urlsplit(welcome.html.find(id="link").get_text()).path
    assert installation.browser().get(path).status == 200
    assert checked(installation) >= 1
    assert browser.get("/account").status == 200

    installation.provider.remove(name)
    checked(installation)

    assert browser.get("/account").status == 303
    assert second.get("/account").status == 303
    assert installation.browser().get(path).status == 404
    assert ("identity provider", "endIdentity") in actions(installation)


def invitation_form(browser):
    page = browser.get("/account")
    ticket = page.html.find("input", {"name": "ticket"})["value"]
    return {"ticket": ticket, "role": "viewer"}


def test_a_person_who_left_cannot_sign_in(installation, unique):
    name = unique("person")
    installation.provider.put(name, "staff")
    installation.sign_in(name)
    browser = installation.browser()
    there = browser.get("/sign-in/openid").location
    back = installation.provider.visit(there, name)
    installation.provider.remove(name)

    page = browser.get(back.removeprefix("http://localhost"))

    assert (page.status, page.heading) == (400, "This sign-in is no longer valid")
    assert browser.get("/account").status == 303


def test_groups_that_change_change_the_role_within_a_check(installation, unique):
    name = unique("person")
    installation.provider.put(name, "admins")
    browser, _ = installation.sign_in(name)
    invite = "/account/administrators/invite"
    assert browser.post(invite, invitation_form(browser)).status == 200
    installation.provider.put(name, "staff")
    checked(installation)

    assert person(installation, name).role == "viewer"
    assert browser.post(invite, {"ticket": "x"}).status == 403

    installation.provider.put(name, "unknown")
    checked(installation)
    assert browser.get("/account").status == 303


def test_a_refresh_token_is_used_once_and_replaced(installation, unique):
    name = unique("person")
    installation.provider.put(name, "staff")
    browser, _ = installation.sign_in(name)

    for _ in range(3):
        assert checked(installation) >= 1
    assert browser.get("/account").status == 200


def test_a_sign_in_ends_only_in_the_browser_that_began_it_and_once(installation, unique):
    name = unique("person")
    installation.provider.put(name, "staff")
    browser, thief = installation.browser(), installation.browser()
    back = installation.provider.visit(browser.get("/sign-in/openid").location, name)
    path = back.removeprefix("http://localhost")

    # Login CSRF: a victim who is sent to the attacker's address would be signed in as the attacker.
    thief.get("/sign-in/openid")
    assert thief.get(path).heading == "This sign-in was begun elsewhere"
    assert browser.get(path).status == 303
    assert browser.get("/account").status == 200
    assert browser.get(path).heading == "This sign-in was begun elsewhere"


def test_a_code_of_another_sign_in_is_refused(installation, unique):
    """Injection of a stolen code: it was issued for another nonce and another verifier."""
    name = unique("person")
    installation.provider.put(name, "staff")
    victim, thief = installation.browser(), installation.browser()
    stolen = installation.provider.visit(victim.get("/sign-in/openid").location, name)
    own = thief.get("/sign-in/openid").location
    code = parse_qs(urlsplit(stolen).query)["code"][0]
    state = parse_qs(urlsplit(own).query)["state"][0]

    page = thief.get("/sign-in/openid/callback", code=code, state=state)

    assert (page.status, page.heading) == (400, "This sign-in is no longer valid")
    assert thief.get("/account").status == 303


def test_a_person_with_a_password_keeps_the_name(installation, unique):
    name = unique("person")
    with installation.stores.database.writing() as session:
        administrators.create(session, name=name, password_hash="of a password")
    installation.provider.put(name, "staff")

    installation.sign_in(name)

    assert person(installation, name).name == f"{name} (2)"
    assert person(installation, name).role == "viewer"


@pytest.mark.parametrize("client", ["almanac-basic", "almanac-post"])
def test_both_ways_to_send_the_secret(installation, unique, client):
    """The worker has one client; this is the client of the service with each of both."""
    name = unique("person")
    installation.provider.put(name, "staff")

    assert redeemed(installation, client, name, SECRET).subject == name
    with pytest.raises(Misconfigured):
        redeemed(installation, client, name, "wrong")


def redeemed(installation, client, name, secret):
    """The claims about a person who signs in with this client and secret."""
    issuer, deadline = installation.provider.issuer, time.monotonic() + 10
    used = IdentityProvider(ClientRegistration(issuer, client, Token(secret), "groups"))
    known = {"redirect_uri": REDIRECT, "verifier": "v" * 43, "nonce": "n"}
    page = used.page(deadline=deadline)
    request = ConsentRequest(REDIRECT, ("openid",), "s", known["verifier"])
    there = consent.link(page, client, request, nonce=known["nonce"])
    code = parse_qs(urlsplit(installation.provider.visit(there, name)).query)["code"][0]
    return used.redeem(code, deadline=deadline, **known)


def test_nothing_of_a_sign_in_stays_in_logs_database_and_redis(installation, unique, worker_log, caplog):
    caplog.set_level("DEBUG")
    name = unique("person")
    installation.provider.put(name, "staff")
    browser = installation.browser()
    there = browser.get("/sign-in/openid").location
    back = installation.provider.visit(there, name)
    browser.get(back.removeprefix("http://localhost"))
    with installation.stores.database.reading() as session:
        row = session.get(Identity, person(installation, name).id)
        token = refresh_token(row, installation.stores.keyring)
    code = parse_qs(urlsplit(back).query)["code"][0]
    files = installation.stores.settings.data_dir.glob("almanac.db*")
    database = b"".join(each.read_bytes() for each in files)
    redis = installation.stores.redis
    stored = b"".join(redis.dump(key) or b"" for key in redis.scan_iter())

    assert token
    for secret in (token, code, SECRET):
        assert secret not in caplog.text
        assert secret.encode() not in worker_log.read_bytes()
        assert secret.encode() not in database
        assert secret.encode() not in stored
    # The search would find what is there.
    assert name.encode() in database
