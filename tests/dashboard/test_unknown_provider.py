"""The pages of a user whose provider this version does not have."""

from __future__ import annotations

from sqlalchemy import update

from app.services import EXTENSION
from store.sql.models import OAuthConnection
from store.sql.queries import users


def test_pages_name_the_provider(app, signed_in, new_user, sandbox):
    user = new_user(sandbox.account("google", "lost@example.com"), name="lost")
    with app.extensions[EXTENSION].stores.database.writing() as session:
        user_id = users.ids(session, [user], organization_id=None)[user]
        row = update(OAuthConnection).where(OAuthConnection.user_id == user_id)
        session.execute(row.values(provider="gone-away"))
    for page in ("/", "/users", f"/users/{user}", f"/explorer?user={user}"):
        assert signed_in.get(page).status == 200, page
    assert "gone-away" in signed_in.get(f"/users/{user}").text
