"""Fixtures: people who are invited."""

from __future__ import annotations

import pytest

from store.sql.queries import user_invitations, users
from tests import people


@pytest.fixture
def invited(stores, new_user, unique):
    """Invite a new user; returns the identifier and the path of the link."""

    def make(scope="write"):
        user = new_user()
        with stores.database.writing() as session:
            ids = users.ids(session, [user], organization_id=None)
            issuer = people.add_operator(session, name := unique("inviter"))
            (made,) = user_invitations.make(
                session, ids, scope=scope, created_by=f"operator {name}", issuer=issuer
            )
        return user, f"/invitation/{made.secret}"

    return make
