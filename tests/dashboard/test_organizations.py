"""Organizations: found, created, changed, filled with members, and deleted."""

from __future__ import annotations

import pytest

from app.dashboard.organizations import suggestion
from store.sql.queries import connection_rows, connections
from tests.dashboard.audit_records import records
from tests.dashboard.visiting import words


def members(page):
    return [words(each.th) for each in page.html.select("section[aria-labelledby=members] tbody tr")]


def end_connections(stores, user):
    """End a grant as a worker does when the provider reports it as revoked."""
    with stores.database.writing() as session:
        for each in connection_rows.of_user(session, user, organization_id=None):
            connections.mark_dead(session, each.id, "The grant was withdrawn")


def test_organization_is_created_with_slug_from_its_name(signed_in, stores, unique):
    name = unique("Équipe Été")

    page = signed_in.do("/organizations", {"name": name})

    slug = suggestion(name)
    assert page.heading == name
    assert page.notices == [f"The organization {slug} is created. Add its members next."]
    assert records(stores, slug) == [("administrator ada", "createOrganization", slug)]
    assert "No members yet" in page.text


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Design team", "design-team"),
        ("  Ärzte & Söhne, Inc. ", "arzte-sohne-inc"),
        ("שלום", ""),
        ("a" * 200, "a" * 128),
    ],
)
def test_a_name_suggests_a_slug(name, slug):
    assert suggestion(name) == slug


@pytest.mark.parametrize(
    ("form", "field", "status", "complaint"),
    [
        ({"name": "שלום"}, "slug", 400, "Slug is required."),
        ({"slug": "a b"}, "slug", 400, "Slug must have 3 to 128 lower-case letters"),
        ({"slug": "taken"}, "slug", 409, "Slug is taken by another organization."),
        ({"slug": "long-name", "name": "n" * 129}, "name", 400, "Name must have 1 to 128 characters."),
    ],
)
def test_refused_organization_has_a_field_error(signed_in, new_organization, form, field, status, complaint):
    taken = new_organization()
    if form.get("slug") == "taken":
        form = {"slug": taken}

    page = signed_in.post("/organizations", form)

    assert page.status == status
    assert page.error_of(field).startswith(complaint)
    assert page.html.details.has_attr("open")


def test_organizations_are_found_by_slug_or_name_with_status(
    signed_in, stores, sandbox, new_user, api, unique
):
    slug, name = unique("findme"), unique("Searched Company")
    api.post("/organizations", {"slug": slug, "name": name})
    user = new_user(sandbox.account("google", "dead@example.com"), slugs=(slug,))
    end_connections(stores, user)

    for text in (slug[2:], name[:-3].upper(), name):
        page = signed_in.get("/organizations", q=text)
        rows = [words(each) for each in page.html.select("tbody tr")]
        assert any(each.startswith(f"{slug} {name} 1 1 cannot be booked now") for each in rows), rows
    assert "Nothing found" in signed_in.get("/organizations", q="%_%nothing").text
    assert signed_in.get("/organizations", q="\x00").status == 404


def test_members_who_cannot_be_booked_are_counted_and_listed_with_the_reason(
    signed_in, stores, sandbox, new_organization, new_user
):
    slug = new_organization()
    well = new_user(sandbox.account("google", "well@example.com"), slugs=(slug,))
    ill = new_user(sandbox.account("microsoft", "ill@example.com"), slugs=(slug,))
    outside = new_user(sandbox.account("google", "outside@example.com"))
    for user in (ill, outside):
        end_connections(stores, user)

    page = signed_in.get(f"/organizations/{slug}")

    (notice,) = page.notices
    assert notice.startswith("1 member cannot be booked now, and contributes no free times.")
    assert outside not in page.text
    states = {
        words(each.th): words(each.select_one("[data-label=Connections]"))
        for each in page.html.select("tbody tr")
    }
    assert states == {
        well: "Google: connected",
        ill: "Microsoft: ended The grant was withdrawn , just now",
    }
    shown = signed_in.get(page.html.select_one(".notice a")["href"])
    assert [words(each) for each in shown.html.select("tbody th a")] == [ill]


def test_members_are_added_by_their_identifiers(signed_in, stores, new_organization, new_user):
    slug, first, second = new_organization(), new_user(), new_user()
    signed_in.do(f"/organizations/{slug}/members", {"userIds": first})

    page = signed_in.do(f"/organizations/{slug}/members", {"userIds": f" {first},\r\n{second} "})

    assert page.notices == ["1 added; 1 had been members before."]
    assert members(page) == sorted([first, second])
    assert records(stores, slug)[0] == ("administrator ada", "addMembers", f"1 to {slug}")


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (
            "{known} nobody-at-all",
            "Users are not registered: nobody-at-all. No user was added; register them first, or",
        ),
        ("<b>", "Users do not all fit: <b> must have 3 to 128 letters"),
        (f"{'x' * 60}!", f"Users do not all fit: {'x' * 60}! must have 3 to 128 letters"),
        (" ", "Users is required."),
        (" ".join(f"many-{n}" for n in range(1001)), "Users must be at most 1000 at once."),
    ],
)
def test_an_unknown_user_adds_no_member(signed_in, new_organization, new_user, written, complaint):
    slug, known = new_organization(), new_user()

    page = signed_in.post(f"/organizations/{slug}/members", {"userIds": written.replace("{known}", known)})

    assert page.status == 400
    assert page.error_of("userIds").startswith(complaint)
    assert members(page) == []
    assert not page.html.find("b")


def test_a_member_is_removed_and_stays_a_user(signed_in, api, stores, new_organization, new_user):
    slug = new_organization()
    user = new_user(slugs=(slug,))
    form = signed_in.get(f"/organizations/{slug}").html.select_one("section[aria-labelledby=members] td form")
    assert form.find("input", {"name": "userId"})["value"] == user

    page = signed_in.do(form["action"], {"userId": user})

    assert page.notices == [f"{user} is no longer a member."]
    assert members(page) == []
    assert api.get(f"/users/{user}").status_code == 200
    assert records(stores, slug)[0] == ("administrator ada", "removeMember", f"{user} from {slug}")
    assert signed_in.post(form["action"], {"userId": "nobody-at-all"}).status == 404
    assert signed_in.post(form["action"], {"userId": "\x00"}).status == 404


def test_an_organization_gets_another_name_and_slug(signed_in, api, stores, new_organization, unique):
    slug, other, new_slug = new_organization(), new_organization(), unique("renamed")

    refused = signed_in.post(f"/organizations/{slug}/rename", {"slug": other})
    page = signed_in.do(f"/organizations/{slug}/rename", {"slug": new_slug, "name": "New name"})
    unnamed = signed_in.do(f"/organizations/{new_slug}/rename", {"slug": new_slug})

    assert refused.status == 409
    assert refused.error_of("slug") == "Slug is taken by another organization."
    assert page.heading == "New name"
    assert unnamed.heading == new_slug
    assert api.get(f"/organizations/{slug}").status_code == 404
    assert ("administrator ada", "changeOrganization", f"{slug} to {new_slug}") in records(stores, slug)


def test_delete_lists_what_is_removed_and_keeps_the_users(
    signed_in, api, app, stores, new_organization, new_user, new_api
):
    slug = new_organization()
    user = new_user(slugs=(slug,))
    bound = new_api(organization=slug)
    assert bound.post("/webhooks", {"url": "https://example.com/hook", "events": ["connection.expired"]}).json
    form = signed_in.get(f"/organizations/{slug}").html.find(
        "form", action=f"/dashboard/organizations/{slug}/delete"
    )
    assert "1 memberships, 1 API keys that are bound to it, and" in form["data-confirm"]

    assert form["data-confirm-typed"] == slug
    for typed in ({}, {"confirm": slug.upper()}):
        page = signed_in.do(form["action"], typed)
        assert page.notices == [f"Nothing was deleted: type {slug} to confirm it."]

    page = signed_in.do(form["action"], {"confirm": slug})

    assert page.notices == [f"The organization {slug} is deleted. Its users are still there."]
    assert api.get(f"/users/{user}").json["data"]["organizations"] == []
    assert bound.get("/users").status_code == 401
    assert records(stores, slug)[0] == ("administrator ada", "deleteOrganization", slug)
    assert signed_in.post(form["action"]).status == 404
    assert signed_in.post(form["action"], {"confirm": slug}).status == 404


@pytest.mark.parametrize("slug", ["nowhere-at-all", "A", "%ff%fe%fd"])
def test_an_organization_that_is_not_there_is_not_found(signed_in, slug):
    page = signed_in.get(f"/organizations/{slug}")

    assert page.status == 404
    assert page.heading == "Organization not found"


def test_operators_change_the_quotas_of_an_organization(signed_in, api, stores, new_organization):
    slug = new_organization()
    path = f"/organizations/{slug}/quotas"

    refused = signed_in.post(path, {"requestsPerMinute": "0", "heldUsers": "7"})
    assert refused.status == 400
    assert refused.error_of("requestsPerMinute") == (
        "Requests a minute, of all its API keys must be between 1 and 1000000."
    )
    assert refused.html.select_one("#f-heldUsers")["value"] == "7"
    assert "quotas" not in api.get(f"/organizations/{slug}").json["data"]

    page = signed_in.do(path, {"requestsPerMinute": "600", "heldUsers": "7"})

    assert page.notices == ["The quotas are changed. They take effect with the next request."]
    assert page.html.select_one("#f-requestsPerMinute")["value"] == "600"
    assert page.html.select_one("#f-waitingReads")["value"] == ""
    assert "Without a value: 128." in words(page.html.select_one("#h-waitingReads"))
    assert api.get(f"/organizations/{slug}").json["data"]["quotas"] == {
        "requestsPerMinute": 600,
        "heldUsers": 7,
    }
    # A field that is emptied is what the settings say.
    signed_in.do(path, {"heldUsers": "7"})
    assert api.get(f"/organizations/{slug}").json["data"]["quotas"] == {"heldUsers": 7}
    assert records(stores, slug) == [("administrator ada", "changeQuotas", slug)] * 2
    assert signed_in.post("/organizations/nowhere-at-all/quotas", {}).status == 404
