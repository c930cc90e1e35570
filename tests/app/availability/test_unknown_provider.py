"""Connections with a provider that this version does not have."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from app.services import EXTENSION
from store.sql.models import OAuthConnection
from store.sql.queries import users
from tests.app.days import DAY, MORNING, meeting

GONE = "gone-away"

pytestmark = pytest.mark.usefixtures("worker")


@pytest.fixture
def lost(api, unique, new_user, sandbox):
    """A user whose only connection has such a provider, and an organization of them and a healthy user."""
    slug = unique("acme")
    assert api.post("/organizations", {"slug": slug, "name": None}).status_code == 200
    new_user(sandbox.account("google", "well@example.com", events=[meeting("09:00", "10:00")]), slugs=(slug,))
    user = new_user(sandbox.account("google", "lost@example.com"), name="lost", slugs=(slug,))
    stores = api.client.application.extensions[EXTENSION].stores
    with stores.database.writing() as session:
        user_id = users.ids(session, [user], organization_id=None)[user]
        row = update(OAuthConnection).where(OAuthConnection.user_id == user_id)
        session.execute(row.values(provider=GONE))
    return slug, user


def test_only_this_member_cannot_be_read(api, lost):
    slug, user = lost
    answer = api.get(f"/organizations/{slug}/scheduling", **MORNING)

    assert answer.status_code == 200, answer.text
    (failed,) = answer.json["failedUsers"]
    assert (failed["userId"], failed["reason"]) == (user, "providerNotConfigured")
    assert len(answer.json["data"]) == 2


@pytest.mark.parametrize(
    ("path", "query"), [("scheduling", MORNING), ("calendar/busy", MORNING), ("calendar/events", DAY)]
)
def test_the_user_is_not_free_but_not_readable(api, lost, path, query):
    _, user = lost
    answer = api.get(f"/users/{user}/{path}", **query)
    assert (answer.status_code, answer.json["code"]) == (404, "providerNotConfigured"), answer.text


def test_what_is_stored_is_shown_and_can_be_deleted(api, lost):
    _, user = lost
    for path in ("", "/connections", "/export"):
        answer = api.get(f"/users/{user}{path}")
        assert answer.status_code == 200
        assert GONE in answer.text
    assert api.delete(f"/users/{user}").status_code == 200
