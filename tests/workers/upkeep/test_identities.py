"""Identities are checked: a person who is gone loses sessions; an outage of the provider ends nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import update

from store.sql.models import Administrator, Identity, Role, now
from store.sql.queries import administrators, audit, dashboard_sessions, identities
from tests.openid_issuer import CLIENT_ID, SECRET, issuing
from workers.upkeep.identities import check

GONE = (400, b'{"error": "invalid_grant"}')


@pytest.fixture
def issuer():
    with issuing() as issuer:
        issuer.changes = {"nonce": None}
        yield issuer


@pytest.fixture
def people(runtime, issuer):
    """The runtime with this issuer."""
    runtime.settings = replace(
        runtime.settings,
        oidc_issuer=issuer.url,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=SECRET,
        oidc_roles=(("admins", "administrator"), ("staff", "viewer")),
    )
    return runtime


@pytest.fixture
def ada(people, issuer, unique):
    """A person who is due to be checked, with the secret of a session."""
    stores = people.stores
    with stores.database.writing() as session:
        person = identities.create(
            session,
            issuer=issuer.url,
            subject="ada",
            name=unique("ada"),
            role=Role.ADMINISTRATOR,
            until=now(),
        )
        until = now() + timedelta(hours=1)
        identities.confirm(session, stores.keyring, person.id, refresh_token="old", until=until)
        due = update(Identity).where(Identity.administrator_id == person.id)
        session.execute(due.values(checked_at=now() - timedelta(hours=1)))
        return person, dashboard_sessions.begin(session, person.id, address="", agent="")


def state(runtime, ada):
    """Role, whether the session lives, and the refresh token."""
    person, secret = ada
    with runtime.stores.database.reading() as session:
        row = session.get(Identity, person.id)
        signed_in = dashboard_sessions.load(session, secret)
        token = row.sealed_refresh_token and identities.refresh_token(row, runtime.stores.keyring)
        lives = signed_in is not None and not signed_in.ended
        return session.get(Administrator, person.id).role, lives, token


def run(runtime):
    return check(runtime, deadline=time.monotonic() + 60)


def test_a_person_who_is_there_is_confirmed_with_the_next_token(people, ada):
    before = now()

    assert run(people) == 1
    assert state(people, ada) == ("administrator", True, "planted-refresh-token")
    with people.stores.database.reading() as session:
        row = session.get(Identity, ada[0].id)
    assert row.checked_at >= before
    assert row.confirmed_until > before + timedelta(hours=7)
    # Not due again.
    assert run(people) == 0


def test_a_token_that_is_not_replaced_stays(people, ada, issuer):
    issuer.refresh_token = None

    assert run(people) == 1
    assert state(people, ada)[2] == "old"


def test_a_person_who_is_gone_loses_everything_and_is_not_asked_for_again(people, ada, issuer):
    issuer.faults["/token"] = GONE
    stamp = ada[0].security_stamp

    assert run(people) == 0
    assert state(people, ada) == ("administrator", False, None)
    asked = len(issuer.requests)
    assert run(people) == 0
    assert len(issuer.requests) == asked
    with people.stores.database.reading() as session:
        assert administrators.load(session, ada[0].id).security_stamp != stamp
        (last,) = audit.page(session, limit=1)
    assert (last.actor, last.action, last.subject) == ("identity provider", "endIdentity", ada[0].name)


def test_a_person_without_a_role_loses_everything(people, ada, issuer):
    issuer.changes |= {"groups": ["other"]}

    assert run(people) == 0
    assert state(people, ada)[1:] == (False, None)


def test_a_lower_role_applies(people, ada, issuer):
    issuer.changes |= {"groups": ["staff"]}

    assert run(people) == 1
    assert state(people, ada)[:2] == ("viewer", True)


@pytest.mark.parametrize(
    "fault", [(500, b""), (401, b'{"error": "invalid_client"}'), (429, b'{"error": "slow_down"}')]
)
def test_an_outage_or_a_wrong_secret_ends_nothing_at_once(people, ada, issuer, fault):
    issuer.faults["/token"] = fault

    assert run(people) == 0
    assert state(people, ada) == ("administrator", True, "old")


def test_an_answer_that_is_not_valid_confirms_nobody(people, ada, issuer):
    issuer.changes |= {"aud": "other"}

    assert run(people) == 0
    with people.stores.database.reading() as session:
        assert session.get(Identity, ada[0].id).confirmed_until < now() + timedelta(hours=1)


def test_a_sign_in_meanwhile_is_not_ended_by_the_older_token(people, ada, issuer, monkeypatch):
    stores, answered = people.stores, issuer.answer

    def answer(path):
        if path == "/token":
            with stores.database.writing() as session:
                until = now() + timedelta(hours=1)
                identities.confirm(session, stores.keyring, ada[0].id, refresh_token="new", until=until)
            return GONE
        return answered(path)

    monkeypatch.setattr(issuer, "answer", answer)

    assert run(people) == 0
    assert state(people, ada) == ("administrator", True, "new")


def test_without_an_issuer_nothing_is_checked(runtime):
    assert run(runtime) == 0
