"""Deleting or replacing a connection, and the effect on other connections of the same provider account."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from store.coordination import locks
from store.sql.models import OAuthConnection
from store.sql.queries.connections import ProviderAccount
from tests.app.answers import connections_of
from tests.app.consenting import arrive, connected, consent, link
from tests.app.days import DAY
from tests.conftest import connect

pytestmark = pytest.mark.usefixtures("worker")


@pytest.fixture
def email(unique) -> str:
    """An address that no connection of another test has."""
    return f"{unique('ada')}@example.com"


@pytest.fixture
def consented(api, new_user):
    """Make a user who has connected a Google account by our own consent flow."""

    def make(email, **more) -> str:
        user = new_user(**more)
        assert arrive(api, consent(link(api, user, "google"), email)).status_code == 200
        return user

    return make


@pytest.fixture
def works(api):
    """Whether a user's calendars can be read from the provider now."""
    fresh = {"Cache-Control": "no-cache"}
    return lambda user: api.get(f"/users/{user}/calendar/busy", headers=fresh, **DAY).status_code == 200


def test_consent_stores_account_and_that_the_service_obtained_it(
    sandbox, consented, api, new_user, stores, email
):
    account = sandbox.account("google", email)
    posted = new_user()
    connect(api, posted, account)
    with stores.database.reading() as session:
        (obtained,) = session.scalars(connections_of(consented(email)))
        (handed_in,) = session.scalars(connections_of(posted))
    assert (obtained.obtained, handed_in.obtained) == (True, False)
    assert obtained.account_id.isdigit()
    assert handed_in.account_id is None


@pytest.mark.parametrize("path", ["/users/{}", "/users/{}/oauth/google"])
def test_the_end_of_one_users_connection_leaves_another_tenants_alone(
    api, sandbox, consented, new_organization, works, email, path
):
    sandbox.account("google", email)
    x, y = (consented(email, slugs=(new_organization(),)) for _ in range(2))
    assert works(x)
    sandbox.forget_requests()

    assert api.delete(path.format(x)).status_code == 200

    assert "google.revoke" not in sandbox.requests().by_operation
    assert works(y)
    # The last one takes the grant along.
    assert api.delete(path.format(y)).status_code == 200
    assert sandbox.requests().by_operation["google.revoke"] == 1


@pytest.mark.parametrize("path", ["/users/{}", "/users/{}/oauth/google"])
def test_tokens_that_were_posted_survive_the_end_of_their_connection(
    api, sandbox, new_user, works, email, path
):
    account = sandbox.account("google", email)
    user, again = new_user(), new_user()
    connect(api, user, account)
    sandbox.forget_requests()

    assert api.delete(path.format(user)).status_code == 200
    assert sandbox.requests().total == 0

    # An integrator who deletes a user and creates it again keeps the account.
    connect(api, again, account)
    assert works(again)


def test_a_posted_connection_of_the_account_keeps_the_grant(api, sandbox, consented, new_user, works, email):
    account = sandbox.account("google", email)
    x, y = consented(email), new_user()
    # Its id is not known; its address is spelled otherwise.
    connect(api, y, account, email=email.upper())

    api.delete(f"/users/{x}")

    assert works(y)


def test_accounts_with_same_address_differ_by_id(api, sandbox, consented, stores, email):
    sandbox.account("google", email)
    x, y = consented(email), consented(email)
    with stores.database.writing() as session:
        (other,) = session.scalars(connections_of(y))
        session.execute(
            update(OAuthConnection).where(OAuthConnection.id == other.id).values(account_id="another")
        )
    sandbox.forget_requests()

    api.delete(f"/users/{x}/oauth/google")

    assert sandbox.requests().by_operation["google.revoke"] == 1


@pytest.mark.parametrize(("path", "left"), [("/users/{}/oauth/google", 200), ("/users/{}", 404)])
def test_a_caller_may_keep_the_grant(api, sandbox, consented, email, path, left):
    sandbox.account("google", email)
    user = consented(email)
    sandbox.forget_requests()

    assert api.delete(f"{path.format(user)}?revoke=false").status_code == 200

    assert sandbox.requests().total == 0
    answer = api.get(f"/users/{user}/oauth")
    assert (answer.status_code, answer.json["data"] or None) == (left, None)


@pytest.mark.parametrize("value", ["no", "0", "False", ""])
def test_revoke_is_true_or_false(api, sandbox, consented, email, value):
    sandbox.account("google", email)
    user = consented(email)

    answer = api.delete(f"/users/{user}/oauth/google?revoke={value}")

    assert (answer.status_code, answer.json["error"]) == (400, "revoke must be true or false")
    assert connected(api, user, "google")["alive"]


def test_a_reconnect_with_the_same_account_keeps_its_grant(api, sandbox, consented, works, email):
    sandbox.account("google", email)
    user = consented(email)
    sandbox.forget_requests()

    assert arrive(api, consent(link(api, user, "google"), email)).status_code == 200

    assert "google.revoke" not in sandbox.requests().by_operation
    assert works(user)


@pytest.mark.parametrize("how", ["consent", "post"])
def test_reconnect_with_another_account_revokes_unused_grant(
    api, sandbox, consented, works, email, unique, how
):
    sandbox.account("google", email)
    other = sandbox.account("google", f"{unique('eve')}@example.com")
    user, neighbour = consented(email), consented(email)
    sandbox.forget_requests()

    def reconnect(user):
        if how == "consent":
            assert arrive(api, consent(link(api, user, "google"), other.email)).status_code == 200
        else:
            connect(api, user, other)

    reconnect(user)
    assert "google.revoke" not in sandbox.requests().by_operation
    assert works(neighbour)

    reconnect(neighbour)
    assert sandbox.requests().by_operation["google.revoke"] == 1
    assert works(user)
    assert works(neighbour)


def test_connection_without_address_prevents_revocation(api, sandbox, consented, works, email):
    account = sandbox.account("google", email)
    user = consented(email)
    sandbox.forget_requests()

    connect(api, user, account, email=None)

    assert "google.revoke" not in sandbox.requests().by_operation
    assert works(user)


def test_consent_finished_after_a_deletion_has_its_own_grant(api, sandbox, consented, new_user, works, email):
    sandbox.account("google", email)
    going, coming = consented(email), new_user()
    landed = consent(link(api, coming, "google"), email)

    api.delete(f"/users/{going}")

    assert arrive(api, landed).status_code == 200
    assert works(coming)


def test_consent_during_a_revocation_is_refused(api, sandbox, consented, new_user, stores, email):
    sandbox.account("google", email)
    account_id = _account_id(stores, consented(email))
    coming = new_user()
    landed = consent(link(api, coming, "google"), email)
    # As a revocation that ends while the code is being redeemed: its moment lies after the exchange began.
    stores.redis.set(_revoked(account_id), repr(stores.account_locks.now() + 60), ex=60)

    page = arrive(api, landed)

    assert page.status_code == 400
    assert "Access to this account was just revoked; start again" in page.text
    assert api.get(f"/users/{coming}/oauth").json["data"] == []
    stores.redis.delete(_revoked(account_id))


def _account_id(stores, user: str) -> str:
    with stores.database.reading() as session:
        (row,) = session.scalars(connections_of(user))
    return row.account_id


def _revoked(account_id: str) -> str:
    (name,) = locks._names(ProviderAccount("google", account_id, None))
    return f"grant-revoked:{name}"
