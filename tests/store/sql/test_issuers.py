"""Links are valid only while their maker may still make them, and a consent only for a user of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from store.security.one_time_secrets import PendingConsent
from store.sql.models import Administrator, ApiKey, Membership, Organization, Role, now
from store.sql.queries import administrators, api_keys, issuers, user_invitations
from store.sql.queries.issuers import Issuer
from store.sql.queries.user_invitations import ConsentRefusal
from tests import people

PAST, FUTURE = now() - timedelta(seconds=1), now() + timedelta(days=1)


@pytest.fixture
def key(fresh_database):
    """The internal id of a new API key."""

    def key(**fields) -> int:
        with fresh_database.writing() as session:
            whole = api_keys.create(session, prefix="alm_", name="shop")
            row = session.query(ApiKey).filter_by(visible=whole[:12]).one()
            for name, value in fields.items():
                setattr(row, name, value)
            return row.id

    return key


@pytest.fixture
def in_force(fresh_database):
    def in_force(issuer: Issuer) -> bool:
        with fresh_database.reading() as session:
            return issuers.in_force(session, issuer)

    return in_force


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, True),
        ({"expires_at": FUTURE}, True),
        ({"expires_at": PAST}, False),
        ({"revoked_at": PAST}, False),
        ({"read_only": True}, False),
    ],
    ids=["plain", "not yet expired", "expired", "revoked", "read-only"],
)
def test_a_key_makes_links_while_it_may_write(key, in_force, fields, expected):
    assert in_force(Issuer(key_id=key(**fields))) == expected


def test_an_unknown_maker_makes_no_links(key, in_force):
    assert not in_force(Issuer(key_id=key() + 1))
    assert not in_force(Issuer())


@pytest.mark.parametrize(("role", "expected"), [(Role.VIEWER, False), (Role.ADMINISTRATOR, True)])
def test_a_person_makes_links_while_the_role_allows_it(fresh_database, in_force, role, expected):
    with fresh_database.writing() as session:
        issuer = people.add_operator(session, "ada")
    assert in_force(issuer)

    with fresh_database.writing() as session:
        session.get_one(Administrator, issuer.administrator_id).role = role

    assert in_force(issuer) == expected


def test_links_of_a_person_end_with_the_security_stamp(fresh_database, in_force):
    with fresh_database.writing() as session:
        ada, bruno = (people.add_operator(session, name) for name in ("ada", "bruno"))

    with fresh_database.writing() as session:
        issuers.withdraw_links(session, ada.administrator_id)

    assert [in_force(each) for each in (ada, bruno)] == [False, True]
    # Those of one person are not those of another.
    assert not in_force(replace(bruno, security_stamp=ada.security_stamp))


@pytest.mark.parametrize(("role", "left"), [(Role.ADMINISTRATOR, False), (Role.OPERATOR, True)])
def test_invitations_by_the_command_line_end_with_an_administrator(fresh_database, role, left):
    """An administrator may have been sent one. They name no maker."""
    with fresh_database.writing() as session:
        ada = administrators.create(session, name="ada", password_hash="nobody's", role=role)
        secret = administrators.invite(session)
        issuers.withdraw_links(session, ada.id)

    with fresh_database.reading() as session:
        assert bool(administrators.invited(session, secret)) == left


@pytest.fixture
def consent(fresh_database, key):
    """A consent of a user of acme, whose link a key of acme has made."""
    with fresh_database.writing() as session:
        user, acme = people.add_user(session, "ada"), Organization(slug="acme")
        session.add(acme)
        session.flush()
        session.add(Membership(organization_id=acme.id, user_id=user.id))
        numbers = user.id, acme.id
    return PendingConsent(
        user_id=numbers[0],
        provider="google",
        scopes=(),
        offline=True,
        redirect_uri="https://almanac.example.com/v1/oauth/google/callback",
        ours=True,
        return_url=None,
        asked_by="alm_12345678",
        within=numbers[1],
        verifier="verifier",
        key_id=key(),
    )


@pytest.fixture
def check(fresh_database):
    def check(consent):
        with fresh_database.writing() as session:
            found = user_invitations.check_consent(session, consent)
            return found if isinstance(found, ConsentRefusal) else found.custom_id

    return check


def test_a_consent_ends_with_its_key_and_its_user(consent, check):
    assert check(consent) == "ada"
    assert check(replace(consent, key_id=consent.key_id + 1)) is ConsentRefusal.KEY_GONE
    assert check(replace(consent, key_id=None)) is ConsentRefusal.PERSON_GONE
    assert check(replace(consent, user_id=consent.user_id + 1)) is ConsentRefusal.USER_GONE
    assert check(replace(consent, within=consent.within + 1)) is ConsentRefusal.USER_GONE
    assert check(replace(consent, invitation_id="used")) is ConsentRefusal.INVITATION_GONE


def test_a_bound_key_connects_no_user_whom_another_organization_shares(fresh_database, consent, check):
    with fresh_database.writing() as session:
        rival = Organization(slug="rival")
        session.add(rival)
        session.flush()
        session.add(Membership(organization_id=rival.id, user_id=consent.user_id))

    assert check(consent) is ConsentRefusal.USER_SHARED
    # A key of all organizations may.
    assert check(replace(consent, within=None)) == "ada"
