"""Actions on many rows: members added, removed and restored, users deleted, lists exported."""

from __future__ import annotations

import csv
from io import StringIO

import pytest
from werkzeug.datastructures import MultiDict

from store.sql.queries import organization_grants, organizations
from store.sql.queries.organization_grants import NewGrant
from tests.conftest import connect
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words


@pytest.fixture
def imported(signed_in, stores, new_organization, unique):
    """An organization with a grant, its number, and a member whom the grant reads."""
    slug, user = new_organization(), unique("ada")
    scope = ["https://www.googleapis.com/auth/calendar.readonly"]
    grant = NewGrant("google", "admin@acme.example", "robot@acme.example", None, None, "{}", scope)
    with stores.database.writing() as session:
        number = organizations.ids(session, [slug], organization_id=None)[slug]
        organization_grants.save(session, stores.keyring, number, grant)
    path = f"/organizations/{slug}/grants/google/members/import"
    signed_in.do(path, {"members": f"{user},{user}@acme.example"})
    return slug, number, user


@pytest.fixture
def acme(new_organization, new_user):
    """An organization with three members, and their identifiers."""
    slug = new_organization()
    return slug, sorted(new_user(slugs=(slug,)) for _ in range(3))


def members(page):
    return [words(each.th) for each in page.html.select("section[aria-labelledby=members] tbody tr")]


def several(browser, path, user_ids, **more):
    """Send a form in which several rows are selected."""
    if browser.page is None or browser.page.token is None:
        browser.get("/account")
    form = MultiDict(
        [("csrf_token", browser.page.token), *(("userId", each) for each in user_ids), *more.items()]
    )
    page = browser.open("POST", path, data=form)
    while page.status in (302, 303):
        page = browser.get(page.location)
    return page


def undo(browser, page):
    form = page.html.select_one("form.undo")
    return browser.do(form["action"], {"token": form.find("input", {"name": "token"})["value"]})


def test_selected_members_are_removed_and_restored(signed_in, stores, acme):
    slug, users = acme

    page = several(signed_in, f"/organizations/{slug}/members/remove", users[:2])

    assert page.notices == ["2 users are no longer members."]
    assert members(page) == users[2:]
    assert records(stores, slug)[0] == ("administrator ada", "removeMembers", f"2 from {slug}")
    token = page.html.select_one("form.undo input[name=token]")["value"]
    page = undo(signed_in, page)
    assert page.notices == ["Undone: 2 are members again."]
    assert members(page) == users
    assert records(stores, slug)[0] == ("administrator ada", "addMembers", f"2 to {slug}")
    # Once.
    again = signed_in.do(f"/organizations/{slug}/members/undo", {"token": token})
    assert again.notices[0].startswith("This can be undone once")


@pytest.mark.parametrize("token", ["", "x", "x" * 5000])
def test_an_unknown_token_undoes_nothing(signed_in, acme, token):
    slug, users = acme
    page = signed_in.do(f"/organizations/{slug}/members/undo", {"token": token})
    assert page.notices[0].startswith("This can be undone once")
    assert members(page) == users


def test_a_removal_is_undone_in_its_own_organization_only(signed_in, acme, new_organization):
    slug, users = acme
    page = several(signed_in, f"/organizations/{slug}/members/remove", users[:1])
    token = page.html.select_one("form.undo input[name=token]")["value"]
    other = new_organization()
    page = signed_in.do(f"/organizations/{other}/members/undo", {"token": token})
    assert members(page) == []


def test_undoing_restores_the_delegated_connections(signed_in, stores, imported):
    slug, number, user = imported

    def delegated():
        with stores.database.reading() as session:
            return organization_grants.delegated_members(session, number, [user])

    before = delegated()
    assert before == [("google", user, f"{user}@acme.example")]
    page = several(signed_in, f"/organizations/{slug}/members/remove", [user])
    assert delegated() == []
    assert undo(signed_in, page).notices == ["Undone: 1 is a member again."]
    assert delegated() == before
    page = several(signed_in, f"/organizations/{slug}/members/remove", [user])
    with stores.database.writing() as session:
        organization_grants.remove(session, number, "google")
    page = undo(signed_in, page)
    assert members(page) == [user]
    assert "has changed, so import them again" in page.notices[0]


def test_undoing_keeps_an_account_that_was_connected_meanwhile(signed_in, api, sandbox, imported):
    slug, _, user = imported
    page = several(signed_in, f"/organizations/{slug}/members/remove", [user])
    connect(api, user, sandbox.account("google", f"{user}@acme.example"))

    undo(signed_in, page)

    kept = api.get(f"/users/{user}/connections").json["data"]
    assert [(each["type"], each["default"]) for each in kept] == [("oauth2", True), ("delegated", False)]


def test_nothing_selected(signed_in, acme):
    slug, users = acme
    page = several(signed_in, f"/organizations/{slug}/members/remove", [])
    assert page.notices == ["Select at least one member first."]
    assert members(page) == users
    assert several(signed_in, "/delete-users", []).notices == ["Select at least one user first."]
    assert several(signed_in, "/delete-users", ["<b>", "nobody-at-all"]).notices == [
        "Select at least one user first."
    ]


def test_unknown_users_are_registered_when_they_become_members(signed_in, api, stores, acme, unique):
    slug, users = acme
    new = unique("new")
    sent = {"userIds": f"{new}\n{users[0]}", "register": "missing"}
    page = signed_in.do(f"/organizations/{slug}/members", sent)
    assert page.notices == ["1 added; 1 had been members before. 1 of them is new: connect a calendar next."]
    assert members(page) == sorted([*users, new])
    assert ("administrator ada", "createUsers", f"1 for {slug}") in records(stores, slug)
    assert api.get(f"/users/{new}").status_code == 200


def test_selected_users_are_deleted_after_a_typed_confirmation(signed_in, api, stores, acme):
    _, users = acme
    page = several(signed_in, "/delete-users", users[:2])
    assert (page.status, page.heading) == (200, "Delete 2 users?")
    assert [words(each) for each in page.html.select(".rows li")] == users[:2]

    wrong = several(signed_in, "/delete-users", users[:2], confirm="delete")
    assert (wrong.status, wrong.error_of("confirm")) == (400, "This text is different. Nothing was deleted.")
    assert api.get(f"/users/{users[0]}").status_code == 200

    page = several(signed_in, "/delete-users", users[:2], confirm="delete 2 users")
    assert page.notices == ["2 users are deleted, with all tokens and cached calendar data."]
    for each in users[:2]:
        assert api.get(f"/users/{each}").status_code == 404
        assert records(stores, each)[0] == ("administrator ada", "deleteUser", each)
    assert signed_in.get("/delete-users").location == "/dashboard/users"


def table(page):
    assert (page.status, page.answer.mimetype) == (200, "text/csv")
    return list(csv.DictReader(StringIO(page.text)))


def test_lists_are_exported_whole(signed_in, sandbox, acme, new_user, unique):
    slug, users = acme
    mark = unique("exported")
    one = new_user(sandbox.account("google", f"={mark}@example.com"), name=f"{mark}-a", slugs=(slug,))
    two = new_user(name=f"{mark}-b")

    page = signed_in.get("/users.csv", q=mark)
    assert page.headers["Content-Disposition"] == 'attachment; filename="users.csv"'
    assert page.headers["Cache-Control"] == "no-store"
    first, second = table(page)
    assert (first["userId"], first["connections"], first["organizations"]) == (one, "google:connected", slug)
    # No formula for spreadsheets.
    assert first["email"] == f"'={mark}@example.com"
    assert (second["userId"], second["email"]) == (two, "")
    assert [each["userId"] for each in table(signed_in.get("/users.csv", q=mark, show="connected"))] == [one]

    found = table(signed_in.get(f"/organizations/{slug}/members.csv"))
    assert [each["userId"] for each in found] == sorted([*users, one])
    assert signed_in.get("/organizations/nowhere-at-all/members.csv").status == 404
