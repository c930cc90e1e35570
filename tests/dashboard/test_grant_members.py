"""The import of members by a grant: lists of several shapes, the preview, the import, and delegated users."""

from __future__ import annotations

from io import BytesIO

import pytest
from sqlalchemy import func, select

from app.dashboard.grants.importing import MAX_LISTED, parse, written
from store.sql.models import OAuthConnection, User
from store.sql.queries import organization_grants, organizations
from store.sql.queries.organization_grants import NewGrant
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words
from tests.people import grant_of

SCOPES = ["https://www.googleapis.com/auth/calendar"]


@pytest.fixture
def granted(stores, new_organization) -> str:
    """An organization with a grant of Google for acme.example."""
    slug = new_organization()
    grant = NewGrant("google", "admin@acme.example", "robot@acme.example", None, None, "{}", SCOPES)
    with stores.database.writing() as session:
        number = organizations.ids(session, [slug], organization_id=None)[slug]
        organization_grants.save(session, stores.keyring, number, grant)
    return slug


def path(slug):
    return f"/organizations/{slug}/grants/google/members"


def members(*users, domain="acme.example"):
    return "\n".join(f"{each},{each}@{domain}" for each in users)


def groups(page):
    """The users of each group of a preview."""
    return {
        name: [words(each) for each in page.html.select(f"section[aria-labelledby={name}] tbody th")]
        for name in ("created", "changed", "unchanged")
    }


def confirm(browser, page):
    """Press the button of a preview."""
    form = page.html.find("form", action=f"{page.answer.request.path}/import")
    return browser.do(form["action"], {"members": form.find("input", {"name": "members"})["value"]})


def count(stores):
    with stores.database.reading() as session:
        return [session.scalar(select(func.count()).select_from(each)) for each in (User, OAuthConnection)]


# --- lists

TWO = [("ada-x", "ada@acme.example"), ("bob-x", "bob@acme.example")]


@pytest.mark.parametrize(
    "text",
    [
        "ada-x,ada@acme.example\nbob-x,bob@acme.example",
        "userId,email\r\nada-x,ada@acme.example\r\nbob-x,bob@acme.example\r\n",
        "\ufeffuserId;email\nada-x;ada@acme.example\nbob-x;bob@acme.example",
        "ada-x\tada@acme.example\n\n \nbob-x\tbob@acme.example\n",
        '"ada-x","ada@acme.example"\n"bob-x" , "bob@acme.example"',
        'E-mail,Name,User ID\nada@acme.example,"Ada, Countess",ada-x\nbob@acme.example,Bob,bob-x',
        " ada-x , ada@acme.example \n;;\nbob-x,bob@acme.example",
    ],
)
def test_a_list_is_read_in_each_shape(text):
    found = parse(text, "acme.example")

    assert (found.members, found.wrong, found.error) == (TWO, [], None)


def test_wrong_lines_are_named_by_their_number():
    text = "\n".join(
        [
            "userId,email",
            "ada-x,ada@acme.example",
            "",
            "ada-x,other@acme.example",
            "bob-x,ADA@acme.example",
            "x,x@acme.example",
            "carl-x,carl",
            "dora-x,dora@other.example",
            "alone",
            "y" * 200_000,
        ]
    )

    found = parse(text, "acme.example")

    assert found.members == TWO[:1]
    wrong = {each.number: each.error for each in found.wrong}
    assert wrong[4] == "the identifier “ada-x” is in line 2 too"
    assert wrong[5] == "the e-mail “ADA@acme.example” is in line 2 too"
    assert wrong[6].startswith("the identifier “x” must have 3 to 128 letters")
    assert wrong[7].startswith("the e-mail “carl” must be an e-mail address")
    assert wrong[8] == "the e-mail “dora@other.example” must be in acme.example, the domain of the grant"
    assert wrong[9].startswith("“alone” needs an identifier and an e-mail address")
    assert len(wrong[10]) < 200
    assert set(wrong) == {4, 5, 6, 7, 8, 9, 10}


def test_a_tenant_has_addresses_of_any_domain():
    assert parse("ada-x,ada@other.example", None).wrong == []


def test_members_are_written_as_they_are_read():
    odd = [
        "ada@acme.example",
        "שלום@acme.example",
        '"<i>"@acme.example',
        "a;b,c@acme.example",
        "'x@acme.example",
    ]
    members = [(f"user-{number}", email) for number, email in enumerate(odd)]

    assert parse(written(members), "acme.example").members == members


# --- preview and import


def test_a_list_is_previewed_and_imported(signed_in, api, stores, granted, sandbox, new_user, unique):
    new, there = unique("new"), new_user()
    personal = new_user(sandbox.account("google", "own@acme.example"), slugs=(granted,))
    same = unique("same")
    signed_in.do(f"{path(granted)}/import", {"members": members(same)})
    text = members(new, there, personal, same)
    before = count(stores)

    page = signed_in.post(path(granted), {"members": text})

    assert page.status == 200
    assert page.heading == "Check the import"
    assert groups(page) == {
        "created": [new, there],
        "changed": [f"{personal} own consent"],
        "unchanged": [same],
    }
    assert "1 of them had given a consent of their own" in words(
        page.html.select_one("section[aria-labelledby=changed]")
    )
    assert count(stores) == before

    page = confirm(signed_in, page)

    assert page.heading == granted
    assert page.notices == ["Imported: 2 created, 1 changed, 1 unchanged."]
    for user in (new, there, personal, same):
        connection = api.get(f"/users/{user}/oauth/google").json["data"]
        assert (connection["type"], connection["email"]) == ("delegated", f"{user}@acme.example")
    assert records(stores, f"{granted}/google")[0] == (
        "administrator ada",
        "importMembers",
        f"{granted}/google: 2 created, 1 changed",
    )
    again = signed_in.post(path(granted), {"members": text})
    assert groups(again) == {"created": [], "changed": [], "unchanged": [new, there, personal, same]}


def test_preview_matches_the_import_of_the_api(signed_in, api, granted, new_user, new_organization, unique):
    """Users of each kind: without anything, elsewhere, a former member, another address."""
    fresh, elsewhere, moved = unique("fresh"), new_user(slugs=(new_organization(),)), unique("moved")
    signed_in.do(f"{path(granted)}/import", {"members": f"{moved},old@acme.example"})
    users = (fresh, elsewhere, moved)

    preview = groups(signed_in.post(path(granted), {"members": members(*users)}))

    body = {"members": [{"userId": each, "email": f"{each}@acme.example"} for each in users]}
    answer = api.post(f"/organizations/{granted}/grants/google/members", body)
    assert preview == answer.json["data"]


def test_a_file_is_read_instead_of_the_text(signed_in, granted, unique):
    user = unique("ada")
    content = f"\ufeffuserId;email\r\n{user};{user}@acme.example\r\n".encode()

    page = signed_in.post(path(granted), {"members": "", "file": (BytesIO(content), "members.csv")})

    assert groups(page)["created"] == [user]
    assert confirm(signed_in, page).notices == ["Imported: 1 created, 0 changed, 0 unchanged."]


def test_a_list_with_wrong_lines_is_shown_again_and_stores_nothing(signed_in, stores, granted, unique):
    user, before = unique("ada"), count(stores)
    text = f"userId,email\n{user},{user}@acme.example\n<b>,x@acme.example\n{user},y@acme.example"

    for where in (path(granted), f"{path(granted)}/import"):
        page = signed_in.post(where, {"members": text})

        assert page.status == 400
        assert page.notices == ["Nothing was stored: 2 lines are wrong. Correct the list and check it again."]
        wrong = [words(each) for each in page.html.select("ul[aria-labelledby=wrong] li")]
        assert [each.partition(":")[0].strip() for each in wrong] == ["Line 3", "Line 4"]
        assert "“<b>”" in wrong[0]
        assert page.html.find(id="f-members").get_text().strip() == text
    assert count(stores) == before


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "The list has no members"),
        ("userId,email\n", "The list has no members"),
        (members(*(f"user-{n}" for n in range(1001))), "The list has 1001 members: import at most 1000"),
    ],
    ids=["empty", "header", "too-long"],
)
def test_invalid_member_list_is_400_with_a_reason(signed_in, granted, text, error):
    page = signed_in.post(path(granted), {"members": text})

    assert page.status == 400
    assert page.error_of("members").startswith(error)


def test_file_in_another_encoding_is_refused_with_advice(signed_in, granted):
    upload = (BytesIO("ada,zoë@acme.example".encode("latin-1")), "members.csv")

    page = signed_in.post(path(granted), {"file": upload})

    assert "save the file as CSV UTF-8" in page.error_of("members")


def test_a_thousand_members_are_imported_at_once(signed_in, granted, unique):
    prefix = unique("many")
    text = members(*(f"{prefix}-{n}" for n in range(1000)))

    page = signed_in.post(path(granted), {"members": text})

    assert len(groups(page)["created"]) == MAX_LISTED
    assert "And 900 more." in page.text
    page = confirm(signed_in, page)
    assert page.notices == ["Imported: 1000 created, 0 changed, 0 unchanged."]
    assert "1 000 delegated connections" in words(page.html.select_one("section[aria-labelledby=grants]"))


def test_without_a_grant_there_is_nothing_to_import_by(signed_in, new_organization):
    slug = new_organization()
    for answer in (
        signed_in.get(path(slug)),
        signed_in.post(path(slug), {"members": "ada-x,ada@acme.example"}),
        signed_in.post(f"{path(slug)}/import", {"members": "ada-x,ada@acme.example"}),
    ):
        assert answer.status == 404
        assert answer.heading == f"There is no grant of Google for {slug}"


# --- users


def connections_of(page):
    return page.html.select_one("section[aria-labelledby=connections] .connection")


def test_user_page_shows_access_by_the_grant(signed_in, stores, api, granted, unique):
    user = unique("ada")
    signed_in.do(f"{path(granted)}/import", {"members": members(user)})

    section = connections_of(signed_in.get(f"/users/{user}"))

    text = words(section)
    assert f"Access by the organization's grant: {granted}" in text
    assert section.find("a", href=f"/dashboard/organizations/{granted}#grants")
    assert f"{user}@acme.example" in text
    for absent in ("Reconnect", "Access token"):
        assert absent not in text
    assert not section.select("[formaction]")
    (form,) = section.select("form[data-confirm]")
    assert "not read by the organization's grant any more" in form["data-confirm"]

    page = signed_in.do(form["action"])

    assert page.notices == ["Google is disconnected: its cached data is deleted."]
    assert api.get(f"/users/{user}/oauth").json["data"] == []
    assert "Connect Google" in words(connections_of(page))


def test_an_ended_grant_is_named_on_the_pages_of_its_members(signed_in, stores, granted, unique):
    user = unique("ada")
    signed_in.do(f"{path(granted)}/import", {"members": members(user)})
    with stores.database.writing() as session:
        number = organizations.ids(session, [granted], organization_id=None)[granted]
        (grant,) = organization_grants.of_organization(session, number)
        organization_grants.mark_dead(session, grant.id, "The delegation was withdrawn")

    section = connections_of(signed_in.get(f"/users/{user}"))

    assert words(section.select_one(".badge")) == "ended"
    assert "The organization's grant has ended. Until it is entered again" in words(
        section.select_one(".notice")
    )
    calendars = signed_in.get(f"/users/{user}/calendars")
    assert "Enter the grant of the organization again" in calendars.text
    assert "Connect the account again" not in calendars.text


def test_calendars_of_a_delegated_connection_are_shown(worker, signed_in, sandbox, new_organization, unique):
    user, slug = unique("ada"), new_organization()
    meeting = {"subject": "Planning", "start": "2026-12-03T09:00:00Z", "end": "2026-12-03T10:00:00Z"}
    ada = {"email": "ada@contoso.example", "events": [meeting]}
    domain = sandbox.domain("microsoft", "contoso.example", [ada])
    signed_in.do(f"/organizations/{slug}/grants/microsoft", grant_of(domain))
    imported = {"members": f"{user},ada@contoso.example"}
    assert signed_in.do(f"/organizations/{slug}/grants/microsoft/members/import", imported).notices

    page = signed_in.get(f"/users/{user}/calendars")

    assert page.html.select("tbody tr"), page.text
    assert page.notices == []
