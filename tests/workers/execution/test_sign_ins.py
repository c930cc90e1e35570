"""People who sign in by the identity provider: who they are here, and with which role."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from store.security.one_time_secrets import PendingSignIn
from store.sql.models import Administrator, Role
from store.sql.queries import administrators, dashboard_sessions, identities
from tests.openid_issuer import CLIENT_ID, SECRET, issuing
from workers.execution.sign_ins import find_page, sign_in
from workers.jobs import FindSignInPage, SignIn

ROLES = (("admins", "administrator"), ("ops", "operator"), ("staff", "viewer"))


@pytest.fixture
def issuer():
    with issuing() as issuer:
        yield issuer


@pytest.fixture
def directory(runtime, issuer, unique):
    """The runtime with this issuer, whose person no other test knows."""
    issuer.changes = {"sub": unique("subject"), "preferred_username": unique("ada")}
    issuer.userinfo = {"sub": issuer.changes["sub"]}
    runtime.settings = replace(
        runtime.settings,
        oidc_issuer=issuer.url,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=SECRET,
        oidc_roles=ROLES,
    )
    return runtime


def come(runtime):
    """The result of a sign-in."""
    pending = PendingSignIn("nonce", "verifier", "https://almanac.example/x", "/dashboard", code="code")
    job = SignIn(runtime.stores.sign_ins.put(pending))
    return sign_in(runtime, job, time.monotonic() + 10).sign_in


def test_a_worker_without_the_settings_says_so(runtime):
    assert find_page(runtime, FindSignInPage(), time.monotonic() + 10).sign_in.refused == "notSet"


def stored(runtime, administrator_id) -> Administrator:
    with runtime.stores.database.reading() as session:
        return session.get_one(Administrator, administrator_id)


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["staff"], Role.VIEWER),
        ("ops", Role.OPERATOR),
        (["staff", "admins", "ops"], Role.ADMINISTRATOR),
        # Nothing that only contains the name of a group, or has another type.
        ("admins staff", None),
        ("xadmins", None),
        ("ADMINS", None),
        (["admins,staff"], None),
        ([["admins"]], None),
        ({"admins": True}, None),
        ([{"name": "admins"}], None),
        (True, None),
        ([], None),
        (None, None),
        ("", None),
    ],
)
def test_only_a_value_of_the_claim_gives_a_role(directory, issuer, groups, role):
    issuer.changes["groups"] = groups

    result = come(directory)

    if role is None:
        assert (result.refused, result.administrator_id) == ("role", None)
    else:
        assert stored(directory, result.administrator_id).role == role


def test_nobody_becomes_another_person_by_the_name(directory, issuer, unique):
    name = unique("root")
    with directory.stores.database.writing() as session:
        owner = administrators.create(session, name=name, password_hash="x", role=Role.ADMINISTRATOR)
    issuer.changes["preferred_username"] = name
    issuer.changes["groups"] = ["staff"]

    result = come(directory)

    assert result.administrator_id not in (None, owner.id)
    person = stored(directory, result.administrator_id)
    assert (person.name, person.role, person.password_hash) == (f"{name} (2)", Role.VIEWER, "")
    untouched = stored(directory, owner.id)
    assert (untouched.role, untouched.security_stamp) == (Role.ADMINISTRATOR, owner.security_stamp)
    with directory.stores.database.reading() as session:
        assert identities.load(session, owner.id) is None


def test_the_same_account_of_another_issuer_is_another_person(directory, issuer):
    first = come(directory).administrator_id
    with issuing() as other:
        other.changes, other.userinfo = issuer.changes, issuer.userinfo
        directory.settings = replace(directory.settings, oidc_issuer=other.url)
        del directory.identity_provider

        assert come(directory).administrator_id not in (None, first)


@pytest.mark.parametrize("groups", [None, [], ["others"]])
def test_a_sign_in_without_a_role_ends_what_the_person_had(directory, issuer, groups):
    person = come(directory).administrator_id
    with directory.stores.database.writing() as session:
        secret = dashboard_sessions.begin(session, person, address="", agent="")
    issuer.changes["groups"] = groups

    assert come(directory).refused == "role"

    with directory.stores.database.reading() as session:
        assert dashboard_sessions.load(session, secret) is None
        assert identities.load(session, person).sealed_refresh_token is None


def test_a_sign_in_is_used_once(directory):
    pending = PendingSignIn("nonce", "verifier", "https://almanac.example/x", "/dashboard", code="code")
    job = SignIn(directory.stores.sign_ins.put(pending))

    first, second = (sign_in(directory, job, time.monotonic() + 10).sign_in for _ in range(2))

    assert first.administrator_id is not None
    assert second.refused == "code"


def test_nothing_secret_is_logged(directory, issuer, caplog):
    caplog.set_level("DEBUG")
    planted = b'{"error": "invalid_grant", "error_description": "code planted-code of planted-person"}'
    issuer.faults["/token"] = 400, planted
    assert come(directory).refused == "code"
    issuer.faults["/token"] = 401, planted.replace(b"invalid_grant", b"invalid_client")
    assert come(directory).refused == "client"
    issuer.faults.clear()
    assert come(directory).administrator_id is not None

    assert "planted" not in caplog.text
    assert SECRET not in caplog.text
