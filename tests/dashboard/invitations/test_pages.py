"""Making, listing and withdrawing invitations."""

from __future__ import annotations

import pytest

from store.sql.models import Organization, User, UserInvitation
from store.sql.queries import organizations, users
from tests.dashboard.audit_records import actions
from tests.dashboard.installations import Installation
from tests.dashboard.visiting import words


@pytest.fixture
def here(install) -> Installation:
    made = install(broker_url="memory://")
    with made.stores.database.writing() as session:
        session.add_all(User(custom_id=name) for name in ("ada", "bob", "eve"))
    return made


def ticket(here):
    return here.browser.get("/invitations/new").html.find("input", {"name": "ticket"})["value"]


def invite(here, named="", **form):
    return here.browser.post(
        "/invitations/new", {"users": named, "scope": "write", "ticket": ticket(here), **form}
    )


def links(page):
    found = page.html.find(id="link")
    if found is not None:
        return [words(found)]
    return [line.partition(",")[2] for line in page.html.find(id="links").get_text().split("\n")[1:] if line]


def rows(page):
    return {words(each.th): words(each.select_one(".badge")) for each in page.html.select("tbody tr")}


def test_one_user_gets_a_link_and_a_message_to_copy(here, caplog):
    page = invite(here, "ada")

    (link,) = links(page)
    assert link.startswith("http://localhost/invitation/")
    assert link in page.html.find(id="message").get_text()
    assert "valid for" in words(here.browser.get("/invitations").html)
    assert rows(here.browser.page) == {"ada": "pending"}
    assert ("inviteUser", "ada") in actions(here.stores, actor=Installation.ACTOR)
    secret = link.rpartition("/")[2]
    assert secret not in here.browser.page.text
    assert secret not in caplog.text
    with here.stores.database.reading() as session:
        (row,) = session.query(UserInvitation)
    assert secret not in str(vars(row))


def test_many_are_invited_at_once(here):
    page = invite(here, "ada\nbob, eve")

    assert len(set(links(page))) == 3
    assert "{link}" in page.html.find(id="message").get_text()
    assert rows(here.browser.get("/invitations")) == dict.fromkeys(("ada", "bob", "eve"), "pending")


def test_all_members_without_connection_are_invited(here):
    with here.stores.database.writing() as session:
        row = Organization(slug="acme")
        session.add(row)
        session.flush()
        ids = users.ids(session, ["ada", "bob"], organization_id=None)
        organizations.add_members(session, row.id, ids.values())

    invite(here, organization="acme")

    assert set(rows(here.browser.get("/invitations"))) == {"ada", "bob"}


def test_the_form_begins_with_the_users_of_a_filter(here):
    page = here.browser.get("/invitations/new", show="unconnected")

    assert page.html.find("textarea").get_text().split() == ["ada", "bob", "eve"]


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"users": "ada nobody.here"}, "Users include some that do not exist: nobody.here."),
        ({"organization": "none"}, "Organization with this slug does not exist."),
        ({}, "Nobody to invite: name users, or an organization with members who never connected."),
    ],
)
def test_invalid_form_is_400_and_creates_no_invitation(here, form, sentence):
    page = invite(here, **form)

    assert page.status == 400
    assert sentence in words(page.html)
    assert rows(here.browser.get("/invitations")) == {}


def test_a_form_that_is_sent_twice_makes_links_once(here):
    form = {"users": "ada", "scope": "write", "ticket": ticket(here)}
    assert here.browser.post("/invitations/new", form).status == 200

    assert here.browser.post("/invitations/new", form).status == 409


def test_a_new_link_replaces_the_one_before_and_can_be_withdrawn(here):
    first, second = links(invite(here, "ada"))[0], links(invite(here, "ada"))[0]
    client = here.app.test_client()

    assert client.get(first).status_code == 410
    assert client.get(second).status_code == 200
    page = here.browser.get("/invitations", show="opened")
    form = page.html.find("form", action=lambda each: each and each.endswith("/revoke"))
    assert here.browser.do(form["action"]).notices == ["The invitation of ada is withdrawn."]
    assert client.get(second).status_code == 410
    assert here.browser.do(form["action"]).notices == ["That invitation could not be used any more."]
    assert "withdrawn" in words(here.browser.get("/users/ada").html.find(id="invitation").parent)


def test_states_are_filters_and_pages_go_on(here):
    with here.stores.database.writing() as session:
        session.add_all(User(custom_id=f"user-{number:03}") for number in range(130))
    invite(here, "\n".join(f"user-{number:03}" for number in range(130)))

    first = here.browser.get("/invitations", show="pending")
    rest = here.browser.get(first.html.find("a", rel="next")["href"])

    assert len(rows(first)) == 100
    assert len(rows(first) | rows(rest)) == 130
    assert rows(here.browser.get("/invitations", show="connected")) == {}
    assert rows(here.browser.get("/invitations", q="USER-007")) == {"user-007": "pending"}


def test_without_a_public_address_no_link_is_made(install):
    made = install(public_url="https://calendar.example.com")
    with made.stores.database.writing() as session:
        session.add(User(custom_id="ada"))

    assert links(invite(made, "ada"))[0].startswith("https://calendar.example.com/invitation/")
