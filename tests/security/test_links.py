"""Links: consent links by every kind of key, and one-time links that make administrators."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask import Flask
from sqlalchemy import delete, select

from store.sql.models import Membership, User
from store.stores import Stores
from tests.conftest import Api
from tests.security import keys
from tests.security.keys import IN_FORCE
from tests.security.tenants import Settle, Tenant, consent, digest, leaks

pytestmark = pytest.mark.security

STALE = "state is unknown, expired or already used"
READ_ONLY = "This API key is read-only"
SHARED = "The user belongs to other organizations too"
EACH_KIND = pytest.mark.parametrize("kind", IN_FORCE)


@pytest.fixture
def caller(app: Flask, stores: Stores) -> Callable[..., Api]:
    """Make a client with a key of some kind, of a tenant when it is bound."""
    return lambda kind, tenant: Api(app.test_client(), keys.create(stores, kind, tenant.slug))


def requests_for_links(tenant: Tenant) -> list[tuple[str, str, dict[str, object]]]:
    """The three ways to get a consent link for the tenant's user."""
    path = f"/users/{tenant.user}/oauth"
    return [
        ("POST", f"{path}/google/authorize", {"json": {}}),
        ("GET", f"{path}/google/link", {}),
        ("GET", f"{path}/links", {}),
    ]


@EACH_KIND
def test_consent_link_requires_write_access_to_the_user(caller, api, new_tenant: Settle, stores, kind: str):
    rights, own, theirs = IN_FORCE[kind], new_tenant(), new_tenant()
    bearer = caller(rights, own)

    for tenant in (own, theirs):
        for method, path, more in requests_for_links(tenant):
            answer = bearer.call(method, path, **more)
            if rights.read_only:
                assert (answer.status_code, answer.json["error"]) == (403, READ_ONLY)
            elif rights.bound and tenant is theirs:
                assert (answer.status_code, answer.json["error"]) == (404, "User not found")
                assert list(leaks(answer, theirs.words, path)) == []
            else:
                assert answer.status_code == 200, answer.text

    # A key of one organization does not change a user of two.
    shared = api.post(f"/organizations/{theirs.slug}/members", {"userIds": [own.user]})
    assert shared.status_code == 201
    for method, path, more in requests_for_links(own):
        answer = bearer.call(method, path, **more)
        if rights.read_only or not rights.bound:
            assert answer.status_code == (403 if rights.read_only else 200)
        else:
            assert answer.status_code == 403
            assert answer.json["error"].startswith(SHARED)


@EACH_KIND
def test_finishing_a_consent_requires_current_write_access(
    caller, api, new_tenant: Settle, stores, kind: str
):
    """The link was valid when it was made; the moment of its use counts."""
    rights, own = IN_FORCE[kind], new_tenant()
    bearer = caller(rights, own)
    given = consent(api, own)
    leave(stores, own.user)
    before = digest(stores)

    answer = bearer.post("/users/oauth/google/verify", given)

    if rights.read_only:
        assert (answer.status_code, answer.json["error"]) == (403, READ_ONLY)
    elif rights.bound:
        assert (answer.status_code, answer.json["error"]) == (400, STALE)
    else:
        assert answer.status_code == 200
        return
    assert digest(stores) == before


def leave(stores: Stores, name: str) -> None:
    """End every membership of a user."""
    with stores.database.writing() as session:
        number = select(User.id).where(User.custom_id == name).scalar_subquery()
        session.execute(delete(Membership).where(Membership.user_id == number))


# --- invitations


@EACH_KIND
def test_no_key_invites_an_administrator_or_replaces_an_invitation(
    app, caller, new_tenant: Settle, stores, kind: str
):
    bearer = caller(IN_FORCE[kind], new_tenant())
    headers = {"Authorization": f"Bearer {bearer.key}"}
    client, before = app.test_client(), digest(stores)

    invite = client.post("/dashboard/account/administrators/invite", data={"ticket": "x"}, headers=headers)
    assert invite.status_code in (302, 303, 400, 401)
    assert "/dashboard/welcome/" not in invite.text
    form = {"name": "intruder", "password": "seven loud calendars", "again": "seven loud calendars"}
    for secret in (bearer.key, "x", "x" * 43):
        for answer in (
            client.get(f"/dashboard/welcome/{secret}", headers=headers),
            client.post(f"/dashboard/welcome/{secret}", data=form, headers=headers),
        ):
            assert answer.status_code in (400, 404)

    assert digest(stores) == before
