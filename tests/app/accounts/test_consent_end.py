"""The end of a consent: rights are checked again then, and the account must be the expected one."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
import requests
from sqlalchemy import update

from store.sql.models import ApiKey, now
from store.sql.queries import connection_rows, connections, organizations, users
from tests.app.answers import connections_of, error
from tests.app.consenting import ADA, BOTH, OWN, arrive, connected, consent, link, nothing_connected, query_of
from tests.app.days import DAY, meeting, periods
from tests.conftest import Api, stores_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("worker")]

EVE = "eve@example.com"
KEY_GONE = "The API key that made this link is no longer in force"
NO_CALENDARS = "Access to calendars was not granted; start again and leave the calendar permissions selected"
OTHER_ACCOUNT = "Another account was chosen than the one that this link is for"


def number_of(stores, user) -> int:
    with stores.database.reading() as session:
        return users.ids(session, [user], organization_id=None)[user]


# --- ids


def test_consent_of_a_deleted_user_does_not_connect_the_next(api, sandbox, new_user, stores):
    sandbox.account("google", ADA)
    gone = new_user()
    number = number_of(stores, gone)
    landed = consent(link(api, gone, "google"))
    api.delete(f"/users/{gone}")
    following = new_user()

    page = arrive(api, landed)

    assert number_of(stores, following) > number
    assert page.status_code == 404
    assert nothing_connected(api, following)


@pytest.mark.parametrize("kind", ["user", "organization"])
def test_no_number_is_given_twice(racer, racing_app, unique, kind):
    """On each database: the numbers that states, keys and caches go by."""
    stores = stores_of(racing_app)
    path, field = {"user": ("/users", "id"), "organization": ("/organizations", "slug")}[kind]
    numbers = []
    for _ in range(3):
        name = unique(kind)
        assert racer.post(path, {field: name, "name": None}).status_code in (200, 201)
        numbers.append(number_of(stores, name) if kind == "user" else _organization(stores, name))
        assert racer.delete(f"{path}/{name}").status_code == 200

    assert numbers[0] < numbers[1] < numbers[2]


# --- the key that made the link


@pytest.fixture
def end_key(stores):
    """End an API key: ``end_key(api, "revoked_at")``."""

    def end(api: Api, column: str) -> None:
        with stores.database.writing() as session:
            mine = update(ApiKey).where(ApiKey.visible == api.key[:12])
            session.execute(mine.values({column: now() - timedelta(seconds=1)}))

    return end


@BOTH
@pytest.mark.parametrize("column", ["revoked_at", "expires_at"])
def test_a_link_ends_with_its_key(api, new_api, allowing, sandbox, new_user, end_key, provider, column):
    sandbox.account(provider, ADA)
    user = new_user()
    maker = Api(allowing.client, new_api().key)
    at_ours = consent(link(maker, user, provider))
    at_theirs = query_of(consent(link(maker, user, provider, redirectUrl=OWN)))
    end_key(maker, column)
    sandbox.forget_requests()

    page = arrive(allowing, at_ours)
    verified = allowing.post(f"/users/oauth/{provider}/verify", at_theirs)

    assert page.status_code == 400
    assert KEY_GONE in page.text
    assert error(verified, 400) == KEY_GONE
    assert sandbox.requests().total == 0
    assert nothing_connected(api, user)


def test_a_link_ends_with_the_organization_of_its_key(api, new_api, sandbox, new_user, new_organization):
    sandbox.account("google", ADA)
    slug = new_organization()
    user = new_user(slugs=(slug,))
    landed = consent(link(new_api(slug), user, "google"))
    api.delete(f"/organizations/{slug}")

    page = arrive(api, landed)

    assert (page.status_code, KEY_GONE in page.text) == (400, True)
    assert nothing_connected(api, user)


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ("leaves", 404, "User not found"),
        ("joins another", 403, "The user belongs to other organizations too"),
    ],
)
def test_membership_is_checked_again_when_consent_ends(
    api, new_api, allowing, sandbox, new_user, new_organization, change, status, message
):
    sandbox.account("google", ADA)
    own, other = new_organization(), new_organization()
    user = new_user(slugs=(own,))
    maker = Api(allowing.client, new_api(own).key)
    at_ours = consent(link(maker, user, "google"))
    at_theirs = query_of(consent(link(maker, user, "google", redirectUrl=OWN)))
    if change == "leaves":
        api.delete(f"/organizations/{own}/members", {"userIds": [user]})
    else:
        api.post(f"/organizations/{other}/members", {"userIds": [user]})
    sandbox.forget_requests()

    page = arrive(allowing, at_ours)
    # A key of the whole service presents it: the rights of the key that made the link count.
    verified = allowing.post("/users/oauth/google/verify", at_theirs)

    assert (page.status_code, message in page.text) == (status, True)
    assert error(verified, status) == message
    assert sandbox.requests().total == 0
    assert nothing_connected(api, user)


# --- the account that was expected


@BOTH
def test_the_expected_account_is_connected_in_any_case_of_its_letters(api, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()
    url = link(api, user, provider, expectedEmail=ADA.upper())
    assert query_of(url)["login_hint"] == ADA.upper()
    by_query = api.get(f"/users/{user}/oauth/{provider}/link", expectedEmail=ADA).json["data"]["link"]
    assert query_of(by_query)["login_hint"] == ADA

    assert arrive(api, consent(url)).status_code == 200
    assert connected(api, user, provider)["email"] == ADA


@BOTH
def test_another_account_than_the_expected_one_changes_nothing(allowing, sandbox, new_user, stores, provider):
    account = sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    sandbox.account(provider, EVE)
    user = new_user(account)
    with stores.database.reading() as session:
        before = session.scalars(connections_of(user)).one().id
    at_ours = opened(link(allowing, user, provider, expectedEmail=ADA), login_hint=EVE)
    url = link(allowing, user, provider, expectedEmail=ADA, redirectUrl=OWN)
    at_theirs = query_of(opened(url, login_hint=EVE))

    page = arrive(allowing, at_ours)
    verified = allowing.post(f"/users/oauth/{provider}/verify", at_theirs)

    assert (page.status_code, f"{OTHER_ACCOUNT}." in page.text) == (400, True)
    assert EVE not in page.text
    assert error(verified, 400) == OTHER_ACCOUNT
    with stores.database.reading() as session:
        assert session.scalars(connections_of(user)).one().id == before
    assert periods(allowing.get(f"/users/{user}/calendar/busy", **DAY)) == [("09:00", "10:00")]


@pytest.mark.parametrize("email", ["", "ada", "ada@", 5])
def test_an_expected_address_has_to_be_one(api, new_user, email):
    answer = api.post(f"/users/{new_user()}/oauth/google/authorize", {"expectedEmail": email})

    assert error(answer, 400).startswith("expectedEmail must ")


# --- calendars that were not granted


@BOTH
@pytest.mark.parametrize("before", [True, False], ids=["connected", "first"])
def test_a_consent_without_calendars_changes_nothing(allowing, sandbox, new_user, provider, before):
    account = sandbox.account(provider, ADA, events=[meeting("09:00", "10:00")])
    user = new_user(*[account] * before)
    at_ours = without_calendars(link(allowing, user, provider))
    at_theirs = query_of(without_calendars(link(allowing, user, provider, redirectUrl=OWN)))

    page = arrive(allowing, at_ours)
    verified = allowing.post(f"/users/oauth/{provider}/verify", at_theirs)

    assert (page.status_code, f"{NO_CALENDARS}." in page.text) == (400, True)
    assert error(verified, 400) == NO_CALENDARS
    if before:
        assert periods(allowing.get(f"/users/{user}/calendar/busy", **DAY)) == [("09:00", "10:00")]
    else:
        assert nothing_connected(allowing, user)


NARROW = {
    "google": "openid email https://www.googleapis.com/auth/calendar.readonly",
    "microsoft": "openid offline_access User.Read Calendars.Read",
}


@BOTH
def test_a_smaller_grant_does_not_replace_a_connection_that_works(api, sandbox, new_user, provider):
    account = sandbox.account(provider, ADA)
    user = new_user(account)
    before = api.get(f"/users/{user}/oauth/{provider}").json["data"]

    page = arrive(api, opened(link(api, user, provider, scope="write"), scope=NARROW[provider]))

    assert page.status_code == 400
    assert "Not everything was granted: changing events is missing." in page.text
    assert "The connection that works is kept" in page.text
    again = re.search(r'<a href="([^"]+)">Try again</a>', page.text)
    assert again is not None
    assert api.get(f"/users/{user}/oauth/{provider}").json["data"] == before
    assert arrive(api, consent(unescape(again[1]))).status_code == 200


@BOTH
def test_smaller_first_grant_is_stored_with_a_warning(api, sandbox, new_user, provider):
    sandbox.account(provider, ADA)
    user = new_user()

    page = arrive(api, opened(link(api, user, provider, scope="write"), scope=NARROW[provider]))

    assert page.status_code == 200
    assert '<h1 class="warn">Connected with less access</h1>' in page.text
    assert "Not granted: changing events." in page.text
    assert api.get(f"/users/{user}/oauth/{provider}").json["data"]["alive"]


@BOTH
def test_a_smaller_grant_replaces_a_connection_that_has_ended(api, sandbox, new_user, stores, provider):
    user = new_user(sandbox.account(provider, ADA))
    with stores.database.writing() as session:
        (ref,) = connection_rows.of_user(session, user, organization_id=None)
        connections.mark_dead(session, ref.id, "gone")

    assert arrive(api, opened(link(api, user, provider), scope=NARROW[provider])).status_code == 200


@BOTH
def test_a_smaller_access_that_was_requested_replaces_a_wider_one(api, sandbox, new_user, provider):
    user = new_user(sandbox.account(provider, ADA))

    page = arrive(api, consent(link(api, user, provider, scope="free-busy")))

    assert ">Connected</h1>" in page.text


def test_grant_of_calendar_list_only_is_refused(api, sandbox, new_user):
    sandbox.account("google", ADA)
    only = "https://www.googleapis.com/auth/calendar.calendarlist.readonly"
    refused, custom = new_user(), new_user()

    page = arrive(api, opened(link(api, refused, "google"), scope=f"openid email {only}"))
    assert (page.status_code, f"{NO_CALENDARS}." in page.text) == (400, True)
    assert nothing_connected(api, refused)

    page = arrive(api, consent(link(api, custom, "google", scope=[only])))
    assert '<h1 class="warn">Connected without calendars</h1>' in page.text
    assert "No busy times can be read" in page.text


def opened(url: str, **changed: str) -> str:
    """Open a link as a person who chooses an account, or leaves only some permissions selected."""
    query = query_of(url) | {"login_hint": ADA} | changed
    answer = requests.get(url.partition("?")[0], params=query, allow_redirects=False, timeout=10)
    return answer.headers["Location"]


def without_calendars(url: str) -> str:
    """Open a link as a person who clears every calendar permission on the consent page."""
    scopes = [each for each in query_of(url)["scope"].split() if "calendar" not in each.lower()]
    return opened(url, scope=" ".join(scopes))


def _organization(stores, slug: str) -> int:
    with stores.database.reading() as session:
        return organizations.ids(session, [slug], organization_id=None)[slug]
