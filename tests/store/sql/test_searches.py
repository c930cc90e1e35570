"""Searches of users and organizations by a part of a name."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from store.sql.keyset import Position
from store.sql.models import Membership, Organization, User
from store.sql.queries import connections, organizations, users
from tests.people import add_connection
from tests.store.statements import statements


@pytest.fixture
def database(fresh_database, keyring):
    """Two organizations; of Ada's two connections one has ended, Bob has one that lives, Eve has none."""
    with fresh_database.writing() as session:
        acme, zoo = Organization(slug="acme", name="Acme GmbH"), Organization(slug="zoo_100%")
        people = {name: User(custom_id=name) for name in ("Ada", "bob", "eve_1", "eve-1", "100%")}
        session.add_all([acme, zoo, *people.values()])
        session.flush()
        for name, organization in (("Ada", acme), ("bob", acme), ("Ada", zoo)):
            session.add(Membership(organization_id=organization.id, user_id=people[name].id))
        for name, provider, email in (
            ("Ada", "google", "Lovelace@Example.com"),
            ("Ada", "microsoft", "ada@work.example"),
            ("bob", "google", None),
        ):
            row = add_connection(session, keyring, people[name], provider=provider, email=email)
            if provider == "microsoft":
                connections.mark_dead(session, row.id, "Microsoft says so")
    return fresh_database


@pytest.fixture
def found(database):
    """The identifiers of the users that are found."""

    def search(text="", **more):
        with database.reading() as session:
            return [row.custom_id for row in users.search(session, text, **more).rows]

    return search


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ada", {"Ada"}),
        ("DA", {"Ada"}),
        ("lovelace@", {"Ada"}),
        ("WORK.EXAMPLE", {"Ada"}),
        ("e", {"Ada", "eve_1", "eve-1"}),
        ("e_", {"eve_1"}),
        ("%", {"100%"}),
        ("/", set()),
        ("nobody", set()),
        ("", {"Ada", "bob", "eve_1", "eve-1", "100%"}),
    ],
)
def test_users_are_found_by_identifier_or_address(database, found, text, expected):
    assert set(found(text)) == expected
    assert len(found(text)) == len(expected)
    with database.reading() as session:
        assert users.count(session, text) == len(expected)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(text=st.text(st.sampled_from("aAbeEv_-1%0/\\@.wo"), max_size=3))
def test_a_search_finds_what_a_reader_would(found, text):
    known = {
        "Ada": ["Lovelace@Example.com", "ada@work.example"],
        "bob": [],
        "eve_1": [],
        "eve-1": [],
        "100%": [],
    }
    wanted = {
        name
        for name, addresses in known.items()
        if any(text.lower() in each.lower() for each in (name, *addresses))
    }

    assert set(found(text)) == wanted


def test_pages_of_users_follow_each_other(found):
    everybody = found()
    pages, after = [], None
    while page := found(position=after, limit=2):
        pages += page
        after = Position(page[-1])

    assert pages == everybody


def test_members_of_an_organization_are_searched_alone(database, found):
    with database.reading() as session:
        acme = organizations.ids(session, ["acme"], organization_id=None)["acme"]
        assert users.count(session, organization_id=acme) == 2
        assert users.count(session, "b", organization_id=acme) == 1

    assert sorted(found(organization_id=acme)) == ["Ada", "bob"]
    assert found("lovelace", organization_id=acme) == ["Ada"]
    assert found("eve", organization_id=acme) == []


@pytest.mark.parametrize("text", ["ada", ""])
def test_user_search_takes_four_statements_for_any_result(database, text):
    with statements(database) as (session, sent):
        rows = users.search(session, text).rows
        shown = {
            row.custom_id: (
                [(each.provider, each.alive) for each in row.connections],
                [each.slug for each in row.organizations],
            )
            for row in rows
        }

    assert shown["Ada"] == ([("google", True), ("microsoft", False)], ["acme", "zoo_100%"])
    assert len(sent) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ACM", ["acme"]),
        ("gmbh", ["acme"]),
        ("_", ["zoo_100%"]),
        ("0%", ["zoo_100%"]),
        ("o", ["zoo_100%"]),
        ("", ["acme", "zoo_100%"]),
        ("nowhere", []),
    ],
)
def test_organizations_are_found_by_slug_or_name(database, text, expected):
    with database.reading() as session:
        assert [each.slug for each in organizations.search(session, text).rows] == expected
        assert organizations.count(session, text) == len(expected)


def test_organizations_come_with_numbers_in_two_statements(database):
    with database.writing() as session:
        session.add(Organization(slug="empty", name=None))
    with statements(database) as (session, sent):
        found = organizations.search(session).rows

    assert [(each.slug, each.name, each.members, each.dead) for each in found] == [
        ("acme", "Acme GmbH", 2, 1),
        ("empty", None, 0, 0),
        ("zoo_100%", None, 1, 1),
    ]
    assert len(sent) == 2


def test_pages_of_organizations_follow_each_other(database):
    with database.reading() as session:
        (first,) = organizations.search(session, limit=1).rows
        (second,) = organizations.search(session, position=Position(first.slug), limit=1).rows
        assert (first.slug, second.slug) == ("acme", "zoo_100%")
        assert organizations.search(session, position=Position(second.slug)).rows == []


def test_one_organization_is_shown_as_in_the_list(database):
    with database.reading() as session:
        assert organizations.summary(session, "acme") == organizations.search(session, "acme").rows[0]
        assert organizations.summary(session, "nowhere") is None
